"""What is to be described: files, shards, tables and lines, listed without holding them all.

A source becomes shards, and a shard gives its items one by one, each under a key by which its
outcome is recorded: the file's place, then # and the member, row or line within it.
"""

from __future__ import annotations

import fnmatch
import glob
import gzip
import io
import lzma
import os
import re
import tarfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, BinaryIO, Literal

from sightline.bulk.tables import column_of, rows_of
from sightline.errors import DataError, UserError
from sightline.media.files import open_file

Takes = Literal["file", "text"]
TAR, TABLE = (".tar", ".tar.gz", ".tgz"), (".parquet",)
TEXT = (".txt", ".txt.gz", ".txt.xz")
MEDIA = {  # endings of the files of a folder or an archive; a file that is named is always read
    "image": (
        *(".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".ppm", ".pgm"),
        *(".avif", ".heic", ".heif"),
    ),
    "audio": (".wav", ".flac", ".ogg", ".opus", ".mp3", ".aiff", ".aif", ".m4a"),
    "video": (".mp4", ".mov", ".avi", ".webm", ".mkv"),
    "source": TEXT,
}
LARGEST = 1 << 30  # bytes of one input that is held in memory
TOGETHER = 64 << 20  # bytes of a batch
PATHS = 10_000  # named files of one shard
UNPACK: dict[str, Callable[[Any], Any]] = {".gz": gzip.open, ".xz": lzma.open}


@dataclass(frozen=True)
class Item:
    """One input. Without `data` it is the file at `place`; with an `error` it has its outcome."""

    key: str
    place: str = ""
    data: bytes | None = None
    error: str = ""


@dataclass(frozen=True)
class Kind:
    """What a model reads."""

    takes: Takes
    medium: str
    column: str = ""  # of tables; none: the only one that can be meant

    def wants(self, name: str) -> bool:
        return _bare(name).lower().endswith(MEDIA[self.medium])


@dataclass(frozen=True)
class Shard:
    """Where items are: named files, a folder (its media, not its archives), or one file of many."""

    form: Literal["paths", "folder", "tar", "table", "lines"]
    places: tuple[str, ...]
    known: int | None = None  # how many items, where that was seen in passing

    def items(self, kind: Kind) -> Iterator[Item]:
        """One after the other; where the rest of a file cannot be read, that is an item, too."""
        reading = {"tar": _members, "table": _rows, "lines": _lines}
        for place in self.places:
            if self.form == "paths":
                yield Item(key_of(place), place)
            elif self.form == "folder":
                found = (each for each in _below(place) if kind.wants(each))
                yield from (Item(key_of(each), each) for each in found if not _holds(each, kind))
            else:
                try:
                    yield from reading[self.form](place, kind)
                except (OSError, EOFError, ValueError, tarfile.TarError, lzma.LZMAError) as error:
                    reason = getattr(error, "strerror", None) or error
                    yield Item(key_of(place), error=f"{place}: cannot be read on: {reason}")

    def count(self, kind: Kind) -> int | None:
        """How many items; None where that would mean to fetch everything."""
        if self.known is not None:
            return self.known
        if is_address(self.places[0]) and self.form in ("tar", "lines"):
            return None
        try:
            if self.form == "table":
                with opened(self.places[0]) as file:
                    return column_of(file, self.places[0], kind.takes, kind.column).rows
            if self.form == "tar":
                with open(self.places[0], "rb") as file:
                    return sum(1 for _ in _wanted(file, self.places[0], kind))
            return sum(1 for _ in _lines(self.places[0], kind))
        except (OSError, EOFError, ValueError, tarfile.TarError, lzma.LZMAError, UserError):
            return None


def shards(sources: Sequence[str], kind: Kind) -> Iterator[Shard]:
    """The shards of folders, patterns, files and addresses; a UserError where there is nothing."""
    for source in sources:
        source = source if is_address(source) else os.path.abspath(os.path.expanduser(source))
        try:
            if _is_folder(source):
                yield from _folder(source, kind)
            elif _exists(source):
                yield from _files([source], kind)
            elif glob.has_magic(source):
                yield from _files(_matches(source), kind)
            else:
                raise DataError(f"{source}: no such file or folder")
        except OSError as error:
            raise DataError(
                f"{error.filename or key_of(source)}: cannot be listed: {error}"
            ) from None


def batches(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    """So many together, or fewer that are large."""
    batch: list[Item] = []
    held = 0
    for item in items:
        batch.append(item)
        held += len(item.data or b"")
        if len(batch) == size or held > TOGETHER:
            yield batch
            batch, held = [], 0
    if batch:
        yield batch


def key_of(place: str) -> str:
    """The place in UTF-8, as file names need not be; an address without what opens the store."""
    if is_address(place):
        return re.sub(r"://[^/@]*@", "://", _bare(place))
    return os.fsencode(place).decode("utf-8", "backslashreplace")


def _bare(place: str) -> str:
    """An address without its options (?region=…)."""
    return place.partition("?")[0] if is_address(place) else place


def _folder(folder: str, kind: Kind) -> Iterator[Shard]:
    """Archives are shards of their own, so that several are read at once."""
    media, other, holders = 0, 0, 0
    for place in _below(folder):
        if _holds(place, kind):
            holders += 1
            yield from _files([place], kind)
        elif kind.wants(place):
            media += 1
        else:
            other += 1
    if media:
        yield Shard("folder", (folder,), media)
    elif not holders:
        raise DataError(
            f"{folder}: nothing in this folder that the model reads ({other:,} other files); "
            f"it looks for {', '.join((*MEDIA[kind.medium], *TAR, *TABLE))}"
        )


def _files(places: Sequence[str], kind: Kind) -> Iterator[Shard]:
    named: list[str] = []
    for place in places:
        form = _holds(place, kind, named=True)
        if form:
            yield Shard(form, (place,))
        else:
            named.append(place)
    for at in range(0, len(named), PATHS):
        some = tuple(named[at : at + PATHS])
        yield Shard("paths", some, len(some))


def _holds(place: str, kind: Kind, named: bool = False) -> Literal["tar", "table", "lines"] | None:
    """Which file of many inputs it is, if it is one."""
    name = _bare(place).lower()
    if name.endswith(TAR):
        return "tar"
    if name.endswith(TABLE):
        return "table"
    return "lines" if kind.takes == "text" and (named or name.endswith(TEXT)) else None


# ---------------------------------------------------------------------------- files of many inputs


def _members(place: str, kind: Kind) -> Iterator[Item]:
    with opened(place) as file:
        for archive, member in _wanted(file, place, kind):
            key = f"{key_of(place)}#{member.name}"
            if member.size > LARGEST:
                yield Item(key, error=f"{key}: larger than {LARGEST:,} bytes")
                continue
            content = archive.extractfile(member)
            data = b"" if content is None else content.read()
            if len(data) < member.size:
                raise EOFError("the archive ends early")
            yield Item(key, data=data)


def _wanted(
    file: BinaryIO, place: str, kind: Kind
) -> Iterator[tuple[tarfile.TarFile, tarfile.TarInfo]]:
    """WebDataset's shards are plain archives: of a sample's members, the one of the medium."""
    packed = not _bare(place).lower().endswith(".tar")
    with tarfile.open(fileobj=file, mode="r|gz" if packed else "r:") as archive:
        for member in archive:
            hidden = PurePosixPath(member.name).name.startswith(".")
            if member.isreg() and not hidden and kind.wants(member.name):
                yield archive, member
            vars(archive)["members"].clear()  # it would keep every header
        if not packed:  # of a cut archive, tarfile says nothing
            file.seek(archive.offset)
            if file.read(tarfile.BLOCKSIZE) != bytes(tarfile.BLOCKSIZE):
                raise EOFError("the archive ends early")


def _rows(place: str, kind: Kind) -> Iterator[Item]:
    with opened(place) as file:
        column = column_of(file, place, kind.takes, kind.column)
        for number, value in enumerate(rows_of(file, column)):
            key = f"{key_of(place)}#{number}"
            if value is None:
                yield Item(key, error=f"{key}: empty")
            elif isinstance(value, str) and kind.takes == "file":
                yield Item(key, value)
            else:
                yield Item(key, data=value.encode() if isinstance(value, str) else value)


def _lines(place: str, kind: Kind) -> Iterator[Item]:
    """A line longer than may be held is an error, and read over."""
    unpack = UNPACK.get(os.path.splitext(_bare(place))[1].lower())
    with opened(place) as raw, unpack(raw) if unpack else raw as file:
        for number, line in enumerate(iter(lambda: file.readline(LARGEST), b""), start=1):
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            yield Item(f"{key_of(place)}#{number}", data=text.removesuffix(b"\n").rstrip(b"\r"))


# --------------------------------------------------------------- local files, and object stores


def is_address(place: str) -> bool:
    return "://" in place


def file_system(address: str) -> tuple[Any, str]:
    """pyarrow's file system of an address such as s3://bucket/folder, and the path in it."""
    from pyarrow import ArrowException, fs

    try:
        system, path = fs.FileSystem.from_uri(address)
    except (ArrowException, ValueError, OSError) as error:
        raise UserError(f"{address}: {error}") from None
    return system, path


@contextmanager
def opened(place: str) -> Iterator[BinaryIO]:
    """A file or an object, for reading and seeking."""
    if not is_address(place):
        with open_file(place) as file:
            yield file
        return
    system, path = file_system(place)
    with system.open_input_file(path) as stream:
        yield stream


def fetch(place: str) -> bytes:
    """An object, whole; a DataError says why it cannot be had."""
    try:
        with opened(place) as file:
            if file.seek(0, io.SEEK_END) > LARGEST:
                raise DataError(f"{place}: larger than {LARGEST:,} bytes")
            file.seek(0)
            return file.read()
    except FileNotFoundError:
        raise DataError(f"{place}: no such object") from None
    except OSError as error:
        raise DataError(f"{place}: cannot be fetched: {error}") from None


def _is_folder(place: str) -> bool:
    if not is_address(place):
        return os.path.isdir(place)
    system, path = file_system(place)
    return bool(system.get_file_info(path).type.name == "Directory")


def _exists(place: str) -> bool:
    if not is_address(place):
        return os.path.exists(place)
    system, path = file_system(place)
    return bool(system.get_file_info(path).is_file)


def _below(folder: str) -> Iterator[str]:
    """Every file, in order, folder by folder; nothing hidden."""
    if is_address(folder):
        system, path = file_system(folder)
        yield from (_address(folder, path, each) for each in _objects(system, path))
        return

    def refuse(error: OSError) -> None:
        raise error

    for here, folders, names in os.walk(folder, onerror=refuse):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (os.path.join(here, n) for n in sorted(names) if not n.startswith("."))


def _objects(system: Any, folder: str) -> Iterator[str]:
    from pyarrow import fs

    for info in sorted(system.get_file_info(fs.FileSelector(folder)), key=lambda i: i.path):
        if info.base_name.startswith("."):
            continue
        if info.is_file:
            yield info.path
        else:
            yield from _objects(system, info.path)


def _address(root: str, path: str, found: str) -> str:
    """The address of what was found below a root, whose options (?region=…) it keeps."""
    start, mark, options = root.partition("?")
    return start.rstrip("/") + found[len(path.rstrip("/")) :] + mark + options


def _matches(pattern: str) -> list[str]:
    if is_address(pattern):
        start, mark, options = pattern.partition("?")  # a ? is no wildcard in an address
        fixed = start[: next(i for i, c in enumerate(start) if c in "*[")].rpartition("/")[0]
        places = map(_bare, _below(fixed + mark + options))
        found = [place + mark + options for place in places if fnmatch.fnmatchcase(place, start)]
    else:
        found = sorted(place for place in glob.iglob(pattern, recursive=True))
        found = [place for place in found if not os.path.isdir(place)]
    if not found:
        raise DataError(f"no file matches {pattern}")
    return found
