"""Batched beam search over any Stepper, in NumPy."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.search.candidates import (
    Found,
    extend,
    extend_leading,
    without_repeats,
    without_token,
)
from sightline.search.checks import check_lengths, require
from sightline.search.steppers import State, Stepper, StepResult
from sightline.search.tree import Leaves, Pool, Snapshot, Trace


@dataclass(frozen=True)
class BeamOptions:
    """What a beam search is asked for."""

    max_length: int
    size: int = 5
    min_length: int = 0
    length_penalty: float = 0.0  # score = log_prob / length**length_penalty; 1 is the mean
    n_best: int = 1
    block_ngrams: int = 0  # no hypothesis may hold an n-gram of this length twice; 0: no matter
    groups: int = 1  # diverse beam search (Vijayakumar et al. 2016): size / groups each
    diversity: float = 0.5  # taken off a token's log-prob for each earlier group's use of it
    keep_tree: bool = False

    def __post_init__(self) -> None:
        check_lengths(self.min_length, self.max_length)
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
        for name in ("length_penalty", "block_ngrams", "diversity"):
            value = getattr(self, name)
            require(0 <= value < np.inf, f"{name}={value}; give 0 or more")


def beam(stepper: Stepper, inputs: Any, options: BeamOptions) -> Iterator[Snapshot]:
    """Batched beam search.

    At every step each group ranks all extensions of its k hypotheses. Those that end and rank
    among the first k join its finished ones (the best k are kept); the best k others go on. A
    group stops when it has k finished. An example is settled when no group can improve on its
    n_best finished ones, for log-probabilities only fall; or at max_length, where partial
    hypotheses fill the places that finished ones leave. Where nothing at all can follow
    (block_ngrams, a prefix) and nothing has finished, the hypotheses before that step stand.
    """
    state = stepper.start(inputs)
    B, G, k = len(state), options.groups, options.size // options.groups
    history: list[Trace] = []
    active = np.arange(B)  # (A,): the examples not settled
    settled = np.zeros(B, dtype=bool)
    finished, partial = Pool.empty(B, G, k), Pool.root(B, G, k)
    leaves = _stand(Leaves.root(B, 2 * options.size), active, finished, partial)
    scores = np.zeros((B, G, 1))  # (A, G, R): R = k rows per group, at first one row for all
    tokens, origin = np.full(B, stepper.begin), np.full(B, -1)
    places = np.arange(B * 2 * options.size).reshape(B, G, 2 * k)  # of the candidates of a step
    written = np.empty((B, 0), dtype=np.int64)  # (rows, step - 1), where n-grams are blocked
    nobody = np.zeros(B, dtype=bool)
    ended = False  # whether there was a step at which not all of the first k went on
    for step in range(1, options.max_length + 1):
        if B == 0:
            break
        result, found = _extended(stepper, state, tokens, scores, written, step, options)
        position, norm = places[: len(active)], step**options.length_penalty
        if not found.all_go_on:
            ended = True
            finished = finished.join(found.ending_score() / norm, step, position).best(k)
        kept, scores = found.pick(found.live), found.pick(found.score)  # (A, G, k)
        if ended:
            kept = kept & (finished.score[..., -1:] == -np.inf)
            scores = np.where(kept, scores, -np.inf)
        going = found.pick(position)
        ahead = Pool.at(scores / norm, step, going)
        if G > 1:  # a single group's are in order
            ahead = ahead.best(k)
        partial = _unless_stuck(ahead, partial, finished, kept) if ended else ahead

        last, over = step == options.max_length, nobody[: len(active)]
        if ended or last:
            over = _settle(finished, scores, options) | last
        some_over = (ended or last) and bool(over.any())
        if some_over:
            settled = settled.copy()
            settled[active[over]] = True
            partial = partial.only_beside(finished, over)
        verdict = found.verdict(active, kept) if options.keep_tree else None
        history.append(found.trace(origin, result.attention, verdict))
        done = some_over and bool(over.all())
        stand = functools.partial(_stand, leaves, active, finished, partial)
        yield Snapshot(step, done, history, stand, options.n_best, settled)
        if done:
            return

        rows, tokens, origin = found.pick(found.row), found.pick(found.token), going
        if some_over:
            leaves, on = stand(), ~over
            rows, tokens, origin = rows[on], tokens[on], origin[on]
            active, scores, finished, partial = active[on], scores[on], finished[on], partial[on]
        rows, tokens, origin = rows.ravel(), tokens.ravel(), origin.ravel()
        state = stepper.select(result.state, rows)
        if options.block_ngrams:
            written = np.concatenate([written[rows], tokens[:, None]], axis=1)
    yield Snapshot(0, True, history, leaves.itself, options.n_best, settled)  # no examples


def _extended(
    stepper: Stepper,
    state: State,
    tokens: NDArray[np.int64],
    scores: NDArray[np.float64],
    written: NDArray[np.int64],
    step: int,
    options: BeamOptions,
) -> tuple[StepResult, Found]:
    """One step of the model, and the best extensions of every group."""
    k, early = options.size // options.groups, step < options.min_length
    plain = options.groups == 1 and not options.block_ngrams and not early
    if plain and 2 * k <= stepper.vocab_size and (ask := getattr(stepper, "leading", None)):
        result = ask(state, tokens, 2 * k)
        if result.tokens is not None:
            found = extend_leading(result.log_probs, result.tokens, scores, stepper.end, k)
            return result, found
    else:
        result = stepper.step(state, tokens)
    log_probs = result.log_probs
    if stepper.end is not None and early:
        log_probs = without_token(log_probs, stepper.end)
    if options.block_ngrams:
        log_probs = without_repeats(log_probs, written, options.block_ngrams)
    return result, extend(log_probs, scores, stepper.end, k, options.diversity)


def _settle(finished: Pool, scores: NDArray[np.float64], options: BeamOptions) -> NDArray[np.bool_]:
    """Which examples (A,) no live hypothesis can improve.

    The most that one can still reach: no more losses, and the full length. A model that is sure
    of all that follows does reach it: no tighter bound would be exact.
    """
    hope = scores.max(axis=2) / options.max_length**options.length_penalty  # (A, G)
    enough = finished.score[..., min(options.n_best, scores.shape[2]) - 1] >= hope
    return enough.all(axis=1)


def _unless_stuck(
    ahead: Pool,
    before: Pool,
    finished: Pool,
    kept: NDArray[np.bool_],  # (A, G, k)
) -> Pool:
    """The hypotheses that go on; where none does and none has finished, those before this step."""
    stuck = ~kept.any(axis=2) & (finished.score[..., 0] == -np.inf)  # (A, G)
    return before.where(stuck, ahead) if stuck.any() else ahead


def _stand(leaves: Leaves, active: NDArray[np.int64], finished: Pool, partial: Pool) -> Leaves:
    """Where all hypotheses stand; worked out only for snapshots that are read."""
    return leaves.replaced(active, *finished.leaves_with(partial))
