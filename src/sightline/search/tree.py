"""What a search remembers of its steps, and what it hands out: snapshots, hypotheses, the tree.

Each step leaves its candidates as arrays with back-pointers. Nothing else is kept per hypothesis:
tokens, log-probabilities and attention are walked together from a leaf to the root when read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.data.vocabulary import UNKNOWN
from sightline.types import Hypothesis


@dataclass(frozen=True)
class Trace:
    """The C candidates of one step, each the extension of one of the stepper's R rows."""

    origin: NDArray[np.int64]  # (R,): the candidate of the step before that each row continues
    row: NDArray[np.int64]  # (C,)
    token: NDArray[np.int64]  # (C,)
    log_prob: NDArray[np.float32]  # (C,)
    attention: NDArray[np.float32] | None  # (R, M)
    outcome: Outcome | None = None  # only where the tree is kept


@dataclass(frozen=True)
class Outcome:
    """What became of the candidates of one step; only the tree needs it."""

    example: NDArray[np.int64]  # (C,)
    score: NDArray[np.float64]  # (C,): summed log-probabilities, −inf where there is no candidate
    kept: NDArray[np.bool_]  # (C,): is extended at the next step
    finished: NDArray[np.bool_]  # (C,): ended with the end token, among the best


@dataclass(frozen=True)
class Leaves:
    """The last tokens of hypotheses, S places per example; a score of −inf marks an empty one."""

    score: NDArray[np.float64]  # (B, S)
    step: NDArray[np.int64]  # (B, S): 0 is the root
    position: NDArray[np.int64]  # (B, S): the candidate within that step
    finished: NDArray[np.bool_]  # (B, S)

    @staticmethod
    def root(B: int, S: int) -> Leaves:
        zeros = np.zeros((B, S), dtype=np.int64)
        return Leaves(np.zeros((B, S)), zeros, zeros, np.zeros((B, S), dtype=bool))

    def itself(self) -> Leaves:
        return self

    def replaced(self, index: Any, score: Any, step: Any, position: Any, finished: Any) -> Leaves:
        """A copy with new values at `index`; snapshots of earlier steps keep their own."""
        copies = [array.copy() for array in vars(self).values()]
        for array, values in zip(copies, (score, step, position, finished), strict=True):
            array[index] = values
        return Leaves(*copies)


@dataclass(frozen=True)
class Pool:
    """Places for hypotheses, per example and group, best first; −inf marks an empty one."""

    score: NDArray[np.float64]  # (A, G, n), length-normalised
    step: NDArray[np.int64]  # (A, G, n)
    position: NDArray[np.int64]  # (A, G, n): the candidate within that step

    @staticmethod
    def empty(A: int, G: int, n: int) -> Pool:
        zeros = np.zeros((A, G, n), dtype=np.int64)
        return Pool(np.full((A, G, n), -np.inf), zeros, zeros)

    @staticmethod
    def root(A: int, G: int, n: int) -> Pool:
        """The hypothesis without tokens, once per group."""
        pool = Pool.empty(A, G, n)
        pool.score[..., 0] = 0.0
        return pool

    @staticmethod
    def at(score: NDArray[np.float64], step: int, position: NDArray[np.int64]) -> Pool:
        return Pool(score, np.full(score.shape, step), position)

    def __getitem__(self, examples: NDArray[np.bool_]) -> Pool:
        return Pool(self.score[examples], self.step[examples], self.position[examples])

    def join(self, score: NDArray[np.float64], step: int, position: NDArray[np.int64]) -> Pool:
        new = Pool.at(score, step, position)
        return self._both(new, lambda mine, others: np.concatenate([mine, others], axis=2))

    def where(self, mine: NDArray[np.bool_], other: Pool) -> Pool:
        """This pool's groups where `mine` (A, G), else the other's."""
        return self._both(other, lambda a, b: np.where(mine[..., None], a, b))

    def best(self, n: int) -> Pool:
        order = np.argsort(-self.score, axis=2, kind="stable")[..., :n]
        places = flat_index(order, self.score.shape[2])
        return Pool(self.score.take(places), self.step.take(places), self.position.take(places))

    def filling(self, finished: Pool, done: NDArray[np.bool_]) -> Pool:
        """Of the partial hypotheses of examples that are done, those that finished ones leave
        room for."""
        n = self.score.shape[2]
        room = n - (finished.score > -np.inf).sum(axis=2, keepdims=True)
        surplus = done[:, None, None] & (np.arange(n) >= room)
        return Pool(np.where(surplus, -np.inf, self.score), self.step, self.position)

    def leaves_with(self, partial: Pool) -> tuple[Any, Any, Any, Any]:
        """Score, step, position and finished? of both, (A, S) each, these finished ones first."""
        A, G, n = self.score.shape
        both = self._both(partial, lambda a, b: np.stack([a, b], axis=1).reshape(A, 2 * G * n))
        finished = np.repeat([[True, False]], G * n, axis=1)
        return both.score, both.step, both.position, np.repeat(finished, A, axis=0)

    def _both(self, other: Pool, combine: Callable[[Any, Any], Any]) -> Pool:
        return Pool(
            combine(self.score, other.score),
            combine(self.step, other.step),
            combine(self.position, other.position),
        )


