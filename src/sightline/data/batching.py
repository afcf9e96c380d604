"""Which examples make up a batch: a function of (seed, epoch) alone, so that a run can be resumed
at any batch from its epoch and position.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Batches = list[NDArray[np.int64]]


def same_length(lengths: Sequence[int], size: int, seed: int, epoch: int) -> Batches:
    """Minibatches of one length, the length drawn at random (Xu et al. §4.3).

    Every example is used once an epoch; a length's last batch may be smaller.
    """
    rng = np.random.default_rng([seed, epoch])
    by_length: dict[int, list[int]] = {}
    for index, length in enumerate(lengths):
        by_length.setdefault(length, []).append(index)
    batches: Batches = []
    for length in sorted(by_length):
        members = rng.permutation(np.asarray(by_length[length], dtype=np.int64))
        batches += [members[i : i + size] for i in range(0, len(members), size)]
    return _shuffled(batches, rng)


def similar_length(lengths: Sequence[int], size: int, seed: int, epoch: int) -> Batches:
    """Minibatches of `size` examples of neighbouring lengths."""
    rng = np.random.default_rng([seed, epoch])
    order = np.argsort(_noisy(lengths, rng), kind="stable")
    return _shuffled([order[i : i + size] for i in range(0, len(order), size)], rng)


def token_budget(lengths: Sequence[int], tokens: int, seed: int, epoch: int) -> Batches:
    """Minibatches of neighbouring lengths whose padded size is at most `tokens`.

    An example longer than the budget is a batch by itself.
    """
    rng = np.random.default_rng([seed, epoch])
    batches: Batches = []
    current: list[int] = []
    longest = 0
    for index in np.argsort(_noisy(lengths, rng), kind="stable"):
        longest = max(longest, lengths[index])
        if current and longest * (len(current) + 1) > tokens:
            batches.append(np.asarray(current, dtype=np.int64))
            current, longest = [], lengths[index]
        current.append(int(index))
    if current:
        batches.append(np.asarray(current, dtype=np.int64))
    return _shuffled(batches, rng)


def by_weight(weights: Sequence[float], seed: int, epoch: int) -> NDArray[np.int64]:
    """Indices in order, each as often as its weight: 2.5 is twice, or three times."""
    draws = np.random.default_rng([seed, epoch, 1]).random(len(weights))
    return np.repeat(np.arange(len(weights)), (np.asarray(weights) + draws).astype(np.int64))


def stream_starts(
    total: int, streams: int, length: int, seed: int, epoch: int
) -> tuple[NDArray[np.int64], int]:
    """Where `streams` parallel readers of a text of `total` tokens begin, and for how many steps.

    Each reads `length` tokens at a time, in order, so that the state can be carried over. The text
    is read as a ring from an offset drawn each epoch, so that the cuts differ.
    """
    rng = np.random.default_rng([seed, epoch])
    share = total // streams
    steps = max(1, share // length)
    return int(rng.integers(total)) + np.arange(streams, dtype=np.int64) * share, steps


def _noisy(lengths: Sequence[int], rng: np.random.Generator) -> NDArray[np.float64]:
    """A little noise, so that examples have other neighbours each epoch."""
    return np.asarray(lengths) * rng.uniform(0.95, 1.05, size=len(lengths))


def _shuffled(batches: Batches, rng: np.random.Generator) -> Batches:
    return [batches[i] for i in rng.permutation(len(batches))]
