"""Perplexity: the exponential of the mean negative log-likelihood per token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from sightline.errors import DataError
from sightline.metrics.base import Floats, Metric, ScoreInfo


class Perplexity(Metric):
    """Statistics: negative log-likelihood (natural logarithm) and tokens."""

    info: Mapping[str, ScoreInfo] = {
        "perplexity": ScoreInfo("Perplexity", higher_is_better=False, decimals=3)
    }

    @property
    def signature(self) -> str:
        return "PPL|per:token|log:e"

    def statistics(self, corpus: Sequence[Sequence[float]]) -> Floats:
        """From the log-probabilities of each item's tokens."""
        for number, values in enumerate(corpus):
            if any(not value <= 0 for value in values):
                raise DataError(f"item {number}: log-probabilities must be at most 0")
        return np.array([(-sum(values), len(values)) for values in corpus], dtype=np.float64)

    def scores(self, sums: Floats) -> Floats:
        with np.errstate(over="ignore"):  # a token of probability 0 makes it infinite
            return np.exp(sums[..., :1] / np.maximum(sums[..., 1:], 1.0))