@dataclass(frozen=True)
class TreeNode:
    """One candidate that a beam search considered; `vars(node)` is ready for JSON."""

    id: int  # counted from 0 in each example, in the order considered
    parent: int | None  # None: it begins an output
    step: int  # from 1
    token: int
    log_prob: float
    score: float  # summed log-probabilities from the root
    kept: bool  # is extended at the next step
    finished: bool  # joined the finished hypotheses


@dataclass(frozen=True)
class Snapshot:
    """A search after one of its steps; what is read of it is computed when it is read."""

    step: int
    done: bool
    _history: list[Trace]  # the search appends to it; nothing in it changes
    _find_leaves: Callable[[], Leaves]
    _n_best: int | None = None  # None: all, unranked
    _examples_done: NDArray[np.bool_] | None = None  # (B,)
    _named: NDArray[np.int64] | None = None  # (B, M): ContextSet.tokens

    @cached_property
    def _leaves(self) -> Leaves:
        return self._find_leaves()

    @cached_property
    def hypotheses(self) -> list[list[Hypothesis]]:
        """Per example. A beam's come best first: while an example is searched finished and
        partial ones ranked together, at its end the partial ones after the finished ones.
        Those of `sample` come in the order of its random streams."""
        return [self._hypotheses_of(example) for example in range(len(self._leaves.score))]

    @property
    def newest_token(self) -> int:
        """The token that this step gave the first candidate: for showing one sampled text as it
        is written, without walking back over all of it."""
        return int(self._history[self.step - 1].token[0])

    @cached_property
    def tree(self) -> list[list[TreeNode]] | None:
        """Per example, every candidate considered up to this step; None unless kept."""
        traces = self._history[: self.step]
        if not traces or traces[0].outcome is None:
            return None
        nodes: list[list[TreeNode]] = [[] for _ in self._leaves.score]
        before: list[int | None] = []  # the node id of each candidate of the step before
        for step, trace in enumerate(traces, start=1):
            ids: list[int | None] = [None] * len(trace.token)
            assert trace.outcome is not None
            for c in np.flatnonzero(trace.outcome.score > -np.inf).tolist():
                siblings = nodes[trace.outcome.example[c]]
                ids[c] = len(siblings)
                siblings.append(
                    TreeNode(
                        id=len(siblings),
                        parent=before[trace.origin[trace.row[c]]] if step > 1 else None,
                        step=step,
                        token=int(trace.token[c]),
                        log_prob=float(trace.log_prob[c]),
                        score=float(trace.outcome.score[c]),
                        kept=bool(trace.outcome.kept[c]),
                        finished=bool(trace.outcome.finished[c]),
                    )
                )
            before = ids
        return nodes

    def _hypotheses_of(self, example: int) -> list[Hypothesis]:
        scores, finished = self._leaves.score[example], self._leaves.finished[example]
        places: list[int] = np.flatnonzero(scores > -np.inf).tolist()
        if self._n_best is None:
            return [self._walk(example, place) for place in places]
        done = self._examples_done is not None and bool(self._examples_done[example])
        places.sort(key=lambda place: (done and not finished[place], -scores[place]))
        best: dict[tuple[int, ...], Hypothesis] = {}
        for place in places:
            if len(best) == self._n_best:
                break
            hypothesis = self._walk(example, place)
            best.setdefault(hypothesis.tokens, hypothesis)  # two groups may have the same one
        return list(best.values())

    def _walk(self, example: int, place: int) -> Hypothesis:
        leaves, position = self._leaves, int(self._leaves.position[example, place])
        tokens: list[int] = []
        log_probs: list[float] = []
        attention: list[Any] = []
        for trace in reversed(self._history[: leaves.step[example, place]]):
            row = trace.row[position]
            tokens.append(int(trace.token[position]))
            log_probs.append(float(trace.log_prob[position]))
            if trace.attention is not None:
                attention.append(trace.attention[row])
            position = trace.origin[row]
        return Hypothesis(
            tokens=tuple(reversed(tokens)),
            log_probs=np.array(log_probs[::-1], dtype=np.float64),
            score=float(leaves.score[example, place]),
            finished=bool(leaves.finished[example, place]),
            attention=np.stack(attention[::-1]) if attention else None,
            named=named_by(self._named, example),
        )


def named_by(tokens: NDArray[np.int64] | None, example: int) -> tuple[int, ...]:
    """The tokens that an example's positions stand for, without those that stand for none."""
    return () if tokens is None else tuple(tokens[example][tokens[example] > UNKNOWN].tolist())


def flat_index(order: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Indices within rows of `size`, (…, n), as indices into the flattened array.

    `take` with these does what np.take_along_axis does, with less overhead per call.
    """
    if order.size == order.shape[-1]:  # one row, or none
        return order
    rows = np.arange(0, order.size // order.shape[-1] * size, size)
    return order + rows.reshape(*order.shape[:-1], 1)


def finish(search: Iterator[Snapshot]) -> list[list[Hypothesis]]:
    """Run a search to its end: the hypotheses of each example."""
    (last,) = deque(search, maxlen=1)  # every search yields at least one snapshot
    return last.hypotheses
