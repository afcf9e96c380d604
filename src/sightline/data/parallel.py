"""Parallel text (files whose lines are translations of each other) → examples of a manifest."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from sightline.data.converters.files import Prepared
from sightline.data.manifest import Example, Split
from sightline.errors import DataError
from sightline.media.text import read_lines

LONG = 1000  # a line of more words gets a note
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]")


def from_parallel(splits: Mapping[Split, Sequence[Path]], name: str = "") -> Prepared:
    """Examples from the files of each split: the source, then one or more translations of it.

    Ids begin with `name`, so that manifests of different names can be trained on together.
    """
    examples: list[Example] = []
    notes: list[str] = []
    for split, paths in splits.items():
        examples += _split(split, paths, f"{name}-{split}" if name else split, notes)
    return Prepared(examples, notes)


def _split(split: Split, paths: Sequence[Path], prefix: str, notes: list[str]) -> list[Example]:
    source, *others = paths
    if not others:
        raise DataError(f"{split}: {source} has no translation; give two files")
    files = [read_lines(path) for path in paths]
    for path, lines in zip(others, files[1:], strict=True):
        if len(lines) != len(files[0]):
            raise DataError(
                f"{source} has {len(files[0]):,} lines and {path} has {len(lines):,}; they must "
                "translate each other line by line"
            )
    examples, empty, long, control = [], [], [], []
    for number, texts in enumerate(zip(*files, strict=True), start=1):
        cleaned = [_CONTROL.sub(" ", text).strip() for text in texts]
        targets = tuple(text for text in cleaned[1:] if text)
        if not cleaned[0] or not targets:
            empty.append(number)
            continue
        if any(_CONTROL.search(text) for text in texts):
            control.append(number)
        if max(len(text.split()) for text in cleaned) > LONG:
            long.append(number)
        name = f"{prefix}-{number}"
        examples.append(Example(name, split, targets, "source", source=cleaned[0]))
    if not examples:
        raise DataError(f"{source} and {others[0]} have no pair of lines with text")
    for numbers, what in (
        (empty, "left out: a side is empty"),
        (control, "with control characters, replaced by spaces"),
        (long, f"with more than {LONG:,} words; are they sentences?"),
    ):
        if numbers:
            notes.append(f"{split}: {len(numbers):,} {what} (for example line {numbers[0]})")
    return examples
