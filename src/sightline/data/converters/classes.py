"""Converters of published sentences with a class each: TREC, polarity, subjectivity."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np

from sightline.data.converters.files import Prepared
from sightline.data.manifest import Example, Split
from sightline.errors import DataError

FOLDS = 10
HELD_OUT = 0.1  # of TREC's training questions, to choose the best checkpoint on
SEED = 1
TREC = {  # the classes' names, as their authors explain them
    "ABBR": "abbreviation",
    "DESC": "description",
    "ENTY": "entity",
    "HUM": "human",
    "LOC": "location",
    "NUM": "number",
}


def trec(source: Path, *, fine: bool = False) -> Prepared:
    """TREC questions (Li and Roth 2002): train.txt and test.txt, `CLASS:fine words …`."""
    splits: dict[Split, list[str]] = {
        "train": _lines(source, "train.txt"),
        "test": _lines(source, "test.txt"),
    }
    drawn = np.random.default_rng(SEED).random(len(splits["train"])) < HELD_OUT
    examples = []
    for split, lines in splits.items():
        for number, line in enumerate(lines, start=1):
            label, _, question = line.partition(" ")
            if ":" not in label or not question.strip():
                raise DataError(f"{source}: {split}.txt:{number}: not of the form CLASS:fine words")
            coarse, _, kind = label.partition(":")
            name = TREC.get(coarse, coarse) + (f":{kind}" if fine else "")
            held_out = split == "train" and drawn[number - 1]
            place: Split = "dev" if held_out else split
            examples.append(_example(f"{split}-{number}", place, question, name))
    return Prepared(examples, ["TREC has no dev split: a tenth of its training questions is one"])


def polarity(source: Path) -> Prepared:
    """Snippets of film reviews (Pang and Lee 2005): rt-polarity.pos and .neg."""
    return _folded(source, {"positive": "rt-polarity.pos", "negative": "rt-polarity.neg"})


def subjectivity(source: Path) -> Prepared:
    """Sentences of reviews and of plots (Pang and Lee 2004)."""
    names = {"subjective": "quote.tok.gt9.5000", "objective": "plot.tok.gt9.5000"}
    return _folded(source, names)


def _folded(source: Path, names: dict[str, str]) -> Prepared:
    """No split is published: ten folds, of which the first is for test and the second for dev."""
    pairs = [
        (f"{label}-{number}", text, label)
        for label, name in names.items()
        for number, text in enumerate(_lines(source, name), start=1)
    ]
    folds = np.random.default_rng(SEED).permutation(len(pairs)) % FOLDS
    examples = [
        _example(name, split_of_fold(int(fold), 0), text, label, int(fold))
        for (name, text, label), fold in zip(pairs, folds, strict=True)
    ]
    return Prepared(examples, [f"no split is published: {FOLDS} folds, the first of them for test"])


def split_of_fold(fold: int, test: int) -> Split:
    """Where a fold belongs in the round that tests on `test`."""
    return "test" if fold == test else "dev" if fold == (test + 1) % FOLDS else "train"


def _example(name: str, split: Split, text: str, label: str, fold: int | None = None) -> Example:
    meta = {} if fold is None else {"fold": fold}
    return Example(name, split, (label,), "source", None, text.strip(), meta)


def _lines(source: Path, name: str) -> list[str]:
    """The lines of a file of the data set, which is a folder or the archive that NLTK has."""
    try:
        if source.is_dir():
            raw = next(iter(sorted(source.rglob(name)))).read_bytes()
        else:
            with zipfile.ZipFile(source) as archive:
                inside = next(each for each in archive.namelist() if Path(each).name == name)
                raw = archive.read(inside)
    except StopIteration:
        raise DataError(f"{source} has no {name}; give the folder or NLTK's archive") from None
    except (OSError, zipfile.BadZipFile) as error:
        raise DataError(f"{source} cannot be read ({error}); give a folder or a zip") from None
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError:
        text = raw.decode("latin-1")  # as it was published
    return [line for line in text.split("\n") if line.strip()]
