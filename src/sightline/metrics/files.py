"""Hypotheses and references from files, in the formats that captions are kept in.

COCO JSON, pycocoevalcap's, what `describe --json` and `evaluate --json` write, JSONL, tables, or
plain text with one line per item.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import Any

from sightline.data.converters.tables import texts_of
from sightline.errors import DataError
from sightline.media.text import decode, read_bytes

_ID_KEYS = ("image_id", "id", "key", "image", "file", "line")
STDIN = Path("-")
_TABLES = (".csv", ".tsv")
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
    return path != STDIN and _suffix(path) not in (".json", ".jsonl", ".ndjson", *_TABLES)


def _entries(path: Path) -> Iterator[Entry]:
    if path == STDIN:
        yield from _standard_input()
        return
    if _suffix(path) in _TABLES:
        for number, name, text in texts_of(path):
            yield Entry(name, (text,), f"{path}, line {number}")
        return
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


def _standard_input() -> Iterator[Entry]:
    """JSON, JSONL or lines, by how it begins."""
    if sys.stdin is None:
        raise DataError("standard input is closed; give a file or a pipe")
    content = decode(sys.stdin.buffer.read(), "standard input").removeprefix("\ufeff")
    start = content.lstrip()[:1]
    try:
        whole = json.loads(content) if start in ("[", "{") else None
    except (ValueError, RecursionError):
        whole = None
    if whole is not None and not _is_line(whole):
        yield from _json_entries(Path("standard input"), whole)
        return
    lines = content.removesuffix("\n").split("\n") if content else []
    for number, line in enumerate(lines, start=1):
        where = f"standard input, line {number}"
        if start == "{" and line.strip():
            yield _object_entry(_parse(line, where), where)
        elif start != "{":
            yield Entry(str(number), (line.removesuffix("\r"),), where)


def _is_line(content: Any) -> bool:
    """One object of JSONL, alone."""
    keys = content.keys() if isinstance(content, dict) else set()
    return bool(keys & {*_ID_KEYS}) and bool(keys & {*_TEXT_KEYS, "error"})


def _parse(content: str, where: str) -> Any:
    try:
        return json.loads(content)
    except ValueError as error:
        raise DataError(f"{where}: not JSON: {error}") from None
    except RecursionError:
        raise DataError(f"{where}: this JSON is nested too deep to be captions") from None


def _json_entries(path: Path, content: Any) -> Iterator[Entry]:
    """COCO results (a list), COCO annotations (an object that holds one), or id -> text(s), also
    as {"caption": text}; what `evaluate --json` writes has such a mapping as its `texts`."""
    if isinstance(content, dict) and "annotations" in content:
        content = content["annotations"]
    elif isinstance(content, dict) and {"corpus", "texts"} <= content.keys():
        content = content["texts"]
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
    if text_key is None and isinstance(item.get("error"), str):
        raise DataError(f"{where}: item {name!r} was not described: {item['error']}")
    if text_key is None:
        raise DataError(f"{where}: item {name!r} has no text; give one of {', '.join(_TEXT_KEYS)}")
    return Entry(name, _texts(item[text_key], name, where), where)


def _texts(value: Any, name: str, where: str) -> tuple[str, ...]:
    texts = [value] if isinstance(value, str | dict) else value
    if isinstance(texts, list):  # pycocoevalcap has an object around each
        texts = [each.get("caption") if isinstance(each, dict) else each for each in texts]
    if not isinstance(texts, list) or any(not isinstance(text, str) for text in texts):
        raise DataError(f"{where}: item {name!r}: expected a text or a list, found {value!r:.60}")
    return tuple(texts)


def by_file_name(texts: dict[str, str], references: Mapping[str, object]) -> dict[str, str]:
    """Hypotheses whose ids are paths, under the ids of references that name the files alone."""
    if all(name in references for name in texts):
        return texts
    renamed: dict[str, str] = {}
    for name, text in texts.items():
        path = PurePath(name)
        near = (each for each in (name, path.name, path.stem) if each in references)
        found = next(near, name)
        if found in renamed:  # two paths of one name: nothing is guessed
            return texts
        renamed[found] = text
    return renamed
