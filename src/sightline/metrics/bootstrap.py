"""How sure a score is: bootstrap intervals, and the paired bootstrap between two systems.

Items are drawn with replacement (Koehn 2004); since scores follow from sums of statistics, a draw
is a row of counts and a thousand draws are one matrix product. Document frequencies (CIDEr) stay
those of the whole corpus.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from sightline.metrics.base import Floats, Metric

RESAMPLES = 1000
SEED = 12345
LEVEL = 0.95
_CELLS = 4_000_000  # draws are made in blocks of about this many counts


def draws(items: int, resamples: int = RESAMPLES, seed: int = SEED) -> Iterator[Floats]:
    """How often each item is drawn in each resample, in blocks (b, N)."""
    random = np.random.default_rng(seed)
    block = max(1, min(resamples, _CELLS // max(items, 1)))
    for start in range(0, resamples, block):
        rows = min(block, resamples - start)
        chosen = random.integers(0, items, size=(rows, items))
        chosen += np.arange(rows)[:, None] * items
        yield np.bincount(chosen.ravel(), minlength=rows * items).reshape(rows, items).astype(float)


def resample(
    metrics: Sequence[Metric],
    statistics: Sequence[Floats],
    resamples: int = RESAMPLES,
    seed: int = SEED,
) -> list[Floats]:
    """The corpus scores of every resample, (resamples, K) for each metric."""
    blocks: list[list[Floats]] = [[] for _ in metrics]
    for counts in draws(len(statistics[0]), resamples, seed):
        for metric, rows, scores in zip(metrics, statistics, blocks, strict=True):
            scores.append(metric.scores(counts @ rows))
    return [np.concatenate(scores) for scores in blocks]


def interval(samples: Floats, level: float = LEVEL) -> Floats:
    """The lower and upper bounds of the middle `level` of the samples, (2, K)."""
    tail = 50 * (1 - level)
    bounds: Floats = np.percentile(samples, [tail, 100 - tail], axis=0)
    return bounds


def p_value(samples: Floats) -> Floats:
    """Two-sided p, (K,), that the differences of paired resamples (resamples, K) are 0."""
    below, above = (samples <= 0).mean(axis=0), (samples >= 0).mean(axis=0)
    p: Floats = np.minimum(1.0, 2 * np.minimum(below, above))
    return p
