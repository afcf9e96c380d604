"""Greedy search, ancestral sampling and teacher forcing over any Stepper, in NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.search.candidates import check_numbers, without_token
from sightline.search.checks import check_lengths, require
from sightline.search.steppers import Stepper
from sightline.search.tree import Leaves, Snapshot, Trace
from sightline.types import Hypothesis


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
    check_lengths(min_length, max_length)
    require(0 <= temperature < np.inf, f"temperature={temperature}; give 0 (greedy) or more")
    require(top_k >= 0, f"top_k={top_k}; give 0 (all tokens) or more")
    require(0 < top_p <= 1, f"top_p={top_p}; give a share above 0 and up to 1")
    require(samples >= 1, f"samples={samples}; give at least 1")
    require(seed >= 0, f"seed={seed}; give 0 or more")

    def choose(log_probs: NDArray[np.float32], draws: NDArray[np.float64]) -> NDArray[np.int64]:
        check_numbers(log_probs)
        if temperature == 0:
            return log_probs.argmax(axis=1)
        return _draw(log_probs, draws, temperature, top_k, top_p)

    def streams(B: int) -> NDArray[np.float64]:  # (B·K, T): all draws, made at once
        names = range(B) if indices is None else indices
        require(len(names) == B, f"{len(names)} indices for {B} examples; give one for each")
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


def rescore(stepper: Stepper, inputs: Any, tokens: Sequence[Sequence[int]]) -> list[Hypothesis]:
    """Teacher forcing: one given sequence per example, with its log-probabilities and attention.

    The score is the plain sum. Rows leave as their sequence ends, so lengths may differ.
    """
    state = stepper.start(inputs)
    require(len(tokens) == len(state), f"{len(tokens)} sequences for {len(state)} examples")
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
