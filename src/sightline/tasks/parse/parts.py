"""A parser without PyTorch: its reader of sentences, and the trees that it writes."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sightline.data.spelling import spelled
from sightline.data.trees import Tree, build, read_trees, words_of
from sightline.data.vocabulary import SPECIALS, UNKNOWN, VOCAB, Vocabulary
from sightline.errors import DataError, UserError
from sightline.runtime.codec import Codec
from sightline.runtime.describer import Describer
from sightline.search.constraints import Constraint
from sightline.search.well_formed import CLOSES, LEAF, NEVER, OPENS, WellFormed
from sightline.tasks.parse.recipe import ParseRecipe
from sightline.types import Description, Hypothesis, Inputs, Layout, Stream

SOURCE_VOCAB = "source_vocab.json"
_ENDS_A_WORD = re.compile(r"\)(?=[\s)]|$)")  # in brackets; a linearised tree has )LABEL


@dataclass(frozen=True)
class WordReader:
    """A sentence as the ids of its words, and with `spelling` as their features."""

    vocab: Vocabulary
    longest: int
    spelling: bool = False
    takes: Literal["file", "text"] = "text"
    batch: int = 64

    def read(self, source: str, *, whole: bool = False) -> list[Inputs]:
        words = words_of(source)
        if len(words) > self.longest:
            raise UserError(
                f"a sentence of {len(words):,} words, beginning {' '.join(words[:5])!r}; this "
                f"parser reads at most {self.longest}: give one sentence at a time"
            )
        return [self.inputs(words)] if words else []

    def inputs(self, words: Sequence[str]) -> Inputs:
        streams = {"tokens": Stream.ragged([np.array([self._id(word) for word in words])])}
        if self.spelling:
            streams["spelling"] = Stream.ragged([spelled(words)])
        return Inputs(1, streams, (Layout.words(words),))

    def _id(self, word: str) -> int:
        ids = self.vocab.ids
        return max(UNKNOWN, ids.get(word, ids.get(word.lower(), UNKNOWN)))


class TreeCodec(Codec):
    """Linearised trees, of which only well-formed ones are written; their text is in brackets."""

    def __init__(self, vocab: Vocabulary, recipe: ParseRecipe) -> None:
        super().__init__(vocab, recipe.search)
        self.tags = recipe.tags

    @cached_property
    def _brackets(self) -> tuple[NDArray[np.int8], NDArray[np.int64]]:
        """Whether each token opens, closes or is a leaf; the label of each."""
        names, known = self.vocab.tokens, {name: i for i, name in enumerate(self.vocab.tokens)}
        kinds = {"(": OPENS, ")": CLOSES}
        kind = [kinds.get(name[0], LEAF) if len(name) > 1 else LEAF for name in names]
        kind[: len(SPECIALS)] = [NEVER] * len(SPECIALS)
        labels = [known.get(f"({name[1:]}", i) for i, name in enumerate(names)]
        return np.array(kind, np.int8), np.array(labels)

    def constraints(self, layouts: Sequence[Layout | None], longest: int) -> list[Constraint]:
        words = [len(layout) if layout else 0 for layout in layouts]
        return [WellFormed(*self._brackets, words, longest)]

    def max_length(self, size: int) -> int:
        return min(self.search.max_length, 10 + 4 * size)  # the treebank's longest: 4 per word

    def split(self, text: str) -> list[str]:
        """The tokens of a tree in brackets, or of one that is linearised."""
        if not _ENDS_A_WORD.search(text):
            return text.split()
        trees = read_trees(text)
        if len(trees) != 1:
            raise DataError(f"{len(trees)} trees in {text!r}; give one")
        return trees[0].tokens(tags=self.tags)

    def description(self, hypothesis: Hypothesis, layout: Layout | None) -> Description:
        found = super().description(hypothesis, layout)
        tree = build(found.tokens, layout.labels if layout else ())
        return replace(found, text=tree.brackets())


def tree_of(description: Description) -> Tree | None:
    """The tree, with the steps at which the model opened and closed each bracket."""
    if not description.tokens:
        return None
    (tree,) = read_trees(description.text)
    return build(description.tokens, [str(leaf.word) for leaf in tree.leaves()])


def reader(folder: Path, recipe: ParseRecipe, about: Mapping[str, Any]) -> WordReader:
    vocab = Vocabulary.load(folder / SOURCE_VOCAB)
    return WordReader(vocab, recipe.longest, recipe.encoder.spelling)


def codec(folder: Path, recipe: ParseRecipe) -> TreeCodec:
    return TreeCodec(Vocabulary.load(folder / VOCAB), recipe)


def ensemble(first: Describer, *others: Describer) -> Describer:
    """Parsers with the same vocabularies as one."""
    for number, other in enumerate(others, start=2):
        same = other.codec.vocab == first.codec.vocab and other.reader == first.reader
        if not same:
            raise UserError(
                f"model {number} knows other words or labels than the first; an ensemble needs "
                "models that were trained on the same trees with the same options"
            )
    return first.ensemble(*others)
