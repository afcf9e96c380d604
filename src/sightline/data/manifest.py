"""The manifest: one JSONL file that lists a data set, for every task, with line-numbered errors.

    {"id": "a", "image": "images/a.jpg", "targets": ["a dog runs", "a dog"], "split": "train"}

docs/reference/file-formats.md describes it for people with their own data.
"""

from __future__ import annotations

import difflib
import json
import os
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, get_args

from sightline.config import DataConfig, Manifest, TrustConfig
from sightline.data.durable import replacing
from sightline.errors import DataError
from sightline.media.files import open_file

Split = Literal["train", "dev", "test"]
Medium = Literal["image", "audio", "video", "source"]
SPLITS: tuple[str, ...] = get_args(Split)
MEDIA: tuple[str, ...] = ("image", "audio", "video")  # keys whose value is a file
ORIGINS = tuple(each.name for each in fields(TrustConfig))
KEYS = ("id", *MEDIA, "source", "targets", "split", "meta")
# What people write, and what Sightline calls it: keys, splits, columns of tables
NAMES = json.loads(files("sightline.data").joinpath("names.json").read_text("utf-8"))
_SYNONYMS = {word: name for name, words in NAMES["manifest"].items() for word in words}
_FAULTS_SHOWN = 10


@dataclass(frozen=True)
class Example:
    """One item of a data set: what is read, and the reference texts that describe it."""

    id: str
    split: Split
    targets: tuple[str, ...]
    medium: Medium | None = None  # which of the keys holds what is read; None: only targets
    media: Path | None = None  # the picture, recording or clip, found from the manifest's folder
    source: str | None = None  # the text that is read: a sentence, or the question to a picture
    meta: Mapping[str, Any] = field(default_factory=dict)  # anything else worth keeping
    origins: tuple[str, ...] = ()  # of the targets: human, machine, derived; empty: all human
    weight: float = 1.0  # how often it occurs in an epoch of training
    data_set: str = ""  # the manifest that it is of, where there are several


def read_manifest(path: str | os.PathLike[str], *, medium: Medium | None = None) -> list[Example]:
    """Every example of a manifest; with `medium`, each has to have that key.

    A DataError lists the first ten faults, each with its line.
    """
    path = Path(path)
    try:
        with open_file(path) as file:
            lines = file.read().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    except FileNotFoundError:
        raise DataError(f"{path}: no such manifest; `sightline prepare` makes one") from None
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    examples: list[Example] = []
    lines_of: dict[str, int] = {}
    faults: list[str] = []
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            example = _example(line, number, path.parent, medium)
            if example.id in lines_of:
                raise _Fault(
                    f"id {example.id!r} was used in line {lines_of[example.id]} already; put all "
                    'texts for one item into one line\'s "targets", or give the items ids'
                )
            lines_of[example.id] = number
            examples.append(example)
        except _Fault as fault:
            faults.append(f"{path}:{number}: {fault}")
    if faults:
        shown = faults[:_FAULTS_SHOWN]
        more = len(faults) - len(shown)
        raise DataError("\n".join(shown + ([f"… and {more} more faults"] if more else [])))
    if not examples:
        raise DataError(f"{path}: the manifest is empty")
    return examples


def read_data(manifest: Manifest | Path, *, medium: Medium | None = None) -> list[Example]:
    """The examples of one manifest, or of several, each with its weight."""
    if isinstance(manifest, str | Path):
        return read_manifest(manifest, medium=medium)
    examples: dict[str, Example] = {}
    for source in manifest:
        data = DataConfig(source) if isinstance(source, str) else source
        for example in read_manifest(data.path, medium=medium):
            if example.id in examples:
                raise DataError(
                    f"{data.path}: id {example.id!r} is also in another manifest of this "
                    "training; give the items of each set ids of their own"
                )
            examples[example.id] = replace(example, weight=data.weight, data_set=data.path)
    return list(examples.values())


def read_split(manifest: Manifest | Path, split: str, medium: Medium) -> list[Example]:
    """The examples of one split, each with what a task reads."""
    examples = [each for each in read_data(manifest, medium=medium) if each.split == split]
    if not examples:
        raise DataError(f"{manifest} has no item of split {split!r}")
    return examples


class _Fault(Exception):
    """What is wrong with one line."""


def _example(line: bytes, number: int, folder: Path, medium: Medium | None) -> Example:
    values = _object(line)
    for key in values:
        if key not in KEYS:
            raise _Fault(
                f"unknown key {key!r}{_suggestion(key, KEYS)}; known are {', '.join(KEYS)}"
            )
    media_keys = [key for key in MEDIA if key in values]
    if len(media_keys) > 1:
        raise _Fault(f"{' and '.join(media_keys)} in one item; give one of them")
    if medium is not None and medium not in values:
        raise _Fault(f"{medium!r} is missing; this task reads it from every line")
    source = _text(values, "source") if "source" in values else None
    media = folder / _text(values, media_keys[0]) if media_keys else None
    split = values.get("split", "train")
    if split not in SPLITS:
        raise _Fault(
            f'split must be "train", "dev" or "test", not {split!r}{_suggestion(split, ())}'
        )
    name = values.get("id", values.get(media_keys[0]) if media_keys else f"line {number}")
    if isinstance(name, int) and not isinstance(name, bool):
        name = str(name)
    if not isinstance(name, str) or not name.strip():
        raise _Fault(f"id must be a text that is not empty, not {name!r}")
    meta = values.get("meta", {})
    if not isinstance(meta, dict):
        raise _Fault(f"meta must be an object, not {_kind(meta)}")
    kind: Any = media_keys[0] if media_keys else ("source" if source is not None else None)
    targets, origins = _targets(values, split)
    return Example(name, split, targets, kind, media, source, meta, origins)


