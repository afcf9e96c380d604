"""The feature cache: the vectors that a frozen encoder computes, stored in half precision.

A cache is a folder, named for everything its vectors depend on, that only grows:

    cache.json     version, dtype, dimension D, and the key: encoder, weights, preprocessing …
    features.f16   the vectors (L_i, D) of item after item
    rows.jsonl     ["id", "stamp", L_i, "checksum"] of each item, written once its vectors are on
                   the disk; the CRC-32 is of the line's other values and of the vectors

A run that is killed loses at most a batch, and the next one resumes where it stopped. The stamp is
computed from the item's file: if the file changes, its vectors are computed again. So they are if
they turn out to be damaged: a line of length 0 withdraws them. In caches of version 1 all items
have rows × columns vectors and the lines have no length; they are read as they are and become
version 2 when items are added. Lines of earlier caches have no checksum.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.data.durable import checksum, locked, replace_file, sync_folder, write_file
from sightline.errors import DataError
from sightline.types import Stream

VERSION = 2
Key = Mapping[str, Any]  # JSON: what the vectors depend on, apart from the items
Row = tuple[str, str, int, str]  # id, stamp, length, checksum or "" where there is none
WITHDRAWN = ""  # the stamp of no file


class FeatureCache:
    """A cache opened for reading; vectors are read by id, without loading the rest."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.header = _read_header(self.folder)
        self.stamps: dict[str, str] = {}
        self._places: dict[str, tuple[int, int]] = {}  # id → its first vector, and how many
        self._unchecked: dict[str, str] = {}  # id → checksum, until its vectors are first read
        total = 0
        for name, stamp, length, check in _read_rows(self.folder, self.header):
            self.stamps[name] = stamp  # a later row replaces an earlier one
            self._places[name] = total, length
            self._unchecked[name] = check
            total += length
            if stamp == WITHDRAWN:
                del self.stamps[name], self._places[name], self._unchecked[name]
        self.bytes = total * self.header.vector_bytes
        size = _size(self.folder / "features.f16")
        if size < self.bytes:
            raise DataError(
                f"{self.folder / 'features.f16'}: cut short: {size:,} bytes, expected "
                f"{self.bytes:,}; extract again to repair it"
            )

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    @property
    def key(self) -> Key:
        return self.header.key

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._places)

    def length(self, name: str) -> int:
        """How many vectors an item has."""
        return self._places[name][1]

    def read(self, ids: Sequence[str]) -> Stream:
        """The vectors of these items, in that order: values (B, L, D) float16, mask (B, L).

        Widen them with torch: NumPy takes ten times as long.
        """
        missing = [name for name in ids if name not in self._places]
        if missing:
            raise DataError(
                f"{self.folder}: no features for {len(missing)} ids, such as {missing[0]!r}"
            )
        places = [self._places[name] for name in ids]
        lengths = np.array([length for _, length in places], np.int64)
        values = np.zeros((len(ids), lengths.max(initial=0), self.header.dimension), np.float16)
        # Plain reads take two thirds of a memory map's time, and no pages stay with the process.
        with open(self.folder / "features.f16", "rb", buffering=0) as file:
            for name, row, (start, length) in zip(ids, values, places, strict=True):
                file.seek(start * self.header.vector_bytes)
                if file.readinto(row[:length]) != length * self.header.vector_bytes:
                    raise DataError(f"{file.name}: cut short; extract again to repair it")
                if expected := self._unchecked.get(name):
                    self._check(name, row[:length], expected)
        return Stream(values, np.arange(values.shape[1]) < lengths[:, None])

    def _check(self, name: str, vectors: NDArray[np.float16], expected: str) -> None:
        """Withdraw damaged vectors, so that the next extraction computes them again."""
        if _checksum(name, self.stamps[name], vectors) == expected:
            self._unchecked.pop(name, None)  # another thread may have come first
            return
        try:
            with writing(self.folder, self.header):
                write_file(self.folder / "rows.jsonl", _lines([(name, WITHDRAWN, 0, "")]), "ab")
            cure = "start again to compute them again"
        except DataError:  # read-only here, or being written
            cure = "delete the folder and extract again"
        raise DataError(f"{self.folder}: the features of {name!r} are damaged; {cure}")


