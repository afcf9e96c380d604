"""The Stepper contract, all that the search knows of a model, and the steppers made of steppers.

A stepper writes one token at a time for many rows at once. What it carries from step to step is
a `State`: opaque to the search, and never changed in place (`step` and `select` return new ones).

The rows of a state are grouped by example: the examples in order, the same number K of rows for
each, so that row r belongs to example r // K. A stepper may rely on it to hold what it read of an
input once per example, shared by the K rows, and never copied per beam. `start` gives one row per
example. `select(state, rows)` may change K (the first step of a beam) and may leave examples out
(those that are finished), but never mixes or reorders them: the examples of the new state are the
distinct `rows // K`, ascending, each `len(rows) / number of examples` times. The search keeps that
rectangle full: a slot with no hypothesis stays as a row, whose output it ignores.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.errors import UserError


class SearchError(UserError):
    """Options that a search cannot honour, or a model that gave it no usable probabilities."""


class State(Protocol):
    """What a stepper carries between steps; its length is its number of rows."""

    def __len__(self) -> int: ...


@dataclass(frozen=True)
class StepResult:
    """The next token's log-probabilities for every row, and where the rows looked."""

    log_probs: NDArray[np.float32]  # (N, V), normalised; or (N, n) of `tokens`
    attention: NDArray[np.float32] | None  # (N, M), or None
    state: State
    tokens: NDArray[np.int64] | None = None  # (N, n), best first; None: of all, in order


@dataclass(frozen=True)
class Steered:
    """Inputs with where to look: what `start` takes in place of `inputs` to steer attention."""

    inputs: Any
    bias: NDArray[np.float32]  # (B, M): added to the attention's scores at every step


class Stepper(Protocol):
    """A model, or several, that can be asked for the next token.

    It may also have `leading(state, tokens, count)`: as `step`, but a result that may hold only the
    `count` likeliest tokens of each row, best first, the lower first of two that are as likely. A
    plain beam search needs no more, and a vocabulary need not be handed over at every step.
    """

    vocab_size: int
    begin: int  # the token fed at the first step
    end: int | None  # the token that ends an output; None for endless streams

    def start(self, inputs: Any) -> State:
        """One row per example. An unconditional model's `inputs` is the number of rows."""
        ...

    def step(self, state: State, tokens: NDArray[np.int64]) -> StepResult:
        """Feed one token to each row (N,)."""
        ...

    def select(self, state: State, rows: NDArray[np.int64]) -> State:
        """The state whose row i is the old row rows[i], under the rule at the top of this file."""
        ...


def posterior_of(
    stepper: Stepper, inputs: Any, tokens: Sequence[Sequence[int]]
) -> list[NDArray[np.float32]] | None:
    """For each example's given tokens where they came from, (T, M), once they are known.

    None where a stepper cannot tell: its attention is all there is then.
    """
    tell = getattr(stepper, "posterior", None)
    return None if tell is None else tell(inputs, tokens)


@dataclass(frozen=True)
class _States:
    """The states of an ensemble's members, row for row."""

    members: tuple[State, ...]

    def __len__(self) -> int:
        return len(self.members[0])