def _object(line: bytes) -> dict[str, Any]:
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        raise _Fault(
            f"not UTF-8 at byte {error.start + 1} of the line; save the file as UTF-8"
        ) from None
    try:
        values = json.loads(text)
        json.dumps(values, ensure_ascii=False).encode("utf-8")  # half a surrogate pair cannot be
    except json.JSONDecodeError as error:
        raise _Fault(f"not JSON: {error.msg} at column {error.colno}") from None
    except (UnicodeEncodeError, RecursionError, ValueError):
        raise _Fault("not JSON that can be used: broken \\u escape, number or nesting") from None
    if not isinstance(values, dict):
        raise _Fault(f"a line must be an object in {{}}, not {_kind(values)}")
    return values


def _text(values: dict[str, Any], key: str) -> str:
    value = values[key]
    if not isinstance(value, str):
        raise _Fault(f"{key} must be a text, not {_kind(value)}")
    if not value.strip() or "\0" in value:
        raise _Fault(f"{key} is empty")
    return value


def _targets(values: dict[str, Any], split: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The reference texts, and where each came from."""
    targets = values.get("targets", [])
    if isinstance(targets, str):
        raise _Fault('targets must be a list of texts: write ["…"], also for one text')
    if not isinstance(targets, list):
        raise _Fault(f"targets must be a list of texts, not {_kind(targets)}")
    if not targets and split != "test":
        raise _Fault('"targets" is missing or empty; only the test split may go without')
    texts, origins = [], []
    for place, target in enumerate(targets, start=1):
        marked = isinstance(target, dict) and target.keys() == {"text", "origin"}
        text, origin = (target["text"], target["origin"]) if marked else (target, "human")
        if not isinstance(text, str):
            raise _Fault(f"target {place} must be a text, not {_kind(text)}")
        if not text.strip():
            raise _Fault(f"target {place} is empty")
        if origin not in ORIGINS:
            raise _Fault(f"target {place}: origin must be one of {', '.join(ORIGINS)}")
        texts.append(text)
        origins.append(origin)
    return tuple(texts), tuple(origins) if {*origins} - {"human"} else ()


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a text", bool: "true or false"}
    return names.get(type(value), "null" if value is None else f"the number {value}")


def _suggestion(word: object, known: Sequence[str]) -> str:
    if not isinstance(word, str):
        return ""
    near = _SYNONYMS.get(word.lower()) or next(
        iter(difflib.get_close_matches(word.lower(), known or SPLITS, 1)), None
    )
    return f"; did you mean {near!r}?" if near else ""


def write_manifest(path: str | os.PathLike[str], examples: Iterable[Example]) -> None:
    """Write the examples, all or nothing.

    A media file inside the manifest's folder is written relative to it, so that the folder can
    be moved; one elsewhere is written in full.
    """
    path = Path(path)
    folder = Path(os.path.abspath(path.parent))
    path.parent.mkdir(parents=True, exist_ok=True)
    with (
        replacing(path) as partial,
        open(partial, "w", encoding="utf-8", newline="\n") as file,
    ):
        for example in examples:
            file.write(json.dumps(_json(example, folder), ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())


def _json(example: Example, folder: Path) -> dict[str, Any]:
    values: dict[str, Any] = {"id": example.id}
    if example.media is not None:
        media = Path(os.path.abspath(example.media))
        inside = media.relative_to(folder) if media.is_relative_to(folder) else media
        values[str(example.medium)] = inside.as_posix()
    if example.source is not None:
        values["source"] = example.source
    targets: list[Any] = list(example.targets)
    for place, origin in enumerate(example.origins):
        if origin != "human":
            targets[place] = {"text": targets[place], "origin": origin}
    values |= {"targets": targets, "split": example.split}
    return values | ({"meta": dict(example.meta)} if example.meta else {})


# ---------------------------------------------------------------- captions

# Whatever is no punctuation, sign or space belongs to a word, in any script.
_LETTER = r"[^\s!-/:-@\[-`{-¿×÷\u2000-\u206f\u3000-\u303f\uff01-\uff0f\uff1a-\uff20]"
_CLITIC = r"n't|'(?:s|m|d|re|ve|ll)"
_SPLIT_CLITIC = re.compile(rf"(?<=\w)({_CLITIC})(?!\w)")
_TOKEN = re.compile(
    rf"(?<!\S)(?:{_CLITIC})(?!\w)"  # 's, n't, as tokens of their own
    r"|\d+(?:[:.,/]\d+)+(?!\w)"  # 10:30, 3.5, 1,000, 1/2
    rf"|{_LETTER}+(?:[-'.]{_LETTER}+)*"  # t-shirt, o'clock, u.s
    r"|(?<!\S)&(?!\S)"
)
_FUSED = re.compile(r"\b(can)(not)\b|\b(gon|wan|got)(na|ta)\b")
_QUOTES = str.maketrans("’‘´`", "''''")


def normalise_caption(text: str) -> str:
    """A caption as the model learns and writes it: lower case, no punctuation, single spaces.

    Words are cut as the COCO evaluation's Penn Treebank tokeniser cuts them ("man's" → "man 's",
    "isn't" → "is n't", "cannot" → "can not"; hyphens and times stay), so that a caption made of
    these tokens is scored as it stands. Applying it twice changes nothing.
    """
    text = unicodedata.normalize("NFC", text).lower().translate(_QUOTES)
    text = _FUSED.sub(lambda m: " ".join(part for part in m.groups() if part), text)
    return " ".join(_TOKEN.findall(_SPLIT_CLITIC.sub(r" \1 ", text)))
