"""The results' folder: parts that are whole, and a journal of what is not yet a part.

    OUTPUT/model=FINGERPRINT/      the outcomes of one model with one search
        run.json                   which that is
        part-00000.parquet         (or .jsonl) one row per input
        .part-00001.journal        rows since then, synced to the disk batch by batch

A journal becomes the part of its number by one rename, so that a crash at any moment leaves every
row in exactly one of them. Readers of data sets pass over names that begin with a dot.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.data.durable import replace_file, replacing, sync_folder, write_file
from sightline.errors import UserError

Row = dict[str, Any]
FORMATS = ("parquet", "jsonl")
PART = 50_000  # rows of one file
MERGED = 200_000  # keys held apart from the sorted ones
DIGITS = 5


class Seen:
    """A set of keys, 8 bytes each: two of a billion keys are taken for one with p = 0.03."""

    def __init__(self) -> None:
        self.hashes = np.zeros(0, np.uint64)  # sorted
        self.recent: set[int] = set()

    def __len__(self) -> int:
        return len(self.hashes) + len(self.recent)

    def __contains__(self, key: str) -> bool:
        value = _hash(key)
        if value in self.recent:
            return True
        at = int(np.searchsorted(self.hashes, np.uint64(value)))
        return at < len(self.hashes) and int(self.hashes[at]) == value

    def add(self, key: str) -> bool:
        """Whether it was new."""
        if key in self:
            return False
        self.recent.add(_hash(key))
        if len(self.recent) >= MERGED:
            self.sorted()
        return True

    def sorted(self) -> NDArray[np.uint64]:
        """All of them; what another process needs to know them."""
        fresh = np.fromiter(self.recent, np.uint64, len(self.recent))
        self.hashes, self.recent = np.sort(np.concatenate([self.hashes, fresh])), set()
        return self.hashes

    @staticmethod
    def of(hashes: NDArray[np.uint64]) -> Seen:
        seen = Seen()
        seen.hashes = hashes
        return seen


def _hash(key: str) -> int:
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little")


@dataclass
class Results:
    """The outcomes of one model, open for writing; `open` takes what is there."""

    folder: Path
    form: str
    seen: Seen = field(default_factory=Seen)
    failed: int = 0
    dropped: int = 0  # failures that are to be tried again
    number: int = 0
    pending: int = 0  # rows in the journal

    @staticmethod
    def open(folder: Path, form: str, about: Mapping[str, Any], retry_failed: bool) -> Results:
        """Take up what is recorded; with `retry_failed`, failures are forgotten."""
        if form == "parquet":
            import pyarrow.parquet  # noqa: F401  # where it is missing, before any work
        folder.mkdir(parents=True, exist_ok=True)
        for other in (each for each in FORMATS if each != form):
            if any(folder.glob(f"part-*.{other}")):
                raise UserError(f"{folder} has results in {other}; go on with --format {other}")
        replace_file(folder / "run.json", (json.dumps(dict(about), indent=1) + "\n").encode())
        results = Results(folder, form)
        results._recover()
        for path in results.parts():
            results._take(path, retry_failed)
            results.number = int(path.stem.rpartition("-")[2]) + 1
        return results

    def parts(self) -> list[Path]:
        return sorted(self.folder.glob(f"part-*.{self.form}"))

    def add(self, rows: Iterable[Row]) -> None:
        """Record outcomes; on the disk when this returns. An input has one: others are dropped."""
        new = [row for row in rows if self.seen.add(row["input"])]
        if new:
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in new)
            write_file(self._journal(self.number), text.encode(errors="backslashreplace"), "ab")
            self.pending += len(new)
            self.failed += sum(row["error"] is not None for row in new)
        if self.pending >= PART:
            self.seal()

    def seal(self) -> None:
        """The journal becomes a part."""
        if self.pending:
            self._make_part(self.number)
            self.number, self.pending = self.number + 1, 0

    def _journal(self, number: int) -> Path:
        return self.folder / f".part-{number:0{DIGITS}}.journal"

    def _part(self, number: int) -> Path:
        return self.folder / f"part-{number:0{DIGITS}}.{self.form}"

    def _make_part(self, number: int) -> None:
        journal, part = self._journal(number), self._part(number)
        if self.form == "jsonl":
            os.replace(journal, part)
            sync_folder(self.folder)
        else:
            write_part(part, _read_lines(journal))
            journal.unlink()

    def _recover(self) -> None:
        """Journals of a run that ended early become parts; a line that was cut off is lost."""
        for partial in self.folder.glob(".partial-*"):
            partial.unlink()
        for journal in sorted(self.folder.glob(".part-*.journal")):
            number = int(journal.stem.rpartition("-")[2])
            rows = _read_lines(journal)
            if rows and not self._part(number).exists():
                lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
                replace_file(journal, lines.encode(errors="backslashreplace"))
                self._make_part(number)
            else:
                journal.unlink()

    def _take(self, path: Path, retry_failed: bool) -> None:
        rows = list(read_part(path))
        kept = [row for row in rows if row["error"] is None] if retry_failed else rows
        if len(kept) < len(rows):
            self.dropped += len(rows) - len(kept)
            if kept:
                write_part(path, kept)
            else:
                path.unlink()
        for row in kept:
            self.seen.add(row["input"])
        self.failed += sum(row["error"] is not None for row in kept)


def write_part(path: Path, rows: Sequence[Row]) -> None:
    """A file that has its name when it is whole."""
    with replacing(path) as partial:
        if path.suffix == ".jsonl":
            text = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
            write_file(partial, text.encode(errors="backslashreplace"))
            return
        import pyarrow as pa
        from pyarrow import parquet

        parquet.write_table(pa.Table.from_pylist(list(rows), schema()), partial)
        with partial.open("rb") as file:
            os.fsync(file.fileno())


def read_part(path: Path) -> Iterator[Row]:
    if path.suffix == ".jsonl":
        yield from _read_lines(path)
        return
    from pyarrow import parquet

    with path.open("rb") as file:
        for batch in parquet.ParquetFile(file).iter_batches():
            yield from batch.to_pylist()


def schema() -> Any:
    """Of the results' rows."""
    import pyarrow as pa

    other = pa.struct([("text", pa.string()), ("score", pa.float64())])
    return pa.schema(
        [
            ("input", pa.string()),
            ("text", pa.string()),
            ("score", pa.float64()),
            ("confidence", pa.float64()),
            ("alternatives", pa.list_(other)),
            ("error", pa.string()),
        ]
    )


def _read_lines(path: Path) -> list[Row]:
    """The whole lines; the last of a journal may have been cut off."""
    rows = []
    with path.open("rb") as file:
        for line in file:
            with suppress(ValueError):
                rows.append(json.loads(line))
    return rows
