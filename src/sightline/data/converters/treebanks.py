"""Treebanks in Penn brackets → examples of a manifest: sentences and their trees."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from pathlib import Path

from sightline.data.converters.files import Prepared, split_of
from sightline.data.manifest import Example, Split
from sightline.data.trees import Tree, read_trees, without_traces, words_of
from sightline.errors import DataError
from sightline.media.text import decode, read_bytes

# The sample of the Penn Treebank has no split of its own: by files, 1–159, 160–179, 180–199
DEV, TEST = 160, 180
_NUMBER = re.compile(r"wsj_(\d+)\.mrg$")


def treebank(path: Path, origin: str = "human") -> Prepared:
    """NLTK's treebank.zip, a folder of .mrg files, or a file of `split<TAB>tree` lines.

    `origin` is that of the trees: human, or machine for a parser's.
    """
    if path.is_dir() or path.suffix.lower() == ".zip":
        found = _penn(path)
    else:
        found = _lines(path)
    examples, left_out = [], []
    origins = () if origin == "human" else (origin,)
    for name, split, tree in found:
        kept = without_traces(tree)
        words = [str(leaf.word) for leaf in kept.leaves()] if kept else []
        source = " ".join(words)
        if kept is None or words_of(source) != words:
            left_out.append(name)
            continue
        target = (kept.brackets(),)
        examples.append(Example(name, split, target, "source", source=source, origins=origins))
    if not examples:
        raise DataError(f"{path} has no trees over words")
    why = "no words, or words that no reader would cut so"
    notes = [f"{len(left_out):,} left out: {why} (for example {left_out[0]})"] if left_out else []
    return Prepared(examples, notes)


def _penn(path: Path) -> Iterator[tuple[str, Split, Tree]]:
    for name, text in _mrg_files(path):
        found = _NUMBER.search(name)
        if found is None:
            raise DataError(f"{path}: {name} has no number as wsj_0001.mrg has, to split by")
        number = int(found[1])
        split: Split = "train" if number < DEV else "dev" if number < TEST else "test"
        for place, tree in enumerate(read_trees(text, name), start=1):
            yield f"wsj_{number:04}-{place}", split, tree


def _mrg_files(path: Path) -> list[tuple[str, str]]:
    """The names and texts of the .mrg files, in order."""
    if path.is_dir():
        files = sorted(path.rglob("*.mrg"))
        texts = [(file.name, decode(read_bytes(file), str(file))) for file in files]
    else:
        try:
            with zipfile.ZipFile(path) as archive:
                names = sorted(name for name in archive.namelist() if name.endswith(".mrg"))
                texts = [(name, decode(archive.read(name), name)) for name in names]
        except FileNotFoundError:
            raise DataError(f"no file at {path}") from None
        except (OSError, zipfile.BadZipFile) as error:
            raise DataError(f"{path} cannot be read ({error}); is it a whole .zip?") from None
    if not texts:
        raise DataError(f"{path}: no .mrg file is in it")
    return texts


def _lines(path: Path) -> Iterator[tuple[str, Split, Tree]]:
    stem = path.name.split(".")[0]
    for number, line in enumerate(decode(read_bytes(path), str(path)).splitlines(), start=1):
        split, _, text = line.partition("\t")
        trees = read_trees(text, f"{path}:{number}")
        if len(trees) != 1:
            raise DataError(f"{path}:{number}: {len(trees)} trees; a line is split<TAB>tree")
        yield f"{stem}-{number}", split_of(split, f"{path}:{number}"), trees[0]
