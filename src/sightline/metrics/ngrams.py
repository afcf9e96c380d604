"""The n-grams of many sentences, counted at once with NumPy for BLEU and CIDEr."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
ORDERS = 4


@dataclass(frozen=True)
class Order:
    """The n-grams of one length: entry e says that sentence[e] has gram[e] count[e] times.

    Entries are sorted by sentence, then by gram.
    """

    sentence: Ints  # (E,)
    gram: Ints  # (E,)
    count: Ints  # (E,)
    first: Ints  # (G,) where in the words of the corpus each gram first occurs

    @property
    def size(self) -> int:
        """How many different n-grams there are."""
        return len(self.first)

    def keys(self, group: Ints) -> Ints:
        """One number for each entry's (group, gram), the group given by sentence."""
        return group[self.sentence] * max(self.size, 1) + self.gram


@dataclass(frozen=True)
class Counts:
    """All n-grams of the sentences of some items, by length; the hypotheses come first."""

    owners: Ints  # (references,) the item of each
    words: list[str]
    ids: Ints  # (words,) by the vocabulary
    lengths: Ints  # (sentences,)
    orders: tuple[Order, ...]

    @property
    def items(self) -> int:
        return len(self.lengths) - len(self.owners)

    @property
    def groups(self) -> Ints:
        """The item of each sentence."""
        return np.concatenate([np.arange(self.items), self.owners])

    def texts(self, n: int) -> list[str]:
        """The n-grams of length n as words separated by spaces."""
        return [" ".join(self.words[at : at + n]) for at in self.orders[n - 1].first.tolist()]


def count(
    hypotheses: Sequence[str], references: Sequence[Sequence[str]], vocabulary: dict[str, int]
) -> Counts:
    """Count the n-grams of length 1 to 4 of sentences whose tokens white space separates.

    New words are added to the vocabulary. N-grams are in the order of their words in it.
    """
    owners = np.repeat(np.arange(len(hypotheses)), [len(texts) for texts in references])
    sentences = [*hypotheses, *(text for texts in references for text in texts)]
    split = [sentence.split() for sentence in sentences]
    words = [word for sentence in split for word in sentence]
    ids = np.array([vocabulary.setdefault(w, len(vocabulary)) for w in words], dtype=np.int64)
    lengths = np.array([len(sentence) for sentence in split], dtype=np.int64)
    sentence = np.repeat(np.arange(len(split)), lengths)
    ends = np.cumsum(lengths)[sentence] if len(words) else sentence  # where its sentence ends

    orders = []
    start = np.arange(len(words))  # where the n-grams of this length begin
    gram = ids
    for n in range(1, ORDERS + 1):
        if n > 1:
            fits = start + n <= ends[start]
            start = start[fits]
            gram = gram[fits] * len(vocabulary) + ids[start + n - 1]
        _, first, gram = np.unique(gram, return_index=True, return_inverse=True)
        orders.append(_order(sentence[start], gram, start[first]))
    return Counts(owners, words, ids, lengths, tuple(orders))


def _order(sentence: Ints, gram: Ints, first: Ints) -> Order:
    size = max(len(first), 1)
    keys, counts = np.unique(sentence * size + gram, return_counts=True)
    return Order(keys // size, keys % size, counts, first)
