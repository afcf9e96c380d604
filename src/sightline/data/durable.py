"""Files that survive a crash: synced before they are named, checked by a CRC-32, locked."""

from __future__ import annotations

import os
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
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        write_file(temporary, content)
        os.replace(temporary, path)
    except OSError:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


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
