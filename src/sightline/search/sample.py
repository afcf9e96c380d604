"""Greedy search, ancestral sampling and teacher forcing over any Stepper, in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.search.candidates import check_numbers
from sightline.search.steppers import Stepper, require
from sightline.search.tree import Leaves, Snapshot, Trace, named_by
from sightline.types import ContextSet, Hypothesis


def greedy(stepper: Stepper, context: ContextSet, *, max_length: int) -> Iterator[Snapshot]:
    """The likeliest token at every step: one hypothesis per example."""
    return sample(stepper, context, max_length=max_length, temperature=0.0)


def sample(
    stepper: Stepper,
    context: ContextSet,
    *,
    max_length: int,
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
    require(max_length >= 1, f"max_length={max_length}; give at least 1")
    require(0 <= temperature < np.inf, f"temperature={temperature}; give 0 (greedy) or more")
    require(top_k >= 0, f"top_k={top_k}; give 0 (all tokens) or more")
    require(0 < top_p <= 1, f"top_p={top_p}; give a share above 0 and up to 1")
    require(samples >= 1, f"samples={samples}; give at least 1")
    require(seed >= 0, f"seed={seed}; give 0 or more")

    def choose(log_probs: NDArray[np.float32], draws: NDArray[np.float64]) -> NDArray[np.int64]:
        check_numbers(log_probs)
        if temperature == 0:
            result: NDArray[np.int64] = log_probs.argmax(axis=1)
            return result
        return _draw(log_probs, draws, temperature, top_k, top_p)

    def streams(B: int) -> NDArray[np.float64]:  # (B·K, T): all draws, made at once
        names = range(B) if indices is None else indices
        require(len(names) == B, f"{len(names)} indices for {B} examples; give one for each")
        draws = np.zeros((B * samples, max_length))
        for row in range(B * samples if temperature else 0):
            key = [seed, int(names[row // samples]), row % samples]
            draws[row] = np.random.default_rng(key).random(max_length)
        return draws

    return _generate(stepper, context, choose, streams, samples, max_length)


def _generate(
    stepper: Stepper,
    context: ContextSet,
    choose: Callable[[NDArray[np.float32], NDArray[np.float64]], NDArray[np.int64]],
    streams: Callable[[int], NDArray[np.float64]],
    K: int,
    max_length: int,
) -> Iterator[Snapshot]:
    """K rows per example, each extended until it ends."""
    state = stepper.start(context)
    B = len(state)
    draws = streams(B)  # (B·K, max_length)
    if K > 1:
        state = stepper.select(state, np.repeat(np.arange(B), K))
    history: list[Trace] = []
    leaves = Leaves.root(B, K)
    places = np.arange(B * K)  # (N,): example · K + sample, for each of the stepper's rows
    alive = np.ones(B * K, dtype=bool)  # (N,)
    scores = np.zeros(B * K)  # (N,)
    tokens, origin = np.full(B * K, stepper.begin), np.full(B * K, -1)
    for step in range(1, max_length + 1 if B else 1):
        result = stepper.step(state, tokens)
        tokens = choose(result.log_probs, draws[places, step - 1])
        rows = np.arange(len(places))
        chosen = result.log_probs[rows, tokens]
        alive &= chosen > -np.inf  # where no token is possible the hypothesis stays partial
        history.append(Trace(origin, rows, tokens, chosen, result.attention))
        scores = scores + chosen
        ended = tokens == (-1 if stepper.end is None else stepper.end)
        index = np.divmod(places[alive], K)
        leaves = leaves.replaced(index, scores[alive], step, rows[alive], ended[alive])
        alive &= ~ended
        done = step == max_length or not alive.any()
        yield Snapshot(step, done, history, leaves.itself, _named=context.tokens)
        if done:
            return
        state, origin = result.state, rows
        keep = np.repeat(alive.reshape(-1, K).any(axis=1), K)  # of examples with a row alive
        if not keep.all():
            origin = rows[keep]
            state = stepper.select(state, origin)
            places, alive = places[keep], alive[keep]
            scores, tokens = scores[keep], tokens[keep]
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
    weights = np.exp((log_probs - peaks) / np.float32(temperature))  # (N, V)
    if top_k or top_p < 1:
        ranked = -np.sort(-weights, axis=1)[:, : top_k or None]  # best first
        reached = ranked.cumsum(axis=1, dtype=np.float64)
        inside = reached - ranked < top_p * reached[:, -1:]
        count = np.maximum(inside.sum(axis=1, keepdims=True), 1)
        least = np.take_along_axis(ranked, count - 1, axis=1)  # (N, 1)
        above, tied = weights > least, weights == least
        room = count - above.sum(axis=1, keepdims=True)
        weights[~(above | (tied & (tied.cumsum(axis=1) <= room)))] = 0.0
    cumulative = weights.cumsum(axis=1, dtype=np.float64)
    choice = (cumulative <= draws[:, None] * cumulative[:, -1:]).sum(axis=1)
    result: NDArray[np.int64] = np.minimum(
        choice, log_probs.shape[1] - 1
    )  # V only where all weights are 0
    return result


def rescore(
    stepper: Stepper, context: ContextSet, tokens: Sequence[Sequence[int]]
) -> list[Hypothesis]:
    """Teacher forcing: one given sequence per example, with its log-probabilities and attention.

    The score is the plain sum. Rows leave as their sequence ends, so lengths may differ.
    """
    state = stepper.start(context)
    require(len(tokens) == len(state), f"{len(tokens)} sequences for {len(state)} examples")
    lengths = np.array([len(sequence) for sequence in tokens], dtype=np.int64)
    log_probs: list[list[float]] = [[] for _ in tokens]
    attention: list[list[Any]] = [[] for _ in tokens]
    active = np.arange(len(tokens))
    for step in range(int(max(lengths, default=0))):
        unfinished = lengths[active] > step
        if not unfinished.all():
            state = stepper.select(state, np.flatnonzero(unfinished))
            active = active[unfinished]
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
            attention=np.stack(weights) if weights else None,
            named=named_by(context.tokens, number),
        )
        for number, (sequence, values, weights) in enumerate(
            zip(tokens, log_probs, attention, strict=True)
        )
    ]
