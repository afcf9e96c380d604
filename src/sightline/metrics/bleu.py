"""BLEU-1 to 4 as the COCO evaluation computes it, with or without the brevity penalty.

Modified n-gram precisions, clipped by the most any one reference has; the length that counts is
that of the reference closest to the hypothesis (the shorter of two equally close). The tiny numbers
are the reference implementation's, which has no other smoothing for short texts.
"""

from __future__ import annotations

import numpy as np

from sightline.metrics.base import Corpus, Floats, Metric, ScoreInfo
from sightline.metrics.ngrams import ORDERS, Counts

_TINY = 1e-15  # so that nothing guessed scores 0
_SMALL = 1e-9


class Bleu(Metric):
    """Statistics: hypothesis length, reference length, then guessed and correct per length n."""

    def __init__(self, brevity_penalty: bool = True) -> None:
        self.brevity_penalty = brevity_penalty
        end, note = ("", "") if brevity_penalty else ("_nobp", " (no BP)")
        tolerance = {"bleu_4": {"int16": 0.05, "int8": 0.2}}
        keys = [f"bleu_{n}{end}" for n in range(1, ORDERS + 1)]
        self.info = {
            key: ScoreInfo(f"BLEU-{n}{note}", 100, tolerance=tolerance.get(key))
            for n, key in enumerate(keys, start=1)
        }

    @property
    def signature(self) -> str:
        penalty = "closest" if self.brevity_penalty else "none"
        return f"BLEU|n:1-{ORDERS}|tok:ptb|case:lc|brevity:{penalty}|smooth:none|like:pycocoevalcap"

    def statistics(self, corpus: Corpus) -> Floats:
        return np.concatenate(list(map(self._block, corpus.ngrams())))

    def _block(self, counts: Counts) -> Floats:
        items, owners = counts.items, counts.owners
        lengths, reference_lengths = counts.lengths[:items], counts.lengths[items:]
        guessed = np.maximum(lengths[:, None] - np.arange(ORDERS), 0)  # (N, 4)

        distance = np.abs(reference_lengths - lengths[owners])
        span = int(counts.lengths.max(initial=0)) + 1
        starts = np.searchsorted(owners, np.arange(items))
        closest = np.minimum.reduceat(distance * span + reference_lengths, starts) % span

        groups = counts.groups
        correct = np.zeros((items, ORDERS))
        for n, order in enumerate(counts.orders):
            keys = order.keys(groups)
            split = np.searchsorted(order.sentence, items)  # hypotheses come first
            wanted, allowed = _largest(keys[split:], order.count[split:])
            at = np.minimum(np.searchsorted(wanted, keys[:split]), max(len(wanted) - 1, 0))
            if len(wanted):
                clip = np.where(wanted[at] == keys[:split], allowed[at], 0)
                clipped = np.minimum(order.count[:split], clip)
                correct[:, n] = np.bincount(order.sentence[:split], clipped, minlength=items)
        return np.column_stack([lengths, closest, guessed, correct]).astype(np.float64)

    def scores(self, sums: Floats) -> Floats:
        length, wanted = sums[..., :1], sums[..., 1:2]
        guessed, correct = sums[..., 2 : 2 + ORDERS], sums[..., 2 + ORDERS :]
        precisions = (correct + _TINY) / (guessed + _SMALL)
        scores = np.cumprod(precisions, axis=-1) ** (1.0 / np.arange(1, ORDERS + 1))
        if self.brevity_penalty:
            ratio = (length + _TINY) / (wanted + _SMALL)
            scores = scores * np.exp(np.minimum(0.0, 1.0 - 1.0 / ratio))
        return scores


def _largest(keys: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The largest count of each key, keys sorted."""
    order = np.argsort(keys, kind="stable")
    unique, starts = np.unique(keys[order], return_index=True)
    return unique, np.maximum.reduceat(counts[order], starts) if len(keys) else counts
