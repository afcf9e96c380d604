"""A stepper for tests: every prefix of every example has its own random log-probabilities and
attention, so that any mistake in a back-pointer changes the numbers. It also holds the search to
the contract: states and outputs are read-only, and rows stay grouped by example.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.search.steppers import State, StepResult


@dataclass(frozen=True)
class TableState:
    keys: tuple[tuple[int, ...], ...]  # per row: (example's name, *tokens fed)
    group: tuple[int, ...]  # per row: its example's place in the batch

    def __len__(self) -> int:
        return len(self.keys)


@dataclass
class TableStepper:
    """Inputs are a list of numbers, each naming an example; or their count (a language model)."""

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

    def start(self, inputs: Sequence[int] | int) -> State:
        names = [0] * inputs if isinstance(inputs, int) else inputs
        return TableState(tuple((int(name),) for name in names), tuple(range(len(names))))

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
