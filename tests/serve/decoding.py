"""Processes that decode, and readers that misbehave in them: for those a module of its own."""

import base64
import gc
import json
import os
import time
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from sightline.errors import DataError
from sightline.serve.decoders import Decoders
from sightline.serve.limits import Limits
from sightline.types import Inputs, Stream


@contextmanager
def decoders(count=1, seconds=240.0, memory=Limits().decode_memory):
    pool = Decoders(count, seconds, memory, ["decoding"])
    try:
        yield pool
    finally:
        pool.close()


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
        if source == b"bug":
            return [1 / 0]
        return [Inputs(1)] * reading.get("size", 1)


@dataclass(frozen=True)
class Spy:
    """A process that was taken over: what it is given is what it sends."""

    def read(self, source: Any, **reading: Any) -> list[Inputs]:
        pipe = next(  # the one that `_work` answers by
            each for each in gc.get_objects() if isinstance(each, Connection) and each.writable
        )
        for message in json.loads(source):
            pipe.send_bytes(base64.b64decode(message))
        time.sleep(600)
        return []


@dataclass(frozen=True)
class Measured:
    """Another reader; gives its peak memory beyond what the process had, in MB."""

    reader: Any

    def read(self, source: Any, **reading: Any) -> list[Inputs]:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")  # resets the peak
        first = _FIRST.setdefault("size", _status("VmRSS"))  # before any picture was read
        self.reader.read(source, **reading)
        used = np.array([(_status("VmHWM") - first) * 1024 // 1_000_000])
        return [Inputs(1, {"used": Stream(used)})]


_FIRST: dict[str, int] = {}


def _status(name: str) -> int:
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name))
