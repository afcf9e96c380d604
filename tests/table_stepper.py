"""A stepper for tests: every prefix of every example has its own random log-probabilities and
attention, so that any mistake in a back-pointer changes the numbers. It also holds the search to
the contract: states and outputs are read-only, and rows stay grouped by example.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.search import BeamOptions, beam, finish
from sightline.search.steppers import State, Stepper, StepResult
from sightline.types import ContextSet, Hypothesis


def named(names: Sequence[int]) -> ContextSet:
    """A context set whose one value per example is the example's name."""
    values = np.array(names, dtype=np.int64).reshape(-1, 1, 1)
    return ContextSet(values, np.ones(values.shape[:2], dtype=bool))


@dataclass(frozen=True)
class TableState:
    keys: tuple[tuple[int, ...], ...]  # per row: (example's name, *tokens fed)
    group: tuple[int, ...]  # per row: its example's place in the batch

    def __len__(self) -> int:
        return len(self.keys)


@dataclass
class TableStepper:
    """Examples have the numbers that `named` gave them, or all 0 where the context set is empty."""

    vocab_size: int = 5
    end: int | None = 0
    begin: int = 1
    seed: int = 0
    places: int = 3  # M
    sharpness: float = 1.0
    end_bias: float = 0.0
    impossible: float = 0.0  # the share of tokens whose probability is zero
    attends: bool = True
    table: dict[tuple[int, ...], tuple[NDArray[Any], NDArray[Any]]] = field(default_factory=dict)

    def look_up(self, key: tuple[int, ...]) -> tuple[NDArray[Any], NDArray[Any]]:
        if key not in self.table:
            rng = np.random.default_rng([self.seed, *key])
            logits = self.sharpness * rng.normal(size=self.vocab_size)
            if self.end is not None:
                logits[self.end] += self.end_bias
            zero = rng.random(self.vocab_size) < self.impossible
            zero[rng.integers(self.vocab_size)] = False
            logits[zero] = -np.inf
            log_probs = logits - np.log(np.exp(logits).sum())
            self.table[key] = log_probs.astype(np.float32), rng.random(self.places, np.float32)
        return self.table[key]

    def start(self, context: ContextSet) -> State:
        names = context.values.sum(axis=(1, 2)).astype(int).tolist()
        return TableState(tuple((name,) for name in names), tuple(range(len(context))))

    def step(self, state: State, tokens: NDArray[np.int64]) -> StepResult:
        assert isinstance(state, TableState)
        assert tokens.shape == (len(state),)
        assert ((tokens >= 0) & (tokens < self.vocab_size)).all()
        keys = tuple((*key, int(token)) for key, token in zip(state.keys, tokens, strict=True))
        log_probs = np.stack([self.look_up(key)[0] for key in keys])
        attention = np.stack([self.look_up(key)[1] for key in keys])
        log_probs.flags.writeable = attention.flags.writeable = False
        following = TableState(keys, state.group)
        return StepResult(log_probs, attention if self.attends else None, following)

    def select(self, state: State, rows: NDArray[np.int64]) -> State:
        assert isinstance(state, TableState)
        group = [state.group[row] for row in rows]
        counts = [len(list(same)) for _, same in itertools.groupby(group)]
        assert group == sorted(group), "examples must stay in order"
        assert len(set(counts)) <= 1, "every example must have the same number of rows"
        return TableState(tuple(state.keys[row] for row in rows), tuple(group))

    def prefix_log_probs(self, name: int, tokens: Sequence[int]) -> NDArray[Any]:
        """The next token's log-probabilities after `tokens`, read straight from the table."""
        return self.look_up((name, self.begin, *tokens))[0]

    def prefix_attention(self, name: int, tokens: Sequence[int]) -> NDArray[Any]:
        return self.look_up((name, self.begin, *tokens))[1]


class LeadingTable(TableStepper):
    """Gives no more of the likeliest tokens than it is asked for."""

    def leading(self, state: State, tokens: NDArray[np.int64], count: int) -> StepResult:
        result = self.step(state, tokens)
        order = np.argsort(-result.log_probs, axis=1, kind="stable")[:, :count]
        return replace(
            result, log_probs=np.take_along_axis(result.log_probs, order, axis=1), tokens=order
        )


def run(stepper: Stepper, names: Sequence[int], **options: Any) -> list[list[Hypothesis]]:
    return finish(beam(stepper, named(names), BeamOptions(**options)))


def same(ours: list[Hypothesis], theirs: list[Hypothesis]) -> bool:
    """Equal to the last bit, attention included."""
    if len(ours) != len(theirs):
        return False
    return all(
        (a.tokens, a.score, a.finished) == (b.tokens, b.score, b.finished)
        and np.array_equal(a.log_probs, b.log_probs)
        and np.array_equal(a.attention, b.attention)
        for a, b in zip(ours, theirs, strict=True)
    )


def enumerate_all(
    table: TableStepper,
    name: int,
    max_length: int,
    penalty: float,
    log_probs: Callable[[tuple[int, ...]], NDArray[Any]] | None = None,
) -> list[tuple[bool, float, tuple[int, ...]]]:
    """Every output there is, best first, finished ones before partial ones; by plain recursion.

    `log_probs` gives the next token's after some tokens; without it, they are the table's.
    """
    outputs = []

    def visit(tokens: tuple[int, ...], total: float) -> None:
        ended = bool(tokens) and tokens[-1] == table.end
        if ended or len(tokens) == max_length:
            outputs.append((ended, total / len(tokens) ** penalty, tokens))
            return
        values = log_probs(tokens) if log_probs else table.prefix_log_probs(name, tokens)
        for token, log_prob in enumerate(values):
            if log_prob > -np.inf:
                visit((*tokens, token), total + float(log_prob))

    visit((), 0.0)
    return sorted(outputs, key=lambda output: (not output[0], -output[1]))
