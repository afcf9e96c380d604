"""METEOR's score from counts: weighted precision and recall, and a penalty for many chunks.

The counts come from `meteor/`, which is imported when they are first needed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from sightline.metrics.base import Corpus, Floats, Metric, ScoreInfo

if TYPE_CHECKING:
    from sightline.metrics.meteor import Meteor

ALPHA, BETA, GAMMA, DELTA = 0.85, 0.2, 0.6, 0.75
WEIGHTS = (1.0, 0.6, 0.8, 0.6)  # exact, stem, synonym, paraphrase

# Columns of the statistics of one hypothesis and its best reference. They add up over a corpus,
# except that an item matched perfectly as one chunk is not charged for that chunk there, which
# is why chunks are stored twice.
HYPOTHESIS_LENGTH, REFERENCE_LENGTH, HYPOTHESIS_FUNCTION, REFERENCE_FUNCTION = range(4)
MATCHES = 4  # then for each way of matching: content words of hypothesis and reference, function
#              words of hypothesis and reference
CHUNKS, CORPUS_CHUNKS = 20, 21
SIZE = 22


def with_corpus_chunks(statistics: Floats) -> Floats:
    """Fill the last column from the others."""
    matched = statistics[..., MATCHES:CHUNKS].reshape(*statistics.shape[:-1], 4, 2, 2)
    totals = matched.sum((-3, -2))  # (…, 2) hypothesis, reference
    perfect = (totals == statistics[..., :2]).all(-1) & (statistics[..., CHUNKS] == 1)
    statistics[..., CORPUS_CHUNKS] = np.where(perfect, 0, statistics[..., CHUNKS])
    return statistics


def scores(statistics: Floats, chunk_column: int = CHUNKS) -> Floats:
    """The score of each row (…, SIZE) → (…); the sums are in METEOR's own order."""
    counts = statistics[..., MATCHES:CHUNKS].reshape(*statistics.shape[:-1], 4, 2, 2)
    lengths = statistics[..., :2]
    function = statistics[..., 2:4]
    weighted_lengths = DELTA * (lengths - function) + (1.0 - DELTA) * function  # (…, 2)
    weighted = np.zeros_like(lengths)
    for kind, share in ((0, DELTA), (1, 1.0 - DELTA)):
        for module, weight in enumerate(WEIGHTS):
            weighted = weighted + counts[..., module, kind, :] * weight * share
    totals = counts.sum((-3, -2))  # (…, 2)
    chunks = statistics[..., chunk_column]
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = weighted / weighted_lengths
        mean = 1.0 / ((1.0 - ALPHA) / rates[..., 0] + ALPHA / rates[..., 1])
        fragmentation = chunks / (totals.sum(-1) / 2.0)
        perfect = (totals == lengths).all(-1) & (chunks == 1)
        penalty = GAMMA * np.where(perfect, 0.0, fragmentation) ** BETA
        score = mean * (1.0 - penalty)
    return np.where(np.isnan(score), 0.0, np.maximum(score, 0.0))


class MeteorMetric(Metric):
    """METEOR 1.5 for English; its tables come from the installed package pycocoevalcap."""

    info: Mapping[str, ScoreInfo] = {"meteor": ScoreInfo("METEOR", 100)}

    @property
    def signature(self) -> str:
        return (
            "METEOR|version:1.5|lang:en|norm:yes|modules:exact,stem,synonym,paraphrase|tok:ptb"
            "|case:lc|references:max|like:pycocoevalcap"
        )

    @cached_property
    def _meteor(self) -> Meteor:
        from sightline.metrics.meteor import Meteor

        return Meteor()

    def statistics(self, corpus: Corpus) -> Floats:
        return self._meteor.statistics(corpus.tokenized_hypotheses, corpus.tokenized_references)

    def scores(self, sums: Floats) -> Floats:
        return scores(sums, CORPUS_CHUNKS)[..., None]

    def item_scores(self, statistics: Floats) -> Floats:
        return scores(statistics)[..., None]
