"""Shared by the converters: the result with its notes, its assembly, and reading of files.

Captions are kept as published; `normalise_caption` is applied when a model is trained.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sightline.data.manifest import NAMES, Example, Medium, Split
from sightline.errors import DataError
from sightline.media.text import decode, read_bytes

_SPLIT_NAMES: dict[Split, list[str]] = NAMES["splits"]  # restval: Karpathy's, of COCO


@dataclass(frozen=True)
class Prepared:
    """A data set ready for `write_manifest`, with notes for the user."""

    examples: list[Example]
    notes: list[str]

    def summary(self) -> str:
        """One line: how many items and texts there are, by split."""
        splits = Counter(example.split for example in self.examples)
        texts = sum(len(example.targets) for example in self.examples)
        parts = ", ".join(f"{name} {splits[name]:,}" for name in ("train", "dev", "test"))
        return f"{len(self.examples):,} items with {texts:,} texts ({parts})"


def assemble(
    captions: Mapping[str, Sequence[str]],
    splits: Mapping[str, Split],
    folder: Path,
    folders: Mapping[str, str] | None = None,
    medium: Medium = "image",
) -> Prepared:
    """Examples of the items with texts, a split and a file; notes on the rest."""
    omitted: dict[str, list[str]] = {"no file": [], "no split": [], "no text": []}
    examples: list[Example] = []
    present: dict[Path, set[str]] = {}
    for name, texts in captions.items():
        path = _place(name, folder, (folders or {}).get(name, ""), present)
        kept = tuple(text for text in texts if text)
        if path is None:
            omitted["no file"].append(name)
        elif name not in splits:
            omitted["no split"].append(name)
        elif not kept:
            omitted["no text"].append(name)
        else:
            examples.append(Example(name, splits[name], kept, medium, path))
    omitted["no text"] += [name for name in splits if name not in captions]
    if not examples:
        raise DataError(f"{folder}: none of the {len(captions)} files of the data set is here")
    notes = [
        f"{len(names):,} left out: {why} (for example {names[0]})"
        for why, names in omitted.items()
        if names
    ]
    return Prepared(examples, notes)


def _place(name: str, folder: Path, below: str, present: dict[Path, set[str]]) -> Path | None:
    """The file's path, from one listing per folder rather than one call per file."""
    for path in (folder / below / name, folder / name):
        parent = path.parent
        if parent not in present:
            present[parent] = set(os.listdir(parent)) if parent.is_dir() else set()
        if path.name in present[parent]:
            return path
    return None


def split_of(name: object, where: str) -> Split:
    for split, names in _SPLIT_NAMES.items():
        if isinstance(name, str) and name.lower() in names:
            return split
    known = ", ".join(known for names in _SPLIT_NAMES.values() for known in names)
    raise DataError(f"{where}: unknown split {name!r}; use one of {known}")


def read_text(path: Path) -> str:
    return decode(read_bytes(path), str(path)).removeprefix("\ufeff").replace("\r\n", "\n")


def read_lines(path: Path) -> list[str]:
    return [line.strip() for line in read_text(path).split("\n") if line.strip()]


def read_json(path: Path) -> Any:
    try:
        return json.loads(read_text(path))
    except ValueError as error:
        raise DataError(f"{path}: not JSON: {error}") from None


def read_rows(path: Path, delimiter: str) -> list[tuple[int, dict[str, str]]]:
    """Each row by column name, with the line that it ends on."""
    csv.field_size_limit(10_000_000)
    lines = io.StringIO(read_text(path), newline="")  # a quoted text may span lines
    reader = csv.DictReader(lines, delimiter=delimiter, skipinitialspace=True, strict=True)
    rows: list[tuple[int, dict[str, str]]] = []
    try:
        for row in reader:
            if None in row:
                raise DataError(f"{path}:{reader.line_num}: more columns than the header names")
            rows.append((reader.line_num, row))
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: {error}") from None
    return rows
