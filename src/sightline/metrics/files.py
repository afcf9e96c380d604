"""Hypotheses and references from files: COCO JSON, JSONL, or plain text with one line per item."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sightline.errors import DataError
from sightline.media.text import decode, read_bytes

_ID_KEYS = ("image_id", "id", "key", "image")
_TEXT_KEYS = ("caption", "hypothesis", "text", "references", "targets", "captions", "reference")


@dataclass(frozen=True)
class Entry:
    """Some texts of one item, and where they stood."""

    id: str
    texts: tuple[str, ...]
    where: str


def read_hypotheses(path: Path) -> dict[str, str]:
    """One text for each item, by id (by line number for plain text)."""
    texts: dict[str, str] = {}
    for entry in _entries(path):
        if len(entry.texts) != 1:
            raise DataError(
                f"{entry.where}: item {entry.id!r} has {len(entry.texts)} hypotheses; give one"
            )
        if entry.id in texts:
            raise DataError(f"{entry.where}: item {entry.id!r} has a second hypothesis; give one")
        texts[entry.id] = entry.texts[0]
    if not texts:
        raise DataError(f"{path}: there is no hypothesis in this file")
    return texts


def read_references(paths: Sequence[Path]) -> dict[str, list[str]]:
    """All texts of each item, by id, from one or several files.

    In plain text, line n of every file is a reference of item n; an empty line is none.
    """
    references: dict[str, list[str]] = {}
    lines: dict[Path, int] = {}
    for path in paths:
        if _is_text(path):
            lines[path] = 0
        for entry in _entries(path):
            texts = [text for text in entry.texts if text.strip() or path not in lines]
            references.setdefault(entry.id, []).extend(texts)
            if path in lines:
                lines[path] += 1
    if len(set(lines.values())) > 1:
        short, long = min(lines, key=lines.__getitem__), max(lines, key=lines.__getitem__)
        raise DataError(
            f"{short}: ends after line {lines[short]}, but {long} has {lines[long]} lines; "
            "every reference file needs a line for every item"
        )
    return references


def _suffix(path: Path) -> str:
    """The suffix that names the format: that of captions.json.gz is .json."""
    packed = path.suffix.lower() in (".gz", ".xz")
    return (path.with_suffix("") if packed else path).suffix.lower()


def _is_text(path: Path) -> bool:
    return _suffix(path) not in (".json", ".jsonl", ".ndjson")


def _entries(path: Path) -> Iterator[Entry]:
    content = decode(read_bytes(path), str(path)).removeprefix("\ufeff")
    if _is_text(path):
        lines = content.removesuffix("\n").split("\n") if content else []
        for number, line in enumerate(lines, start=1):
            yield Entry(str(number), (line.removesuffix("\r"),), f"{path}, line {number}")
    elif _suffix(path) == ".json":
        yield from _json_entries(path, _parse(content, str(path)))
    else:
        for number, line in enumerate(content.split("\n"), start=1):
            where = f"{path}, line {number}"
            if line.strip():
                yield _object_entry(_parse(line, where), where)


def _parse(content: str, where: str) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        raise DataError(f"{where}: not JSON: {error}") from None
    except RecursionError:
        raise DataError(f"{where}: this JSON is nested too deep to be captions") from None


def _json_entries(path: Path, content: Any) -> Iterator[Entry]:
    """COCO results (a list), COCO annotations (an object that holds one), or id -> text(s)."""
    if isinstance(content, dict) and "annotations" in content:
        content = content["annotations"]
    if isinstance(content, list):
        for number, item in enumerate(content, start=1):
            yield _object_entry(item, f"{path}, entry {number}")
    elif isinstance(content, dict):
        for key, value in content.items():
            yield Entry(key, _texts(value, key, str(path)), str(path))
    else:
        raise DataError(f"{path}: expected a list of captions or an object, like COCO's files")


def _object_entry(item: Any, where: str) -> Entry:
    if not isinstance(item, dict):
        raise DataError(f"{where}: expected an object with an id and a caption, found {item!r:.60}")
    id_key = next((key for key in _ID_KEYS if key in item), None)
    text_key = next((key for key in _TEXT_KEYS if key in item), None)
    if id_key is None or isinstance(item[id_key], (dict, list)) or item[id_key] is None:
        raise DataError(f"{where}: there is no id; give one of {', '.join(_ID_KEYS)}")
    name = str(item[id_key])
    if text_key is None:
        raise DataError(f"{where}: item {name!r} has no text; give one of {', '.join(_TEXT_KEYS)}")
    return Entry(name, _texts(item[text_key], name, where), where)


def _texts(value: Any, name: str, where: str) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or any(not isinstance(text, str) for text in texts):
        raise DataError(f"{where}: item {name!r}: expected a text or a list, found {value!r:.60}")
    return tuple(texts)