class Ensemble:
    """Several models as one: the (weighted) mean of their probabilities.

    All are started on the same inputs and must share one vocabulary. Attention is averaged too,
    where every member has it in the same shape; otherwise there is none.
    """

    def __init__(self, steppers: Sequence[Stepper], weights: Sequence[float] | None = None) -> None:
        if not steppers:
            raise SearchError("an ensemble needs at least one model")
        kinds = [(s.vocab_size, s.begin, s.end) for s in steppers]
        for number, kind in enumerate(kinds):
            if kind != kinds[0]:
                raise SearchError(
                    f"model {number + 1} of the ensemble has (vocabulary size, begin, end) {kind}, "
                    f"the first has {kinds[0]}; combine models trained with the same vocabulary"
                )
        given = [1.0] * len(steppers) if weights is None else [float(w) for w in weights]
        if len(given) != len(steppers) or min(given) < 0 or not 0 < sum(given) < np.inf:
            raise SearchError(
                f"ensemble weights {given} for {len(steppers)} models; "
                "give one non-negative number for each, not all zero"
            )
        self.steppers = tuple(steppers)
        self.weights = tuple(w / sum(given) for w in given)
        self.vocab_size, self.begin, self.end = kinds[0]

    def start(self, inputs: Any) -> State:
        return _States(tuple(stepper.start(inputs) for stepper in self.steppers))

    def step(self, state: State, tokens: NDArray[np.int64]) -> StepResult:
        assert isinstance(state, _States)
        results = [s.step(m, tokens) for s, m in zip(self.steppers, state.members, strict=True)]
        return StepResult(
            self._mean_log_probs([result.log_probs for result in results]),
            self._mean_attention([result.attention for result in results]),
            _States(tuple(result.state for result in results)),
        )

    def select(self, state: State, rows: NDArray[np.int64]) -> State:
        assert isinstance(state, _States)
        pairs = zip(self.steppers, state.members, strict=True)
        return _States(tuple(stepper.select(member, rows) for stepper, member in pairs))

    def posterior(
        self, inputs: Any, tokens: Sequence[Sequence[int]]
    ) -> list[NDArray[np.float32]] | None:
        """The mean of where the members think that given tokens came from."""
        found = [posterior_of(stepper, inputs, tokens) for stepper in self.steppers]
        known = [each for each in found if each is not None]
        if len(known) < len(found):
            return None
        weighted = [[w * p for p in each] for w, each in zip(self.weights, known, strict=True)]
        return [np.sum(same, axis=0, dtype=np.float32) for same in zip(*weighted, strict=True)]

    def _mean_log_probs(self, log_probs: list[NDArray[np.float32]]) -> NDArray[np.float32]:
        """log Σ w p, shifted by the largest so that no small probability turns into zero."""
        peak = np.maximum.reduce(log_probs)  # (N, V)
        peak[peak == -np.inf] = 0.0  # impossible for every member: log Σ 0, without inf − inf
        total = np.zeros_like(peak)
        for weight, values in zip(self.weights, log_probs, strict=True):
            total += np.float32(weight) * np.exp(values - peak)
        with np.errstate(divide="ignore"):
            return peak + np.log(total)

    def _mean_attention(
        self, attention: list[NDArray[np.float32] | None]
    ) -> NDArray[np.float32] | None:
        present = [weights for weights in attention if weights is not None]
        if len(present) < len(attention) or len({weights.shape for weights in present}) != 1:
            return None
        mean = sum(w * a for w, a in zip(self.weights, present, strict=True))
        return np.asarray(mean, dtype=np.float32)


@dataclass(frozen=True)
class _FusionState:
    own: State
    language_model: State
    first: bool  # nothing has been fed yet

    def __len__(self) -> int:
        return len(self.own)


