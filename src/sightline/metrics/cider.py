"""CIDEr: how alike two captions are in n-grams weighted by how rare these are.

`Cider()` is what the COCO evaluation prints as CIDEr; by its definition it is CIDEr-D (Vedantam et
al. 2015, eq. 4: counts clipped, and a Gaussian penalty on the difference in length). The plain
CIDEr of eq. 3 is `Cider(plain=True)`. Document frequencies come from the references that are scored
against, or from a file of `DocumentFrequencies`.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sightline.errors import DataError
from sightline.metrics.base import Corpus, Floats, MeanMetric, ScoreInfo, mean_statistics
from sightline.metrics.ngrams import ORDERS, Counts

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
        for n in range(1, ORDERS + 1):
            counted = _frequencies(corpus, n)
            pairs = zip(corpus.ngrams.texts(n), counted.astype(int).tolist(), strict=True)
            frequencies.update(pairs)
        return cls(len(references), frequencies)

    def save(self, path: Path | str) -> None:
        """Write one JSON object, compressed where the name ends in .gz."""
        with (gzip.open if str(path).endswith(".gz") else open)(path, "wt", encoding="utf-8") as f:
            json.dump({"documents": self.documents, "frequencies": dict(self.frequencies)}, f)

    @classmethod
    def load(cls, path: Path | str) -> DocumentFrequencies:
        """Read what `save` wrote."""
        try:
            with (gzip.open if str(path).endswith(".gz") else open)(
                path, "rt", encoding="utf-8"
            ) as f:
                content = json.load(f)
            return cls(int(content["documents"]), dict(content["frequencies"]))
        except (OSError, ValueError, TypeError, KeyError) as error:
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
        items, counts, owners = len(corpus.ids), corpus.ngrams, corpus.owners
        documents = self.frequencies.documents if self.frequencies else items
        # The reference measures length in bigrams.
        bigrams = np.maximum(counts.lengths - 1, 0)
        delta = (bigrams[owners] - bigrams[items:]).astype(np.float64)
        penalty = 1.0 if self.plain else np.exp(-(delta**2) / (2 * _SIGMA**2))

        similarity = np.zeros(len(owners))  # per reference, summed over n
        for n, order in enumerate(counts.orders, start=1):
            frequency = self._known(counts, n) if self.frequencies else _frequencies(corpus, n)
            idf = np.log(max(float(documents), 1.0)) - np.log(np.maximum(frequency, 1.0))  # (G,)
            weight = order.count * idf[order.gram]
            norm = np.sqrt(np.bincount(order.sentence, weight**2, minlength=len(counts.lengths)))

            keys = order.keys(np.concatenate([np.arange(items), owners]))
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


def _frequencies(corpus: Corpus, n: int) -> Floats:
    """The number of items whose references have each n-gram, (G,)."""
    items, order = len(corpus.ids), corpus.ngrams.orders[n - 1]
    keys = order.keys(np.concatenate([np.arange(items), corpus.owners]))
    seen = np.unique(keys[np.searchsorted(order.sentence, items) :])
    return np.bincount(seen % max(order.size, 1), minlength=order.size).astype(np.float64)
