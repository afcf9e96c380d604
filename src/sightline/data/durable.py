"""Files that survive a crash: synced before they are named, checked by a CRC-32, locked."""

from __future__ import annotations

import os
import shutil
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

_CHUNK = 2**20


def write_file(path: Path, content: bytes, mode: str = "wb") -> None:
    """Write or append (`ab`), and return once the content is on the disk."""
    with open(path, mode) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, content: bytes) -> None:
    """After a crash at any moment the file has its old content or the new one."""
    with replacing(path) as partial:
        write_file(partial, content)


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Another name, under which a file or a folder is written; at the end of a `with` without an
    error it gets its own name, in place of what had that. The writer syncs what it writes."""
    partial, old = (path.with_name(f".{word}-{path.name}") for word in ("partial", "old"))
    try:
        _remove(partial)
        yield partial
        if partial.is_dir() and path.is_dir():  # a folder cannot replace one that holds anything
            _remove(old)
            os.replace(path, old)
        os.replace(partial, path)
        sync_folder(path.parent)
        _remove(old)
    finally:
        with suppress(OSError):
            _remove(partial)


def _remove(path: Path) -> None:
    """A file or a folder, if it is there."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def sync_folder(folder: Path) -> None:
    """Renames and new names in the folder are on the disk."""
    if os.name == "nt":  # folders cannot be opened there
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def checksum(content: bytes | memoryview, before: str = "00000000") -> str:
    return f"{zlib.crc32(content, int(before, 16)):08x}"


def file_checksum(path: Path, *, sync: bool = False) -> str:
    """Of a file's content; with `sync`, what was checked is on the disk."""
    buffer, result = memoryview(bytearray(_CHUNK)), checksum(b"")
    with open(path, "rb", buffering=0) as file:
        while count := file.readinto(buffer):
            result = checksum(buffer[:count], result)
        if sync:
            os.fsync(file.fileno())
    return result


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold an exclusive lock, which ends with the process; BlockingIOError if another holds it."""
    with open(path, "w") as file:
        try:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except ImportError:  # Windows: the user has to avoid two runs at once
            pass
        except BlockingIOError:
            raise
        except OSError:  # a file system without locks
            pass
        yield
