"""Where a picture, clip, recording or text comes from: a file, its bytes or a stream."""

from __future__ import annotations

import errno
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from sightline.errors import DataError

Source = str | os.PathLike[str] | bytes | BinaryIO


def name_of(source: Any, kind: str) -> str:
    """What errors call a source; `kind` is what it is one of: "picture"."""
    if isinstance(source, str | os.PathLike):
        return os.fspath(source)
    if isinstance(source, bytes):
        return f"{kind} (bytes)"
    return str(getattr(source, "name", f"{kind} (stream)"))


@contextmanager
def opened(source: Source, name: str, kind: str, error: type[DataError]) -> Iterator[BinaryIO]:
    """A source for reading and seeking; where it cannot be opened, `error` says why."""
    if isinstance(source, bytes):
        yield io.BytesIO(source)
        return
    try:
        if isinstance(source, str | os.PathLike):
            file = open_file(source)
        else:
            file = io.BytesIO(source.read())  # pipes and uploads cannot all seek
    except FileNotFoundError:
        if name.startswith(("http://", "https://")):
            raise error(
                f"{name}: Sightline opens no address on the network; save the {kind} first, and "
                "give its file"
            ) from None
        raise error(f"{name}: no such file") from None
    except IsADirectoryError:
        raise error(f"{name}: it is a folder, not a {kind}") from None
    except (OSError, ValueError) as why:  # ValueError: a NUL in the path
        reason = why.strerror if isinstance(why, OSError) and why.strerror else why
        raise error(f"{name}: cannot be read: {reason}") from None
    with file:
        yield file if file.seekable() else io.BytesIO(file.read())


def open_file(path: Path | str | os.PathLike[str]) -> BinaryIO:
    """A file, opened for reading; an OSError for a FIFO or a device, which may never end.

    The shell's own pipes, `<(command)` and /dev/stdin, are read.
    """

    def without_waiting(name: str, flags: int) -> int:
        return os.open(name, flags | os.O_NONBLOCK)  # a FIFO waits for a writer otherwise

    file = open(path, "rb", opener=without_waiting)  # noqa: SIM115
    mode = os.fstat(file.fileno()).st_mode
    if stat.S_ISFIFO(mode) and os.fspath(path).startswith(("/dev/fd/", "/dev/stdin")):
        os.set_blocking(file.fileno(), True)
    elif not stat.S_ISREG(mode):
        file.close()
        kind = "FIFO" if stat.S_ISFIFO(mode) else "device"
        raise OSError(errno.EINVAL, f"it is a {kind}, not a file", os.fspath(path))
    return file
