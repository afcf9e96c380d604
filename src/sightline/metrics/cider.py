"""CIDEr: how alike two captions are in n-grams weighted by how rare these are.

`Cider()` is what the COCO evaluation prints as CIDEr; by its definition it is CIDEr-D (Vedantam et
al. 2015, eq. 4: counts clipped, and a Gaussian penalty on the difference in length). The plain
CIDEr of eq. 3 is `Cider(plain=True)`. Document frequencies come from the references that are scored
against, or from a file of `DocumentFrequencies`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from sightline.errors import DataError
from sightline.media.text import read_bytes
from sightline.metrics.base import Corpus, Floats, MeanMetric, ScoreInfo, mean_statistics
from sightline.metrics.ngrams import ORDERS, Counts, Ints

_SIGMA = 6.0
_INFO = {
    "cider": ScoreInfo("CIDEr", 100, tolerance={"int16": 0.05, "int8": 0.3}),
    "cider_d": ScoreInfo("CIDEr-D", 100),
    "cider_plain": ScoreInfo("CIDEr (plain)", 100),
}


@dataclass(frozen=True)
class DocumentFrequencies:
    """In how many documents (the references of one item) each n-gram occurs."""

    documents: int
    frequencies: Mapping[str, int]  # words separated by spaces -> documents

    @classmethod
    def of(cls, references: Mapping[Any, Sequence[str]]) -> DocumentFrequencies:
        """Count the references of a corpus."""
        corpus = Corpus.of(dict.fromkeys(references, ""), references)
        frequencies: dict[str, int] = {}
        for counts in corpus.ngrams():
            for n in range(1, ORDERS + 1):
                found = _frequencies(counts, n).astype(int).tolist()
                for text, frequency in zip(counts.texts(n), found, strict=True):
                    frequencies[text] = frequencies.get(text, 0) + frequency
        return cls(len(references), frequencies)

    def save(self, path: Path | str) -> None:
        """Write one JSON object, compressed where the name ends in .gz."""
        with (gzip.open if str(path).endswith(".gz") else open)(path, "wt", encoding="utf-8") as f:
            json.dump({"documents": self.documents, "frequencies": dict(self.frequencies)}, f)

    @classmethod
    def load(cls, path: Path | str) -> DocumentFrequencies:
        """Read what `save` wrote."""
        try:
            content = json.loads(read_bytes(path))
            return cls(int(content["documents"]), dict(content["frequencies"]))
        except (ValueError, TypeError, KeyError, RecursionError) as error:
            raise DataError(
                f"{path}: not a file of document frequencies ({error}); "
                "write one with sightline.metrics.DocumentFrequencies.of(references).save(path)"
            ) from None


class Cider(MeanMetric):
    """CIDEr-D, or plain CIDEr; the statistic of an item is its score."""

    def __init__(
        self,
        plain: bool = False,
        key: str = "cider",
        frequencies: DocumentFrequencies | None = None,
    ) -> None:
        self.plain, self.frequencies = plain, frequencies
        self.info = {key: _INFO[key]}

    @property
    def signature(self) -> str:
        kind = "CIDEr|clip:no" if self.plain else f"CIDEr-D|sigma:{_SIGMA:g}"
        source = f"file({self.frequencies.documents})" if self.frequencies else "references"
        return f"{kind}|n:1-{ORDERS}|df:{source}|tok:ptb|case:lc|like:pycocoevalcap"

    def statistics(self, corpus: Corpus) -> Floats:
        documents = len(corpus.ids)
        frequencies: Callable[[Counts, int], Floats] = _frequencies
        if self.frequencies:
            documents, frequencies = self.frequencies.documents, self._known
        elif len(corpus.bounds) > 2:
            frequencies = _Repeated(corpus).frequencies
        block = partial(self._block, documents, frequencies)
        return np.concatenate(list(map(block, corpus.ngrams())))

    def _block(
        self, documents: int, frequencies: Callable[[Counts, int], Floats], counts: Counts
    ) -> Floats:
        items, owners, groups = counts.items, counts.owners, counts.groups
        # The reference measures length in bigrams.
        bigrams = np.maximum(counts.lengths - 1, 0)
        delta = (bigrams[owners] - bigrams[items:]).astype(np.float64)
        penalty = 1.0 if self.plain else np.exp(-(delta**2) / (2 * _SIGMA**2))

        similarity = np.zeros(len(owners))  # per reference, summed over n
        for n, order in enumerate(counts.orders, start=1):
            frequency = np.maximum(frequencies(counts, n), 1.0)  # (G,)
            idf = np.log(max(float(documents), 1.0)) - np.log(frequency)
            weight = order.count * idf[order.gram]
            norm = np.sqrt(np.bincount(order.sentence, weight**2, minlength=len(counts.lengths)))

            keys = order.keys(groups)
            split = np.searchsorted(order.sentence, items)  # hypotheses come first
            if not split:
                continue
            at = np.minimum(np.searchsorted(keys[:split], keys[split:]), split - 1)
            mine = np.where(keys[:split][at] == keys[split:], weight[:split][at], 0.0)
            theirs = weight[split:]
            product = mine * theirs if self.plain else np.minimum(mine, theirs) * theirs
            dot = np.bincount(order.sentence[split:] - items, product, minlength=len(owners))
            norms = norm[owners] * norm[items:]
            similarity += dot / np.where(norms != 0, norms, 1.0) * penalty
        per_item = np.bincount(owners, similarity, minlength=items)
        return mean_statistics(10.0 * per_item / ORDERS / np.bincount(owners, minlength=items))

    def _known(self, counts: Counts, n: int) -> Floats:
        assert self.frequencies is not None
        known = self.frequencies.frequencies
        return np.array([known.get(text, 0) for text in counts.texts(n)], dtype=np.float64)


def _frequencies(counts: Counts, n: int) -> Floats:
    """The number of items whose references have each n-gram, (G,)."""
    order = counts.orders[n - 1]
    keys = order.keys(counts.groups)
    seen = np.unique(keys[np.searchsorted(order.sentence, counts.items) :])
    return np.bincount(seen % max(order.size, 1), minlength=order.size).astype(np.float64)


class _Repeated:
    """The n-grams that the references of several items of a large corpus have, and how many items.

    Every other n-gram counts as one item's. Parts of a repeated n-gram are repeated themselves, so
    that an n-gram of three or four words is one number made of the places of its bigrams.
    """

    def __init__(self, corpus: Corpus) -> None:
        self.words = len(corpus.vocabulary)
        self.known: dict[int, tuple[Ints, Floats]] = {}  # by length: sorted keys, their items
        for lengths in ((1, 2), (3, 4)):
            parts: dict[int, list[tuple[Ints, Floats]]] = {n: [] for n in lengths}
            for counts in corpus.ngrams():
                for n in lengths:
                    keys, items = self._keys(counts, n), _frequencies(counts, n)
                    kept = (keys >= 0) & (items > 0)
                    parts[n].append((keys[kept], items[kept]))
                del counts  # before the next block is counted
            self.known |= {n: _repeated(parts[n]) for n in lengths}

    def frequencies(self, counts: Counts, n: int) -> Floats:
        """The number of items whose references have each n-gram of a block, (G,), 1 if unknown."""
        known, items = self.known[n]
        place = _places(known, self._keys(counts, n))
        return np.where(place >= 0, items[place], 1.0) if len(items) else np.ones(len(place))

    def _keys(self, counts: Counts, n: int) -> Ints:
        """One number for each n-gram of a block, (G,); below 0 where a bigram is not known."""
        ids, first = counts.ids, counts.orders[n - 1].first
        if n == 1:
            return ids[first]
        bigram = ids[first] * self.words + ids[first + 1]
        if n == 2:
            return bigram
        known, _ = self.known[2]
        start = _places(known, bigram)
        if n == 3:
            return start * self.words + ids[first + 2]
        end = _places(known, ids[first + 2] * self.words + ids[first + 3])
        return np.where((start >= 0) & (end >= 0), start * len(known) + end, -1)


def _places(known: Ints, keys: Ints) -> Ints:
    """Where each key is among sorted ones, -1 if it is not."""
    if not len(known):
        return np.full(len(keys), -1)
    place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[place] == keys, place, -1)


def _repeated(parts: Sequence[tuple[Ints, Floats]]) -> tuple[Ints, Floats]:
    """The keys of several blocks that more than one item has, sorted, and their items."""
    keys, inverse = np.unique(np.concatenate([keys for keys, _ in parts]), return_inverse=True)
    totals = np.bincount(inverse, np.concatenate([items for _, items in parts]))
    items = totals.astype(np.float64)
    return keys[items > 1], items[items > 1]
