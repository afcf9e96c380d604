"""The candidates of one step of a beam search: which extensions of its hypotheses are the best.

Every value that the stepper gave is read about once; nothing here loops over rows or tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.search.steppers import SearchError
from sightline.search.tree import Outcome, flat_index


@dataclass(frozen=True)
class Candidates:
    """The 2k best extensions of each group, best first."""

    score: NDArray[np.float64]  # (A, G, 2k): summed log-probabilities, −inf where impossible
    row: NDArray[np.int64]  # (A, G, 2k): the stepper's row that is extended
    token: NDArray[np.int64]  # (A, G, 2k)
    log_prob: NDArray[np.float32]  # (A, G, 2k)
    alive: NDArray[np.bool_]  # (A, G, 2k): possible, and not ended

    @property
    def k(self) -> int:
        result: int = self.score.shape[-1] // 2
        return result

    @cached_property
    def first_k_alive(self) -> bool:
        """Whether the first k of every group are alive: then none of them has ended."""
        return bool(self.alive[..., : self.k].all())

    @cached_property
    def order(self) -> NDArray[np.int64]:
        """(A, G, k): the first k that are alive; others where there are fewer."""
        return (~self.alive).argsort(axis=-1, kind="stable")[..., : self.k]

    @cached_property
    def _flat_order(self) -> NDArray[np.int64]:
        return flat_index(self.order, self.score.shape[-1])

    def pick(self, values: NDArray[Any]) -> NDArray[Any]:
        """Of values (A, G, 2k) those in `order`, (A, G, k)."""
        return values[..., : self.k] if self.first_k_alive else values.take(self._flat_order)

    def finished_score(self) -> NDArray[np.float64]:
        """The scores of those that have ended and rank among the first k, −inf elsewhere."""
        first = np.arange(self.score.shape[-1]) < self.k
        return np.where(first & ~self.alive, self.score, -np.inf)

    def outcome(self, active: NDArray[np.int64], kept: NDArray[np.bool_]) -> Outcome:
        kept_here = np.zeros_like(self.alive)
        np.put_along_axis(kept_here, self.order, kept, axis=-1)
        example = np.broadcast_to(active[:, None, None], self.score.shape)
        finished = self.finished_score() > -np.inf
        return Outcome(example.ravel(), self.score.ravel(), kept_here.ravel(), finished.ravel())


def extend(
    log_probs: NDArray[np.float32],  # (rows, V)
    scores: NDArray[np.float64],  # (A, G, R)
    end: int | None,
    k: int,
    diversity: float,
) -> Candidates:
    """The 2k best extensions of every group, the groups in turn.

    A token's log-probability counts `diversity` less for each time that an earlier group continues
    with it at this step (Vijayakumar et al. 2016): for the choice only, not in the score. The end
    token does not count as such a use.
    """
    (A, G, R), V = scores.shape, log_probs.shape[1]
    log_probs = log_probs.reshape(A, -1, V)  # (A, G·R, V); (A, 1, V) at the first step
    rows = log_probs.shape[1]
    uses = np.zeros((A, V), dtype=np.float32) if G > 1 else None  # by earlier groups, this step
    examples = np.arange(A)[:, None]
    groups = []
    for g in range(G):
        first = g * R if rows == G * R else 0
        ranked = log_probs[:, first : first + R]  # (A, R, V)
        if uses is not None and g > 0:
            ranked = ranked - diversity * uses[:, None]
        total, place = best(ranked, scores[:, g], 2 * k)  # (A, 2k)
        slot, token = np.divmod(place, V)
        row = slot + (examples * rows + first)
        log_prob = log_probs.take(row * V + token)
        if uses is not None:  # what was ranked is not the score
            true = scores[examples, g, slot] + log_prob
            total = np.where(total > -np.inf, true, -np.inf)
        group = Candidates(total, row, token, log_prob, _alive(total, token, end))
        if uses is not None:
            np.add.at(uses, (examples, group.pick(token)), group.pick(group.alive))
        groups.append(group)
    fields = ("score", "row", "token", "log_prob", "alive")
    if G == 1:
        return Candidates(*(getattr(groups[0], f)[:, None] for f in fields))
    return Candidates(*(np.stack([getattr(group, f) for group in groups], axis=1) for f in fields))


def extend_leading(
    log_probs: NDArray[np.float32],  # (rows, n): of each row's n ≥ 2k likeliest tokens, best first
    tokens: NDArray[np.int64],  # (rows, n)
    scores: NDArray[np.float64],  # (A, 1, R)
    end: int | None,
    k: int,
) -> Candidates:
    """As `extend` of a single group; none of the 2k best is missing, for each is its row's."""
    check_numbers(log_probs)
    A, n = len(scores), log_probs.shape[1]
    totals = (scores.reshape(-1, 1) + log_probs).reshape(A, 1, -1)  # (A, 1, R·n)
    order = (-totals).argsort(axis=2, kind="stable")[..., : 2 * k]  # ties: the lower row, token
    place = flat_index(order, totals.shape[2])
    total, token = totals.take(place), tokens.take(place)
    alive = _alive(total, token, end)
    return Candidates(total, place // n, token, log_probs.take(place), alive)


def _alive(
    total: NDArray[np.float64], token: NDArray[np.int64], end: int | None
) -> NDArray[np.bool_]:
    possible = total > -np.inf
    return possible if end is None else possible & (token != end)


def best(
    log_probs: NDArray[np.float32],  # (A, R, V)
    scores: NDArray[np.float64],  # (A, R)
    count: int,
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """The `count` best of scores + log_probs per example, and their places slot · V + token.

    Each (A, count), best first, ties to the lower place, −inf where there is no more. Every value
    is read once, for the maxima of strided blocks (token mod width); only blocks that can hold
    one of the best are looked into.
    """
    A, R, V = log_probs.shape
    width = min(V, max(64, V // 24))
    whole = V - V % width
    peaks = log_probs[..., :whole].reshape(A, R, -1, width).max(axis=2)  # (A, R, width)
    if whole < V:
        rest = peaks[..., : V - whole]
        np.maximum(rest, log_probs[..., whole:], out=rest)
    check_numbers(peaks)
    blocks = contenders((scores[..., None] + peaks).reshape(A, -1), count)  # (A, n)
    slot, token = np.divmod(blocks[..., None], width)  # (A, n, 1)
    token = token + np.arange(0, V, width)  # (A, n, W)
    place = slot * V + token
    before = scores.take(flat_index(slot[..., 0], R))  # (A, n)
    values = log_probs.take(flat_index(place.reshape(A, -1), R * V), mode="clip")
    totals = values.reshape(token.shape) + before[..., None]
    if whole < V:  # the last stripe is short
        totals = np.where(token < V, totals, -np.inf)
    totals, place = totals.reshape(A, -1), place.reshape(A, -1)

    some = flat_index(contenders(totals, count), totals.shape[1])  # (A, ≥ count), or all there are
    totals, place = totals.take(some), place.take(some)
    order = flat_index(np.lexsort((place, -totals))[:, :count], totals.shape[1])
    totals, place = totals.take(order), place.take(order)
    possible = totals > -np.inf
    if not possible.all():  # no token of a place that does not exist
        place = np.where(possible, place, 0)
    if (missing := count - totals.shape[1]) > 0:  # a vocabulary smaller than the beam
        totals = np.pad(totals, ((0, 0), (0, missing)), constant_values=-np.inf)
        place = np.pad(place, ((0, 0), (0, missing)))
    return totals, place


def contenders(totals: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """The places (A, n) of the `count` best of each row, in no order, and of all that tie."""
    size = totals.shape[1]
    if size <= count:
        return np.broadcast_to(np.arange(size), totals.shape)
    places = totals.argpartition(size - count, axis=1)[:, size - count :]
    threshold = totals.take(flat_index(places[:, :1], size))  # the least of them
    if np.count_nonzero(totals >= threshold) == places.size:
        return places
    threshold = np.maximum(threshold, np.finfo(np.float64).min)  # ties at −inf do not matter
    n = int(np.count_nonzero(totals >= threshold, axis=1).max())
    return totals.argpartition(size - n, axis=1)[:, size - n :] if n > count else places


def check_numbers(values: NDArray[Any]) -> None:
    if np.isnan(values.max(initial=-np.inf)):  # which passes a NaN on
        raise SearchError(
            "the model gave NaN log-probabilities: its weights are not usable (training may have "
            "diverged); use an earlier checkpoint"
        )
