"""The candidates of one step of a beam search: which extensions of its hypotheses are the best.

Every value that the stepper gave is read about once; nothing here loops over rows or tokens.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.search_tree import Trace, Verdict, in_all
from sightline.steppers import SearchError


@dataclass(frozen=True)
class Found:
    """The 2k best extensions of each group, best first."""

    score: NDArray[np.float64]  # (A, G, 2k): summed log-probabilities, −inf where impossible
    row: NDArray[np.int64]  # (A, G, 2k): the stepper's row that is extended
    token: NDArray[np.int64]  # (A, G, 2k)
    log_prob: NDArray[np.float32]  # (A, G, 2k)
    live: NDArray[np.bool_]  # (A, G, 2k): possible, and not an end
    order: NDArray[np.int64]  # (A, G, k): the first k live ones; others where there are fewer

    @cached_property
    def _places(self) -> NDArray[np.int64]:
        """`order` counted from the first group of all."""
        return in_all(self.order, self.score.shape[-1])

    def pick(self, values: NDArray[Any]) -> NDArray[Any]:
        """Of values (A, G, 2k) those in `order`, (A, G, k)."""
        return values.take(self._places)

    def ending_score(self) -> NDArray[np.float64]:
        """The scores of those that end and rank among the first k, −inf elsewhere."""
        first = np.arange(self.score.shape[-1]) < self.order.shape[-1]
        return np.where(first & ~self.live, self.score, -np.inf)

    def verdict(self, active: NDArray[np.int64], kept: NDArray[np.bool_]) -> Verdict:
        went_on = np.zeros_like(self.live)
        np.put_along_axis(went_on, self.order, kept, axis=-1)
        example = np.broadcast_to(active[:, None, None], self.score.shape)
        ended = self.ending_score() > -np.inf
        return Verdict(example.ravel(), self.score.ravel(), went_on.ravel(), ended.ravel())

    def trace(
        self,
        origin: NDArray[np.int64],
        attention: NDArray[np.float32] | None,
        verdict: Verdict | None,
    ) -> Trace:
        flat = self.row.ravel(), self.token.ravel(), self.log_prob.ravel()
        return Trace(origin, *flat, attention, verdict)


def extend(
    log_probs: NDArray[np.float32],  # (rows, V)
    scores: NDArray[np.float64],  # (A, G, R)
    end: int | None,
    k: int,
    diversity: float,
) -> Found:
    """The 2k best extensions of every group, the groups in turn.

    A token's log-probability counts `diversity` less for each time that an earlier group goes on
    with it at this step (Vijayakumar et al. 2016): for the choice only, its score stays true. An
    ending is no such use.
    """
    (A, G, R), V = scores.shape, log_probs.shape[1]
    log_probs = log_probs.reshape(A, -1, V)  # (A, G·R, V); (A, 1, V) at the first step
    uses = np.zeros((A, V), dtype=np.float32) if G > 1 else None  # by earlier groups, this step
    examples = np.arange(A)[:, None]
    groups = []
    for g in range(G):
        first = g * R if log_probs.shape[1] == G * R else 0
        own = log_probs[:, first : first + R]  # (A, R, V)
        ranked = own if uses is None or g == 0 else own - diversity * uses[:, None]
        possible, slot, token = best(ranked, scores[:, g], 2 * k)  # (A, 2k)
        log_prob = own[examples, slot, token]
        live = possible & (token != (-1 if end is None else end))
        order = np.argsort(~live, axis=1, kind="stable")[:, :k]
        found = Found(
            score=np.where(possible, scores[examples, g, slot] + log_prob, -np.inf),
            row=examples * log_probs.shape[1] + first + slot,
            token=token,
            log_prob=log_prob,
            live=live,
            order=order,
        )
        if uses is not None:
            np.add.at(uses, (examples, found.pick(token)), found.pick(live))
        groups.append(found)
    fields = ("score", "row", "token", "log_prob", "live", "order")
    if G == 1:
        return Found(*(getattr(groups[0], f)[:, None] for f in fields))
    return Found(*(np.stack([getattr(group, f) for group in groups], axis=1) for f in fields))


def best(
    log_probs: NDArray[np.float32],  # (A, R, V)
    scores: NDArray[np.float64],  # (A, R)
    count: int,
) -> tuple[NDArray[np.bool_], NDArray[np.int64], NDArray[np.int64]]:
    """The `count` best of scores + log_probs per example: possible?, slot, token, each (A, count).

    Best first, ties to the lower slot and token. Every value is read once, for the maxima of
    strided blocks (token mod width); only blocks that can hold one of the best are looked into.
    """
    A, R, V = log_probs.shape
    width = min(V, max(64, V // 24))
    whole = V - V % width
    peaks = log_probs[..., :whole].reshape(A, R, -1, width).max(axis=2)  # (A, R, width)
    rest = peaks[..., : V - whole]
    np.maximum(rest, log_probs[..., whole:], out=rest)
    check_numbers(peaks)
    examples = np.arange(A)[:, None]
    blocks = contenders((scores[..., None] + peaks).reshape(A, -1), count)  # (A, n)
    slot, first = np.divmod(blocks, width)
    token = first[..., None] + np.arange(0, V, width)  # (A, n, W)
    values = log_probs[examples[..., None], slot[..., None], np.minimum(token, V - 1)]
    totals = np.where(token < V, values + scores[examples, slot][..., None], -np.inf)
    totals = totals.reshape(A, -1)

    places = contenders(totals, count)  # (A, ≥ count), or fewer where there are no more
    flat = (slot[..., None] * V + np.minimum(token, V - 1)).reshape(A, -1)[examples, places]
    order = np.lexsort((flat, -totals[examples, places]))[:, :count]
    found = totals[examples, places[examples, order]] > -np.inf
    slot, token = np.divmod(flat[examples, order], V)
    if (missing := count - order.shape[1]) > 0:  # a vocabulary smaller than the beam
        found, slot, token = (np.pad(a, ((0, 0), (0, missing))) for a in (found, slot, token))
    return found, slot, token


def contenders(totals: NDArray[np.float64], count: int) -> NDArray[np.int64]:
    """The places (A, n) of the `count` best of each row, in no order, and of all that tie."""
    size = totals.shape[1]
    if size <= count:
        return np.broadcast_to(np.arange(size), totals.shape)
    places = np.argpartition(totals, size - count, axis=1)[:, size - count :]
    threshold = np.take_along_axis(totals, places, axis=1).min(axis=1, keepdims=True)
    threshold = np.maximum(threshold, np.finfo(np.float64).min)  # ties at −inf do not matter
    n = int(np.count_nonzero(totals >= threshold, axis=1).max())
    if n > count:
        places = np.argpartition(totals, size - n, axis=1)[:, size - n :]
    return places


def without_repeats(
    log_probs: NDArray[np.float32],  # (N, V)
    written: NDArray[np.int64],  # (N, T): the tokens of each row so far
    n: int,
) -> NDArray[np.float32]:
    """A copy with −inf for every token that would complete an n-gram that its row already has."""
    log_probs = log_probs.copy()
    count = written.shape[1] - n + 1  # n-grams so far
    if count > 0:
        same = np.ones((len(written), count), dtype=bool)  # begins like the n-gram in the making?
        for i in range(n - 1):
            same &= written[:, i : i + count] == written[:, count + i, None]
        rows, places = np.nonzero(same)
        log_probs[rows, written[rows, places + n - 1]] = -np.inf
    return log_probs


def without_token(log_probs: NDArray[np.float32], token: int) -> NDArray[np.float32]:
    log_probs = log_probs.copy()
    log_probs[:, token] = -np.inf
    return log_probs


def check_numbers(values: NDArray[Any]) -> None:
    if np.isnan(values).any():
        raise SearchError(
            "the model gave NaN log-probabilities: its weights are not usable (training may have "
            "diverged); use an earlier checkpoint"
        )
