"""Readers that misbehave; a module of its own, for the decoders' processes to import."""

import os
import time
from dataclasses import dataclass
from typing import Any

from sightline.errors import DataError
from sightline.types import Inputs


@dataclass(frozen=True)
class OddReader:
    """Does what the file's bytes name."""

    takes: str = "file"
    batch: int = 1

    def read(self, source: Any, **reading: Any) -> list[Inputs]:
        if source == b"slow":
            time.sleep(600)
        if source == b"crash":
            os.kill(os.getpid(), 11)
        if source == b"large":
            bytearray(600_000_000)
        if source == b"bad":
            raise DataError("it is bad")
        return [Inputs(int(reading.get("size", 1)), {})]


@dataclass(frozen=True)
class Measured:
    """Another reader; gives its peak memory beyond what the process had, in MB, as a size."""

    reader: Any

    def read(self, source: Any, **reading: Any) -> list[Inputs]:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # resets the peak
        first = _FIRST.setdefault("size", _status("VmRSS"))  # before any picture was read
        self.reader.read(source, **reading)
        return [Inputs((_status("VmHWM") - first) * 1024 // 1_000_000, {})]


_FIRST: dict[str, int] = {}


def _status(name: str) -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name))
