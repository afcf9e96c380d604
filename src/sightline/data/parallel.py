"""Parallel text, two files whose lines translate each other, into examples of a manifest."""

from __future__ import annotations

import gzip
import lzma
import re
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sightline.data.manifest import Example, Split
from sightline.data.prepare import Prepared
from sightline.errors import DataError

LONG = 1000  # words of a line that is worth a note
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
_OPENERS: dict[str, Any] = {".gz": gzip.open, ".xz": lzma.open}


def read_lines(path: Path | str) -> list[str]:
    """The lines of a UTF-8 file (.gz and .xz are unpacked), cut at \\n and nowhere else.

    Other characters that some programs take for line ends would shift one file of a pair against
    the other.
    """
    path = Path(path)
    try:
        with _OPENERS.get(path.suffix.lower(), open)(path, "rb") as file:
            raw: bytes = file.read()
    except FileNotFoundError:
        raise DataError(f"no text file at {path}") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder; give a text file") from None
    except (lzma.LZMAError, zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise DataError(f"{path} cannot be unpacked ({error}); is the file whole?") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    text = decode(raw, str(path)).removeprefix("\ufeff")
    lines = text.removesuffix("\n").split("\n") if text else []
    return [line.removesuffix("\r") for line in lines]


def decode(raw: bytes, where: str, line: int = 1) -> str:
    """UTF-8, or an error that names the byte; `line` is the number of the first line."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        at = line + raw[: error.start].count(b"\n")
        raise DataError(
            f"{where}:{at}: not UTF-8: byte {error.start} is 0x{raw[error.start]:02x}; "
            "convert it first, for instance with `iconv -f latin1 -t utf-8`"
        ) from None


def from_parallel(splits: Mapping[Split, Sequence[Path]]) -> Prepared:
    """Examples from the files of each split: the source, then one or more translations of it."""
    examples: list[Example] = []
    notes: list[str] = []
    for split, paths in splits.items():
        examples += _split(split, paths, notes)
    return Prepared(examples, notes)


def _split(split: Split, paths: Sequence[Path], notes: list[str]) -> list[Example]:
    source, *others = paths
    if not others:
        raise DataError(f"{split}: {source} has no translation beside it; give two files")
    files = [read_lines(path) for path in paths]
    for path, lines in zip(others, files[1:], strict=True):
        if len(lines) != len(files[0]):
            raise DataError(
                f"{source} has {len(files[0]):,} lines and {path} has {len(lines):,}; line by line "
                "they have to translate each other"
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
        name = f"{split}-{number}"
        examples.append(Example(name, split, targets, "source", source=cleaned[0]))
    if not examples:
        raise DataError(f"{source} and {others[0]} have no pair of lines with text in them")
    for numbers, what in (
        (empty, "left out: a side is empty"),
        (control, "with control characters, which became blanks"),
        (long, f"with more than {LONG:,} words; are they sentences?"),
    ):
        if numbers:
            notes.append(f"{split}: {len(numbers):,} {what} (for example line {numbers[0]})")
    return examples
