"""Codec: between token ids and what people write, with the limits that a search needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sightline.config import SearchConfig
from sightline.data.vocabulary import BEGIN, END, UNKNOWN, Vocabulary, function_words
from sightline.errors import UserError
from sightline.search.constraints import Constraint
from sightline.types import Description, Hypothesis, Layout


class Codec:
    """The tokens of one vocabulary; a task overrides what it does otherwise."""

    begin: int = BEGIN
    end: int | None = END

    def __init__(self, vocab: Vocabulary, search: SearchConfig) -> None:
        self.vocab = vocab
        self.search = search

    @property
    def banned(self) -> tuple[int, ...]:
        """Tokens that are never written."""
        return (UNKNOWN,)

    @cached_property
    def content_words(self) -> NDArray[np.int64]:
        """The tokens that are words with a meaning of their own: nouns, verbs, adjectives …"""
        return np.flatnonzero([token not in function_words() for token in self.vocab.tokens])

    @cached_property
    def sure_from(self) -> NDArray[np.float32]:
        """How sure an encoder has to be of each token for it to be named, (V,)."""
        return self.least_sure()

    def least_sure(self) -> NDArray[np.float32]:
        """The same, computed: every search takes it, so `sure_from` keeps it."""
        least = np.full(len(self.vocab), self.search.sure, np.float32)
        # of these the decoder knows by itself what to say ("elephants", "a tennis racquet")
        least[: self.search.common] = np.inf
        return least

    def repeats(self, tokens: Sequence[int]) -> bool:
        """Whether a content word occurs twice."""
        words = np.array(tokens)[np.isin(tokens, self.content_words)]
        return len(np.unique(words)) < len(words)

    def max_length(self, size: int) -> int:
        """The longest output for an input of `size` positions, the end token included.

        It depends on nothing else, so that a batch equals its singles.
        """
        return self.search.max_length

    def constraints(self, layouts: Sequence[Layout | None], longest: int) -> list[Constraint]:
        """What these examples' outputs, of at most `longest` tokens, have to keep to."""
        return []

    def split(self, text: str) -> list[str]:
        """The tokens of a text as written, those that the vocabulary lacks too."""
        return self.vocab.split(text)

    def ids(self, tokens: Sequence[str]) -> list[int]:
        return [max(UNKNOWN, self.vocab.ids.get(token, UNKNOWN)) for token in tokens]

    def text(self, tokens: Sequence[str]) -> str:
        return self.vocab.text(tokens)

    def prefix(self, text: str, name: str = "prefix") -> list[int]:
        """The tokens that an output has to begin with; an unknown word is an error."""
        tokens = self.split(text)
        ids = self.ids(tokens)
        if UNKNOWN in ids:
            unknown = tokens[ids.index(UNKNOWN)]
            raise UserError(f"the {name} has {unknown!r}, which is not in the model's vocabulary")
        return ids

    def description(self, hypothesis: Hypothesis, layout: Layout | None) -> Description:
        """A hypothesis in words; attention without the padding of its batch."""
        kept = len(hypothesis.tokens) - hypothesis.finished  # the end token is not a word
        weights = hypothesis.attention
        if layout is not None and hypothesis.named:
            labels = tuple(self.vocab.tokens[token] for token in hypothesis.named)
            layout = replace(layout, labels=labels)
        if weights is not None:
            weights = weights[:kept] if layout is None else weights[:kept, : len(layout)]
        tokens = self.words(hypothesis.tokens[:kept], weights, layout)
        return Description(
            text=self.text(tokens),
            tokens=tuple(tokens),
            score=hypothesis.score,
            log_probs=tuple(float(value) for value in hypothesis.log_probs[:kept]),
            attention=weights,
            layout=None if weights is None else layout,
        )

    def words(
        self, tokens: Sequence[int], weights: NDArray[np.float32] | None, layout: Layout | None
    ) -> list[str]:
        """The names of tokens; a task may replace unknown ones by what they attended to."""
        names = self.names(layout)
        return [names[token] for token in tokens]

    def names(self, layout: Layout | None) -> Sequence[str]:
        """What each token is called; those of a pointer, by the positions that they point at."""
        return self.vocab.tokens

    def shortlist(
        self, layouts: Sequence[Layout | None], common: int
    ) -> tuple[list[int], NDArray[np.bool_]]:
        """The tokens (C,) that these examples may need, and which each may write (B, C)."""
        raise UserError("this model has no lexicon to make shortlists from")
