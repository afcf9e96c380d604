"""The converter of tables with one text per row: CSV, TSV and the like."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from sightline.data.converters.files import Prepared, assemble, read_rows, read_text, split_of
from sightline.data.manifest import NAMES, Example, Medium, Split
from sightline.errors import DataError

_COLUMNS: dict[str, list[str]] = NAMES["columns"]


@dataclass(frozen=True)
class Columns:
    """The names of a table's columns; None: one of the usual names."""

    media: str | None = None
    text: str | None = None
    split: str | None = None


def from_csv(
    file: Path,
    *,
    medium: Medium = "image",
    media_folder: Path | None = None,
    columns: Columns | None = None,
    dev: float = 0.1,
    test: float = 0.1,
) -> Prepared:
    """A table with one text per row (comma, tab, semicolon or bar between columns).

    Rows of the same item are grouped. Without a split column, the shares `dev` and `test` of the
    items are held out by a hash of the item's name: the same on every run and machine.
    """
    columns = columns or Columns()
    rows, names = _table(file)
    key = _column(file, names, columns.media, medium)
    text = _column(file, names, columns.text, "text")
    split_column = columns.split or next((n for n in names if n.lower() in _COLUMNS["split"]), None)
    texts: dict[str, list[str]] = {}
    splits: dict[str, Split] = {}
    blank: list[int] = []
    for number, row in rows:
        item, caption = (row.get(key) or "").strip(), (row.get(text) or "").strip()
        if not item or not caption:
            blank.append(number)
            continue
        texts.setdefault(item, []).append(caption)
        if split_column:
            split = split_of((row.get(split_column) or "").strip(), f"{file}:{number}")
            if splits.setdefault(item, split) != split:
                raise DataError(f"{file}:{number}: {item} is in {splits[item]} and in {split}")
    splits = splits or held_out(texts, dev, test)
    if medium == "source":
        prepared = Prepared(
            [Example(s, splits[s], tuple(t), "source", None, s) for s, t in texts.items()], []
        )
    else:
        prepared = assemble(texts, splits, media_folder or file.parent, medium=medium)
    if blank:
        some = ", ".join(str(number) for number in blank[:5])
        prepared.notes.append(f"{len(blank)} rows without {medium} or text left out (lines {some})")
    return prepared


def texts_of(file: Path) -> list[tuple[int, str, str]]:
    """Line, id and text of each row, for scoring: the columns have one of the usual names."""
    rows, names = _table(file)
    media = (name for kind in ("image", "audio", "video") for name in _COLUMNS[kind])
    wanted = ("image_id", "id", "key", *media)
    lower = {name.lower(): name for name in reversed(names)}
    key = next((lower[name] for name in wanted if name in lower), None)
    if key is None:
        raise DataError(
            f"{file}: no column of ids; there are {', '.join(names)}: call one of them id"
        )
    text = _column(file, names, None, "text")
    return [(line, (row.get(key) or "").strip(), row.get(text) or "") for line, row in rows]


def _table(file: Path) -> tuple[list[tuple[int, dict[str, str]]], list[str]]:
    """The rows, each with its line, and the columns' names."""
    header = read_text(file).split("\n", 1)[0]
    delimiter = max(",\t;|", key=header.count)
    rows = read_rows(file, delimiter)
    if not rows:
        raise DataError(f"{file}: the table has no rows below its header")
    return rows, [name for name in rows[0][1] if name]


def _column(file: Path, names: Sequence[str], wanted: str | None, kind: str) -> str:
    if wanted is not None:
        if wanted in names:
            return wanted
        raise DataError(f"{file}: no column {wanted!r}; there are {', '.join(names)}")
    for usual in _COLUMNS[kind]:
        for name in names:
            if name.lower() == usual:
                return name
    raise DataError(
        f"{file}: no column for the {kind}; there are {', '.join(names) or 'none'}: name it with "
        f"--{'text' if kind == 'text' else 'media'}-column"
    )


def held_out(items: Iterable[str], dev: float, test: float) -> dict[str, Split]:
    if min(dev, test) < 0 or dev + test >= 1:
        raise DataError(f"dev {dev} and test {test} must be shares that leave some to train on")
    order = sorted(items, key=lambda item: hashlib.sha256(item.encode()).digest())
    counts = [max(round(len(order) * share), 1) if share else 0 for share in (dev, test)]
    if len(order) < 3:
        counts = [0, 0]
    ends = (counts[0], counts[0] + counts[1])
    return {
        item: "dev" if rank < ends[0] else "test" if rank < ends[1] else "train"
        for rank, item in enumerate(order)
    }
