"""Greedy, sampling and beam search over any Stepper, in NumPy, many examples at a time.

A search is a generator of snapshots, one per step, so that a page can show partial results;
`finish` runs it to its end. What an example yields does not depend on the batch around it: ties
go to the lower slot and token, and random draws come from a stream of the example's own.

Lengths count tokens, the end token included.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.search_candidates import (
    Found,
    check_numbers,
    extend,
    extend_leading,
    without_repeats,
    without_token,
)
from sightline.search_tree import Leaves, Pool, Snapshot, Trace, TreeNode
from sightline.steppers import SearchError, State, Stepper, StepResult
from sightline.types import Hypothesis

__all__ = [
    "BeamOptions", "Snapshot", "TreeNode", "beam", "finish", "greedy", "rescore", "sample",
]  # fmt: skip


def finish(search: Iterator[Snapshot]) -> list[list[Hypothesis]]:
    """Run a search to its end: the hypotheses of each example."""
    snapshot = None
    for snapshot in search:  # noqa: B007 (the last one is what is wanted)
        pass
    assert snapshot is not None, "every search yields at least one snapshot"
    return snapshot.hypotheses


# ---- greedy and sampling -----------------------------------------------------------------------


def greedy(
    stepper: Stepper, inputs: Any, *, max_length: int, min_length: int = 0
) -> Iterator[Snapshot]:
    """The likeliest token at every step: one hypothesis per example."""
    return sample(stepper, inputs, max_length=max_length, min_length=min_length, temperature=0.0)


def sample(
    stepper: Stepper,
    inputs: Any,
    *,
    max_length: int,
    min_length: int = 0,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    samples: int = 1,
    seed: int = 0,
    indices: Sequence[int] | None = None,
) -> Iterator[Snapshot]:
    """Ancestral sampling: `samples` hypotheses per example, each from its own random stream.

    `temperature` divides the log-probabilities (0: greedy); then only the `top_k` likeliest tokens
    stay (0: all), and of these the fewest whose probabilities reach `top_p` (the nucleus). The
    hypotheses' log_probs are the model's own, before all that. The stream of sample s depends on
    (seed, index, s) alone, where an example's index is its place in the batch unless `indices`
    gives another.
    """
    _check_lengths(min_length, max_length)
    _require(0 <= temperature < np.inf, f"temperature={temperature}; give 0 (greedy) or more")
    _require(top_k >= 0, f"top_k={top_k}; give 0 (all tokens) or more")
    _require(0 < top_p <= 1, f"top_p={top_p}; give a share above 0 and up to 1")
    _require(samples >= 1, f"samples={samples}; give at least 1")
    _require(seed >= 0, f"seed={seed}; give 0 or more")

    def choose(log_probs: NDArray[np.float32], draws: NDArray[np.float64]) -> NDArray[np.int64]:
        check_numbers(log_probs)
        if temperature == 0:
            return log_probs.argmax(axis=1)
        return _draw(log_probs, draws, temperature, top_k, top_p)

    def streams(B: int) -> NDArray[np.float64]:  # (B·K, T): all draws, made at once
        names = range(B) if indices is None else indices
        _require(len(names) == B, f"{len(names)} indices for {B} examples; give one for each")
        draws = np.zeros((B * samples, max_length))
        for row in range(B * samples if temperature else 0):
            key = [seed, int(names[row // samples]), row % samples]
            draws[row] = np.random.default_rng(key).random(max_length)
        return draws

    return _write(stepper, inputs, choose, streams, samples, min_length, max_length)


def _write(
    stepper: Stepper,
    inputs: Any,
    choose: Callable[[NDArray[np.float32], NDArray[np.float64]], NDArray[np.int64]],
    streams: Callable[[int], NDArray[np.float64]],
    K: int,
    min_length: int,
    max_length: int,
) -> Iterator[Snapshot]:
    """K rows per example, each going its own way until it ends."""
    state = stepper.start(inputs)
    B = len(state)
    draws = streams(B)  # (B·K, max_length)
    if K > 1:
        state = stepper.select(state, np.repeat(np.arange(B), K))
    history: list[Trace] = []
    leaves = Leaves.root(B, K)
    places = np.arange(B * K)  # (N,): example · K + sample, for each of the stepper's rows
    going = np.ones(B * K, dtype=bool)  # (N,)
    scores = np.zeros(B * K)  # (N,)
    tokens, origin = np.full(B * K, stepper.begin), np.full(B * K, -1)
    for step in range(1, max_length + 1):
        if B == 0:
            break
        result = stepper.step(state, tokens)
        log_probs = result.log_probs
        if stepper.end is not None and step < min_length:
            log_probs = without_token(log_probs, stepper.end)
        tokens = choose(log_probs, draws[places, step - 1])
        rows = np.arange(len(places))
        going &= log_probs[rows, tokens] > -np.inf  # no token is possible: stays partial
        chosen = result.log_probs[rows, tokens]
        history.append(Trace(origin, rows, tokens, chosen, result.attention))
        scores = scores + chosen
        ends = tokens == (-1 if stepper.end is None else stepper.end)
        index = np.divmod(places[going], K)
        leaves = leaves.replaced(index, scores[going], step, rows[going], ends[going])
        going &= ~ends
        done = step == max_length or not going.any()
        yield Snapshot(step, done, history, leaves.itself)
        if done:
            return
        state, origin = result.state, rows
        wanted = np.repeat(going.reshape(-1, K).any(axis=1), K)  # of examples with a row going
        if not wanted.all():
            origin = rows[wanted]
            state = stepper.select(state, origin)
            places, going = places[wanted], going[wanted]
            scores, tokens = scores[wanted], tokens[wanted]
    yield Snapshot(0, True, history, leaves.itself)  # there were no examples


def _draw(
    log_probs: NDArray[np.float32],  # (N, V)
    draws: NDArray[np.float64],  # (N,) in [0, 1)
    temperature: float,
    top_k: int,
    top_p: float,
) -> NDArray[np.int64]:
    """One token per row, by inverting the cumulative distribution of what the options leave."""
    peaks = log_probs.max(axis=1, keepdims=True)
    peaks[peaks == -np.inf] = 0.0  # a row with no possible token: weights of 0, not NaN
    weights = np.exp((log_probs - peaks).astype(np.float64) / temperature)  # (N, V)
    if top_k or top_p < 1:
        ranked = -np.sort(-weights, axis=1)[:, : top_k or None]  # best first
        reached = ranked.cumsum(axis=1)
        inside = reached - ranked < top_p * reached[:, -1:]
        count = np.maximum(inside.sum(axis=1, keepdims=True), 1)
        least = np.take_along_axis(ranked, count - 1, axis=1)  # (N, 1)
        above, tied = weights > least, weights == least
        room = count - above.sum(axis=1, keepdims=True)
        weights[~(above | (tied & (tied.cumsum(axis=1) <= room)))] = 0.0
    cumulative = weights.cumsum(axis=1)
    choice = (cumulative <= draws[:, None] * cumulative[:, -1:]).sum(axis=1)
    return np.minimum(choice, log_probs.shape[1] - 1)  # V only where all weights are 0


# ---- beam search -------------------------------------------------------------------------------


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
        _check_lengths(self.min_length, self.max_length)
        _require(self.size >= 1, f"beam size={self.size}; give at least 1")
        _require(
            1 <= self.n_best <= self.size,
            f"n_best={self.n_best} of a beam of size {self.size}; give 1 to {self.size}, "
            "or a larger beam",
        )
        _require(
            self.groups >= 1 and self.size % self.groups == 0,
            f"{self.groups} groups of a beam of size {self.size}; give a divisor of the size",
        )
        for name in ("length_penalty", "block_ngrams", "diversity"):
            value = getattr(self, name)
            _require(0 <= value < np.inf, f"{name}={value}; give 0 or more")


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


# ---- scoring what is given ---------------------------------------------------------------------


def rescore(stepper: Stepper, inputs: Any, tokens: Sequence[Sequence[int]]) -> list[Hypothesis]:
    """Teacher forcing: one given sequence per example, with its log-probabilities and attention.

    The score is the plain sum. Rows leave as their sequence ends, so lengths may differ.
    """
    state = stepper.start(inputs)
    _require(len(tokens) == len(state), f"{len(tokens)} sequences for {len(state)} examples")
    lengths = np.array([len(sequence) for sequence in tokens], dtype=np.int64)
    log_probs: list[list[float]] = [[] for _ in tokens]
    attention: list[list[Any]] = [[] for _ in tokens]
    active = np.arange(len(tokens))
    for step in range(int(max(lengths, default=0))):
        going = lengths[active] > step
        if not going.all():
            state = stepper.select(state, np.flatnonzero(going))
            active = active[going]
        fed = [tokens[i][step - 1] if step else stepper.begin for i in active.tolist()]
        result = stepper.step(state, np.array(fed, dtype=np.int64))
        check_numbers(result.log_probs)
        state = result.state
        for row, i in enumerate(active.tolist()):
            log_probs[i].append(float(result.log_probs[row][tokens[i][step]]))
            if result.attention is not None:
                attention[i].append(result.attention[row])
    return [
        Hypothesis(
            tokens=tuple(int(token) for token in sequence),
            log_probs=np.array(values, dtype=np.float64),
            score=sum(values),
            finished=stepper.end is not None and len(sequence) > 0 and sequence[-1] == stepper.end,
            attention=np.stack(looked) if looked else None,
        )
        for sequence, values, looked in zip(tokens, log_probs, attention, strict=True)
    ]


# ---- checks ------------------------------------------------------------------------------------


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise SearchError(message)


def _check_lengths(min_length: int, max_length: int) -> None:
    _require(max_length >= 1, f"max_length={max_length}; give at least 1")
    _require(
        0 <= min_length <= max_length,
        f"min_length={min_length} with max_length={max_length}; give 0 to {max_length}",
    )
