"""What a worker does: opens the model once, then describes items a few at a time."""

from __future__ import annotations

import hashlib
import importlib
import json
import math
import os
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sightline.bulk.results import Row
from sightline.bulk.sources import Item, fetch, is_address
from sightline.data.durable import replacing
from sightline.errors import DataError, UserError
from sightline.media.text import decode

if TYPE_CHECKING:
    from sightline.runtime.describer import Describer

FETCHING = 8  # objects fetched side by side
UNUSED = ("card.md", "training.json", "optimiser.safetensors")  # of a model's folder


@dataclass(frozen=True)
class Job:
    """What every worker is told."""

    model: Path  # a folder of weights
    task: str = ""  # "": any
    asked: Mapping[str, Any] = field(default_factory=dict)  # `Options` that are not the model's own
    threads: int = 1  # of one worker
    home: str = ""  # the module of a task that is defined outside Sightline

    def files(self) -> dict[str, bytes]:
        """The model, to be sent to where it is not."""
        paths = sorted(path for path in self.model.iterdir() if path.is_file())
        return {path.name: path.read_bytes() for path in paths if path.name not in UNUSED}

    def fingerprint(self) -> str:
        """Of the model and what is asked of it: outcomes of another one are other outcomes."""
        digest = hashlib.sha256()
        for name, content in self.files().items():
            digest.update(f"{name} {hashlib.sha256(content).hexdigest()}\n".encode())
        digest.update(json.dumps(dict(self.asked), sort_keys=True).encode())
        return digest.hexdigest()[:12]


def unpacked(files: Mapping[str, bytes], name: str) -> Path:
    """A model that was sent, in this machine's temporary folder."""
    folder = Path(tempfile.gettempdir()) / f"sightline-{os.getuid()}-models" / name
    if not folder.is_dir():
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        own = folder.with_name(f"{name}-{os.getpid()}")
        with replacing(own) as partial:
            partial.mkdir()
            for each, content in files.items():
                (partial / each).write_bytes(content)
        try:
            os.rename(own, folder)
        except OSError:  # another worker was first
            return own
    return folder


class Worker:
    """A model that is open; the threads of its process are counted by OMP_NUM_THREADS."""

    def __init__(self, job: Job) -> None:
        from sightline.tasks import load_for

        _register(job.home)
        self.describer: Describer = load_for(job.model, job.task)
        self.ask = replace(self.describer.defaults, **job.asked)
        self.describer.check(self.ask)

    def describe(self, items: Sequence[Item]) -> list[Row]:
        """A row for each item; what is wrong with one is no other's."""
        inputs, errors = [], {}
        for number, item in enumerate(items):
            try:
                inputs.append((number, self._read(item)))
            except Exception as error:
                errors[number] = _reason(error)
        try:
            described = self.describer.describe_inputs([each for _, each in inputs], self.ask)
        except Exception as error:
            if len(items) > 1:
                return [row for item in items for row in self.describe([item])]
            return [_row(items[0].key, error=_reason(error))]
        found = dict(zip((number for number, _ in inputs), described, strict=True))
        return [
            _row(item.key, error=errors[number])
            if number in errors
            else _described(item.key, found[number])
            for number, item in enumerate(items)
        ]

    def _read(self, item: Item) -> Any:
        if item.error:
            raise DataError(item.error)
        reader = self.describer.reader
        if reader.takes == "text":
            return reader.read(decode(item.data or b"", item.key))
        if item.data is None:
            return reader.read(item.place)
        try:
            return reader.read(item.data)
        except DataError as error:  # it knows the bytes by no name
            text = str(error)
            known = text.find("(bytes): ")
            raise DataError(f"{item.key}: {text[known + 9 :] if known >= 0 else text}") from None


def _register(home: str) -> None:
    """The tasks of a module, where this process does not have them yet."""
    from sightline.tasks import register, task_names
    from sightline.tasks.spec import TaskSpec

    for value in vars(importlib.import_module(home)).values() if home else ():
        if isinstance(value, TaskSpec) and value.name not in task_names():
            register(value)


def fetched(items: Sequence[Item]) -> list[Item]:
    """Objects of a store fetched side by side, before the model needs them."""
    away = [item for item in items if item.data is None and is_address(item.place)]
    if not away:
        return list(items)

    def had(item: Item) -> Item:
        try:
            return replace(item, data=fetch(item.place))
        except UserError as error:
            return replace(item, error=str(error))

    with ThreadPoolExecutor(FETCHING) as pool:
        found = dict(zip((item.key for item in away), pool.map(had, away), strict=True))
    return [found.get(item.key, item) for item in items]


def lost(item: Item) -> Row:
    """Of an input that takes its process with it."""
    return _row(item.key, error=f"{item.key}: the process that read it died, more than once")


def _described(key: str, description: Any) -> Row:
    others = [{"text": o.text, "score": _finite(o.score)} for o in description.alternatives]
    row = _row(key, text=description.text, score=_finite(description.score), alternatives=others)
    return {**row, "confidence": description.confidence}


def _row(key: str, **known: Any) -> Row:
    empty = ("text", "score", "confidence", "alternatives", "error")
    row: Row = {"input": key, **dict.fromkeys(empty), **known}
    for name in ("text", "error"):  # lone surrogates are no UTF-8
        if row[name] is not None:
            row[name] = row[name].encode("utf-8", "backslashreplace").decode()
    return row


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _reason(error: Exception) -> str:
    return str(error) if isinstance(error, UserError) else f"{type(error).__name__}: {error}"
