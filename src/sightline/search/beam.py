"""Batched beam search over any Stepper, in NumPy."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sightline.search.candidates import Candidates, extend, extend_leading
from sightline.search.steppers import State, Stepper, StepResult, require
from sightline.search.tree import Leaves, Pool, Snapshot, Trace
from sightline.types import ContextSet


@dataclass(frozen=True)
class BeamOptions:
    """The options of a beam search."""

    max_length: int
    size: int = 5
    length_penalty: float = 0.0  # score = log_prob / length**length_penalty; 1 is the mean
    n_best: int = 1
    groups: int = 1  # diverse beam search (Vijayakumar et al. 2016): size / groups each
    diversity: float = 0.5  # taken off a token's log-prob for each earlier group's use of it
    keep_tree: bool = False

    def __post_init__(self) -> None:
        require(self.max_length >= 1, f"max_length={self.max_length}; give at least 1")
        require(self.size >= 1, f"beam size={self.size}; give at least 1")
        require(
            1 <= self.n_best <= self.size,
            f"n_best={self.n_best} of a beam of size {self.size}; give 1 to {self.size}, "
            "or a larger beam",
        )
        require(
            self.groups >= 1 and self.size % self.groups == 0,
            f"{self.groups} groups of a beam of size {self.size}; give a divisor of the size",
        )
        for name in ("length_penalty", "diversity"):
            value = getattr(self, name)
            require(0 <= value < np.inf, f"{name}={value}; give 0 or more")


def beam(stepper: Stepper, context: ContextSet, options: BeamOptions) -> Iterator[Snapshot]:
    """Batched beam search.

    At every step each group ranks all extensions of its k hypotheses. Those that end and rank
    among the first k join its finished ones (the best k are kept); the best k others stay alive
    (where none can and none has finished, the k before this step are its result). A group stops
    when it has k finished. An example is done when no group can improve on its n_best finished
    ones, for log-probabilities only fall; or at max_length, where partial ones fill what is left.
    """
    state = stepper.start(context)
    B, G, k = len(state), options.groups, options.size // options.groups
    history: list[Trace] = []
    active = np.arange(B)  # (A,): the examples that are not done
    examples_done, none_done = np.zeros(B, dtype=bool), np.zeros(B, dtype=bool)
    finished, partial = Pool.empty(B, G, k), Pool.root(B, G, k)
    leaves = _all_leaves(Leaves.root(B, 2 * options.size), active, finished, partial)
    scores = np.zeros((B, G, 1))  # (A, G, R): R = k rows per group, at first one row for all
    tokens, origin = np.full(B, stepper.begin), np.full(B, -1)
    positions = np.arange(B * 2 * options.size).reshape(B, G, 2 * k)  # of the candidates of a step
    any_ended = False  # whether at some step not all of the first k stayed alive
    for step in range(1, options.max_length + 1 if B else 1):
        result, candidates = _extend(stepper, state, tokens, scores, options)
        position, norm = positions[: len(active)], step**options.length_penalty
        if not candidates.first_k_alive:
            any_ended = True
            finished = finished.join(candidates.finished_score() / norm, step, position).best(k)
        kept, scores = candidates.pick(candidates.alive), candidates.pick(candidates.score)
        if any_ended:
            kept = kept & (finished.score[..., -1:] == -np.inf)  # (A, G, k)
            scores = np.where(kept, scores, -np.inf)
        position = candidates.pick(position)
        alive = Pool.at(scores / norm, step, position)
        alive = alive.best(k) if G > 1 else alive  # a single group's are in order
        partial = _unless_stuck(alive, partial, finished, kept) if any_ended else alive

        last, done = step == options.max_length, none_done[: len(active)]
        if any_ended or last:
            done = _cannot_improve(finished, scores, options) | last
        if some_done := (any_ended or last) and bool(done.any()):
            examples_done = examples_done.copy()
            examples_done[active[done]] = True
            partial = partial.filling(finished, done)
        outcome = candidates.outcome(active, kept) if options.keep_tree else None
        best = candidates.row.ravel(), candidates.token.ravel(), candidates.log_prob.ravel()
        history.append(Trace(origin, *best, result.attention, outcome))
        find_leaves = functools.partial(_all_leaves, leaves, active, finished, partial)
        all_done = some_done and bool(done.all())
        yield Snapshot(
            step, all_done, history, find_leaves, options.n_best, examples_done, context.tokens
        )
        if all_done:
            return

        rows, tokens = candidates.pick(candidates.row), candidates.pick(candidates.token)
        if some_done:
            leaves, on = find_leaves(), ~done
            rows, tokens, position = rows[on], tokens[on], position[on]
            active, scores, finished, partial = active[on], scores[on], finished[on], partial[on]
        tokens, origin = tokens.ravel(), position.ravel()
        state = stepper.select(result.state, rows.ravel())
    yield Snapshot(0, True, history, leaves.itself, options.n_best, examples_done)  # no examples


def _extend(
    stepper: Stepper,
    state: State,
    tokens: NDArray[np.int64],
    scores: NDArray[np.float64],
    options: BeamOptions,
) -> tuple[StepResult, Candidates]:
    """One step of the model, and the best extensions of every group."""
    k = options.size // options.groups
    leading = getattr(stepper, "leading", None) if options.groups == 1 else None
    if leading is None or 2 * k > stepper.vocab_size:
        result = stepper.step(state, tokens)
    else:
        result = leading(state, tokens, 2 * k)
    if result.tokens is None:
        return result, extend(result.log_probs, scores, stepper.end, k, options.diversity)
    return result, extend_leading(result.log_probs, result.tokens, scores, stepper.end, k)


def _cannot_improve(
    finished: Pool, scores: NDArray[np.float64], options: BeamOptions
) -> NDArray[np.bool_]:
    """Which examples (A,) no hypothesis that is alive can improve.

    The most that one can still reach: no more losses, and the full length. A model that is sure
    of all that follows does reach it: no tighter bound would be exact.
    """
    bound = scores.max(axis=2) / options.max_length**options.length_penalty  # (A, G)
    enough = finished.score[..., min(options.n_best, scores.shape[2]) - 1] >= bound
    result: NDArray[np.bool_] = enough.all(axis=1)
    return result


def _unless_stuck(
    alive: Pool,
    before: Pool,
    finished: Pool,
    kept: NDArray[np.bool_],  # (A, G, k)
) -> Pool:
    """Those alive; where there are none and none has finished, those before this step."""
    stuck = ~kept.any(axis=2) & (finished.score[..., 0] == -np.inf)  # (A, G)
    return before.where(stuck, alive) if stuck.any() else alive


def _all_leaves(leaves: Leaves, active: NDArray[np.int64], finished: Pool, partial: Pool) -> Leaves:
    """The leaves after a step; computed only for snapshots that are read."""
    return leaves.replaced(active, *finished.leaves_with(partial))
