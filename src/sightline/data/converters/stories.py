"""bAbI's stories and questions (Weston et al. 2015) → examples of a manifest."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from sightline.data.converters.files import Prepared, read_lines
from sightline.data.manifest import Example, Split
from sightline.errors import DataError

_FILE = re.compile(r"(qa(\d+)_.*)_(train|valid|test)\.txt$")


def babi(folder: Path, tasks: Sequence[int] = ()) -> Prepared:
    """The files qaN_…_train.txt and _test.txt of a folder; of all tasks, or of these.

    An example's source has a line for each fact before the question, and last the question;
    meta.supports are the facts that its answer needs, meta.task is its task.
    """
    files = [(path, found) for path in folder.glob("*.txt") if (found := _FILE.search(path.name))]
    files = [(path, found) for path, found in files if not tasks or int(found[2]) in tasks]
    if not files:
        wanted = f" for the tasks {', '.join(map(str, tasks))}" if tasks else ""
        raise DataError(f"{folder}: no file qaN_…_train.txt{wanted} is in it")
    files.sort(key=lambda pair: (int(pair[1][2]), pair[1][3]))
    examples = []
    for path, found in files:
        split: Split = {"train": "train", "valid": "dev"}.get(found[3], "test")  # type: ignore[assignment]
        for number, (source, answer, supports) in enumerate(_questions(path), start=1):
            name = f"qa{found[2]}-{found[3]}-{number}"
            meta = {"task": int(found[2]), "supports": supports}
            examples.append(Example(name, split, (answer,), "source", source=source, meta=meta))
    untrained = {found[2] for _, found in files} - {f[2] for _, f in files if f[3] == "train"}
    notes = [f"task {task} has no file to train on" for task in sorted(untrained, key=int)]
    return Prepared(examples, notes)


def _questions(path: Path) -> Iterator[tuple[str, str, list[int]]]:
    facts: list[str] = []
    places: dict[int, int] = {}  # a line's number in its story → the fact
    for number, line in enumerate(read_lines(path), start=1):
        identity, _, text = line.partition(" ")
        if not identity.isdigit():
            raise DataError(f"{path}:{number}: a line must begin with its number in the story")
        if identity == "1":
            facts, places = [], {}
        question, *rest = text.split("\t")
        if not rest:
            places[int(identity)] = len(facts)
            facts.append(text.strip())
            continue
        try:
            supports = [places[int(each)] for each in rest[1].split()] if len(rest) > 1 else []
        except (KeyError, ValueError):
            raise DataError(f"{path}:{number}: {rest[1]!r} are no facts of the story") from None
        yield "\n".join([*facts, question.strip()]), rest[0].strip(), supports
