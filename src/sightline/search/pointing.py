"""Constraints on pointers: permutations, convex outlines, triangles.

Token 4 + i is position i of an example, which has so many as `counts` says. Where nothing else is
allowed, an output may end.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sightline.data.vocabulary import SPECIALS
from sightline.search.constraints import Constraint, Mask, Rows

S = len(SPECIALS)
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Permutation(Constraint):
    """Every position exactly once: a tour that visits each city, all numbers in order."""

    counts: Sequence[int]  # (B,)

    def allowed(self, rows: Rows) -> Mask | None:
        return _or_end(_unwritten(rows, self.counts), rows, may_end=False)


@dataclass(frozen=True)
class ConvexOutline(Constraint):
    """A convex polygon, counter-clockwise, of three corners or more where there are so many.

    It is convex after every step, closed as it then would be, so that it never crosses itself.
    """

    points: Sequence[Floats]  # (n, 2) of each example

    def allowed(self, rows: Rows) -> Mask | None:
        allowed = _unwritten(rows, [len(points) for points in self.points])
        length = rows.written.shape[1]
        if length == 1:
            self._leave_a_third(allowed, rows)
        if length >= 2:
            # an unused row of the beam may hold <end>: its answer does not matter
            corners = np.maximum(rows.written - S, 0)
            padded = np.zeros((len(self.points), rows.vocab_size - S, 2))  # (B, M, 2)
            for row, points in zip(padded, self.points, strict=True):
                row[: len(points)] = points
            every = padded[rows.example]  # (N, M, 2)
            first, second, before, last = (
                np.take_along_axis(every, corners[:, [at], None], axis=1) for at in (0, 1, -2, -1)
            )
            convex = (turn(before, last, every) > 0) & (turn(last, every, first) > 0)
            allowed[:, S:] &= convex & (turn(every, first, second) > 0)
        return _or_end(allowed, rows, may_end=length >= 3)

    def _leave_a_third(self, allowed: Mask, rows: Rows) -> None:
        """Of second corners, those with a point to their left, or else the unequal ones."""
        for row, example in enumerate(rows.example):
            points = self.points[example]
            first = points[max(0, rows.written[row, 0] - S)]
            left = (turn(first, points[:, None], points[None]) > 0).any(1)  # (n,)
            apart = (points != first).any(1)
            allowed[row, S : S + len(points)] &= left if left.any() else apart


@dataclass(frozen=True)
class Triangles(Constraint):
    """Triples of positions, ascending within each, no triple twice, no more than n points have."""

    counts: Sequence[int]  # (B,)

    def allowed(self, rows: Rows) -> Mask | None:
        written, (count, length) = rows.written, rows.written.shape
        place = length % 3
        done = written[:, : length - place].reshape(count, -1, 3)
        position = np.arange(rows.vocab_size)[None] - S
        after = np.asarray(self.counts)[rows.example][:, None] - 1 - position  # (N, V)
        # the triples that begin as the one in the making and this token: how many, how many done
        room = (after * (after - 1) // 2, after, after >= 0)[place]
        used = np.zeros(room.shape, np.int64)
        alike = (done[:, :, :place] == written[:, None, length - place :]).all(2)
        row, triple = np.nonzero(alike)
        np.add.at(used, (row, done[row, triple, place]), 1)
        allowed = (position >= 0) & (after >= 2 - place) & (used < room)
        if place:
            allowed &= position > written[:, -1:] - S
        else:
            most = np.maximum(1, 2 * np.asarray(self.counts) - 5)[rows.example]
            allowed &= done.shape[1] < most[:, None]
        return _or_end(allowed, rows, may_end=place == 0 and length >= 3)


def turn(a: Floats, b: Floats, c: Floats) -> Floats:
    """Above 0 where a → b → c turns left, of points (…, 2)."""
    first, second = b - a, c - b
    result: Floats = first[..., 0] * second[..., 1] - first[..., 1] * second[..., 0]
    return result


def _unwritten(rows: Rows, counts: Sequence[int]) -> Mask:
    """The positions that were not written yet, (N, V)."""
    position = np.arange(rows.vocab_size)[None] - S
    allowed = (position >= 0) & (position < np.asarray(counts)[rows.example][:, None])
    np.put_along_axis(allowed, rows.written, False, axis=1)
    return allowed


def _or_end(allowed: Mask, rows: Rows, *, may_end: bool) -> Mask:
    assert rows.end is not None
    allowed[:, rows.end] = may_end | ~allowed.any(axis=1)
    return allowed