class Fusion:
    """Shallow fusion (Gulcehre et al. 2015): log p + weight · log p_LM.

    The sums are scores, no longer normalised log-probabilities, and `Hypothesis.log_probs` of a
    search over a Fusion are these scores. The language model is started with the number of rows.
    `token_map[i]` is the language model's id of token i, or of its unknown token; the end token
    maps to its end token. Without a map the two must share a vocabulary. At the first step the
    language model is fed its own begin token.
    """

    def __init__(
        self,
        stepper: Stepper,
        language_model: Stepper,
        weight: float,
        token_map: ArrayLike | None = None,
    ) -> None:
        if not 0 <= weight < np.inf:  # a negative weight would let scores rise along a hypothesis
            raise SearchError(f"language model weight {weight}; give a number of at least 0")
        self.stepper = stepper
        self.language_model = language_model
        self.weight = float(weight)
        self.vocab_size, self.begin, self.end = stepper.vocab_size, stepper.begin, stepper.end
        self._map = None if token_map is None else np.array(token_map, dtype=np.int64)  # (V,)
        size = language_model.vocab_size
        if self._map is None:
            if size != stepper.vocab_size:
                raise SearchError(
                    f"the language model has {size} tokens and the model {stepper.vocab_size}; "
                    "give a token_map from the model's ids to the language model's"
                )
        else:
            known = (self._map >= 0) & (self._map < size)
            if known.shape != (stepper.vocab_size,) or not known.all():
                raise SearchError(
                    f"the token_map has {known.size} ids, {(~known).sum()} of them unknown to the "
                    f"language model; give {stepper.vocab_size} ids from 0 to {size - 1}"
                )
            if self.end is not None and language_model.end is not None:
                self._map[self.end] = language_model.end

    def start(self, inputs: Any) -> State:
        state = self.stepper.start(inputs)
        return _FusionState(state, self.language_model.start(len(state)), first=True)

    def step(self, state: State, tokens: NDArray[np.int64]) -> StepResult:
        assert isinstance(state, _FusionState)
        own = self.stepper.step(state.own, tokens)
        heard = tokens if self._map is None else self._map[tokens]
        if state.first:
            heard = np.full_like(tokens, self.language_model.begin)
        lm = self.language_model.step(state.language_model, heard)
        log_probs = own.log_probs
        if self.weight:  # 0 · −inf would be NaN
            lm_log_probs = lm.log_probs if self._map is None else lm.log_probs[:, self._map]
            log_probs = log_probs + np.float32(self.weight) * lm_log_probs  # (N, V)
        following = _FusionState(own.state, lm.state, first=False)
        return StepResult(log_probs, own.attention, following)

    def select(self, state: State, rows: NDArray[np.int64]) -> State:
        assert isinstance(state, _FusionState)
        return _FusionState(
            self.stepper.select(state.own, rows),
            self.language_model.select(state.language_model, rows),
            state.first,
        )


@dataclass(frozen=True)
class _PrefixedState:
    inner: State
    example: NDArray[np.int64]  # (N,): whose prefix each row follows
    length: int  # tokens written so far, the same for every row

    def __len__(self) -> int:
        return len(self.example)


class Prefixed:
    """A model whose outputs must begin as given: one prefix per example, of any length or empty.

    While example b is inside its prefix every token but the next of the prefix is impossible;
    that one keeps its own log-probability. Prefix tokens count towards the lengths of a search.
    """

    def __init__(self, stepper: Stepper, prefixes: Sequence[Sequence[int]]) -> None:
        self.stepper = stepper
        self.vocab_size, self.begin, self.end = stepper.vocab_size, stepper.begin, stepper.end
        self._lengths = np.array([len(prefix) for prefix in prefixes], dtype=np.int64)  # (B,)
        self._tokens = np.zeros((len(prefixes), max(self._lengths, default=0)), dtype=np.int64)
        for example, prefix in enumerate(prefixes):
            self._tokens[example, : len(prefix)] = prefix
            wrong = [token for token in prefix if not 0 <= token < self.vocab_size]
            if wrong:
                raise SearchError(
                    f"prefix {example} has the token id {wrong[0]}; "
                    f"the vocabulary's ids are 0 to {self.vocab_size - 1}"
                )

    def start(self, inputs: Any) -> State:
        inner = self.stepper.start(inputs)
        if len(inner) != len(self._lengths):
            raise SearchError(
                f"{len(self._lengths)} prefixes for {len(inner)} examples; give one for each "
                "(an empty one where nothing is forced)"
            )
        return _PrefixedState(inner, np.arange(len(inner)), 0)

    def step(self, state: State, tokens: NDArray[np.int64]) -> StepResult:
        assert isinstance(state, _PrefixedState)
        result = self.stepper.step(state.inner, tokens)
        log_probs = result.log_probs
        (rows,) = np.nonzero(state.length < self._lengths[state.example])
        if len(rows):
            forced = self._tokens[state.example[rows], state.length]
            log_probs = log_probs.copy()
            log_probs[rows] = -np.inf
            log_probs[rows, forced] = result.log_probs[rows, forced]
        following = _PrefixedState(result.state, state.example, state.length + 1)
        return StepResult(log_probs, result.attention, following)

    def select(self, state: State, rows: NDArray[np.int64]) -> State:
        assert isinstance(state, _PrefixedState)
        inner = self.stepper.select(state.inner, rows)
        return _PrefixedState(inner, state.example[rows], state.length)
