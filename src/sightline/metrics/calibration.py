"""Probabilities that come true as often as they say: fitting them, and whether they do."""

from __future__ import annotations

import numpy as np

from sightline.errors import UserError
from sightline.metrics.base import Floats

BINS = 10
RIDGE = 1.0  # on standardised weights: it only keeps those of nearly equal features finite


def logistic(features: Floats, right: Floats) -> tuple[float, Floats]:
    """Bias and weights (K,) of p(right) for features (N, K) and outcomes (N,): Newton's method."""
    if len(right) < 2 * features.shape[1] or right.min() == right.max():
        raise UserError(
            f"{int(right.sum())} of {len(right)} items are right; to calibrate, give more items, "
            "some right and some wrong"
        )
    mean, scale = features.mean(0), np.maximum(features.std(0), 1e-9)
    rows = np.column_stack([np.ones(len(right)), (features - mean) / scale])
    ridge = np.diag([0.0, *[RIDGE] * features.shape[1]])
    found = np.zeros(rows.shape[1])
    for _ in range(25):
        p = 1 / (1 + np.exp(-rows @ found))
        curvature = (rows * (p * (1 - p))[:, None]).T @ rows + ridge
        found += np.linalg.solve(curvature, rows.T @ (right - p) - ridge @ found)
    weights = found[1:] / scale
    return float(found[0] - weights @ mean), weights


def reliability(confidence: Floats, right: Floats, bins: int = BINS) -> Floats:
    """(bins, 3): mean confidence, share of right ones and size of bins of about equal size."""
    order = np.argsort(confidence, kind="stable")
    parts = [part for part in np.array_split(order, bins) if len(part)]
    return np.array([[confidence[p].mean(), right[p].mean(), len(p)] for p in parts])


def calibration_error(confidence: Floats, right: Floats, bins: int = BINS) -> float:
    """The expected calibration error (ECE): how far the two are apart in a bin, on average."""
    rows = reliability(confidence, right, bins)
    return float(np.abs(rows[:, 0] - rows[:, 1]) @ rows[:, 2] / len(right))


def discrimination(confidence: Floats, right: Floats) -> float:
    """How often a right one has more confidence than a wrong one: the area under the ROC curve."""
    good, bad = np.sort(confidence[right > 0]), np.sort(confidence[right == 0])
    below = np.searchsorted(bad, good, "left") + np.searchsorted(bad, good, "right")
    return float(below.sum() / (2 * max(1, len(good) * len(bad))))