@dataclass(frozen=True)
class Header:
    """What cache.json says."""

    key: Key
    dimension: int  # D
    length: int | None = field(default=None, compare=False)  # version 1: of every item

    @property
    def vector_bytes(self) -> int:
        return self.dimension * 2


def is_complete(folder: Path, header: Header, stamps: Mapping[str, str]) -> bool:
    """Whether nothing has to be written, so that many can read at once."""
    try:
        stored = FeatureCache(folder)
    except DataError:  # absent, or to be repaired
        return False
    whole = _size(folder / "features.f16") == stored.bytes
    return whole and stored.header == header and stamps.items() <= stored.stamps.items()


@contextmanager
def writing(folder: Path, header: Header) -> Iterator[dict[str, str]]:
    """The folder, made or repaired, locked against other writers; gives the stamp of each id."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with locked(folder / ".lock"):
            yield _repair(folder, header)
    except BlockingIOError:
        raise DataError(f"{folder}: another extraction is writing here; wait for it") from None
    except OSError as error:
        raise DataError(f"{folder}: {error.strerror}; start again to continue") from None


def append(folder: Path, items: Sequence[tuple[str, str, NDArray[np.float16]]]) -> None:
    """Add (id, stamp, vectors): first the vectors, and on the disk, then their lines."""
    rows = [(name, stamp, len(v), _checksum(name, stamp, v)) for name, stamp, v in items]
    write_file(folder / "features.f16", b"".join(v.tobytes() for *_, v in items), "ab")
    write_file(folder / "rows.jsonl", _lines(rows), "ab")


def _checksum(name: str, stamp: str, vectors: NDArray[np.float16]) -> str:
    line = json.dumps([name, stamp, len(vectors)]).encode()
    return checksum(np.ascontiguousarray(vectors).data, checksum(line))


def _repair(folder: Path, header: Header) -> dict[str, str]:
    """Cut both files back to their whole rows, after a kill, and write version 1 as version 2."""
    stored = _read_header(folder) if (folder / "cache.json").exists() else None
    if stored is not None and stored != header:
        raise DataError(f"{folder}: made by another encoder; delete the folder and extract again")
    rows = _read_rows(folder, stored or header)
    ends = np.cumsum([0, *(length for _, _, length, _ in rows)]) * header.vector_bytes
    whole = int(np.searchsorted(ends, _size(folder / "features.f16"), side="right")) - 1
    lines = _lines(rows[:whole])
    if not lines or _size(folder / "rows.jsonl") != len(lines):
        replace_file(folder / "rows.jsonl", lines)
    if stored is None or stored.length is not None:  # the lines of version 1 have lengths by now
        values = {"version": VERSION, "dtype": "float16", "dimension": header.dimension}
        content = json.dumps(values | {"key": header.key}, indent=1)
        replace_file(folder / "cache.json", content.encode())
    with open(folder / "features.f16", "ab") as file:
        file.truncate(int(ends[whole]))
    sync_folder(folder)
    return {name: stamp for name, stamp, *_ in rows[:whole]}


def _read_header(folder: Path) -> Header:
    path = folder / "cache.json"
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        match values.pop("version"):
            case 1:
                return Header(values, values["dimension"], values["rows"] * values["columns"])
            case 2:
                return Header(values["key"], values["dimension"])
            case other:
                raise DataError(f"{path}: of version {other}, not {VERSION}; extract again")
    except FileNotFoundError:
        raise DataError(f"{folder}: not a feature cache: cache.json is missing") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise DataError(f"{path}: damaged; delete the folder and extract again") from None


def _read_rows(folder: Path, header: Header) -> list[Row]:
    path = folder / "rows.jsonl"
    if not path.exists():
        return []
    *lines, _torn = path.read_bytes().split(b"\n")  # what follows the last newline is unfinished
    rows: list[Row] = []
    try:
        for line in lines:
            name, stamp, *rest = json.loads(line)
            length, check = [*(rest or [header.length]), ""][:2]
            rows.append((str(name), str(stamp), int(length), str(check)))
        return rows
    except (ValueError, TypeError):
        raise DataError(f"{path}: damaged; delete the folder and extract again") from None


def _lines(rows: Sequence[Row]) -> bytes:
    return b"".join(json.dumps(row if row[3] else row[:3]).encode() + b"\n" for row in rows)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0
