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
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sightline.errors import UserError
from sightline.types import ContextSet


class SearchError(UserError):
    """Options that a search cannot honour, or a model that gave it no usable probabilities."""


def require(condition: bool, message: str) -> None:
    if not condition:
        raise SearchError(message)


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


class Stepper(Protocol):
    """A model, or several, that gives the next token's probabilities.

    Optional methods:
    - `leading(state, tokens, count)`: as `step`, but the result may hold only the `count` likeliest
      tokens of each row, best first, ties to the lower token. A plain beam search needs no more,
      so the whole vocabulary need not be copied out of a graph at every step.
    - `without(tokens)`: the same model with these tokens left out of its softmax.
    - `posterior(context, tokens)`: see `posterior_attention`.
    """

    vocab_size: int
    begin: int  # the token fed at the first step
    end: int | None  # the token that ends an output; None for endless streams

    def start(self, context: ContextSet) -> State:
        """One row per example. A language model reads only how many there are."""

    def step(self, state: State, tokens: NDArray[np.int64]) -> StepResult:
        """Feed one token to each row (N,)."""

    def select(self, state: State, rows: NDArray[np.int64]) -> State:
        """The state whose row i is the old row rows[i], under the rule at the top of this file."""


def posterior_attention(
    stepper: Stepper, context: ContextSet, tokens: Sequence[Sequence[int]]
) -> list[NDArray[np.float32]] | None:
    """Where each example's given tokens looked once they are known, (T, M) each.

    None where the model has no such posterior: its attention is all there is then.
    """
    posterior = getattr(stepper, "posterior", None)
    return None if posterior is None else posterior(context, tokens)


class Wrapper:
    """A stepper around another: passes everything on but what a subclass overrides."""

    def __init__(self, stepper: Stepper) -> None:
        self.stepper = stepper
        self.vocab_size, self.begin, self.end = stepper.vocab_size, stepper.begin, stepper.end

    def start(self, context: ContextSet) -> State:
        return self.stepper.start(context)

    def step(self, state: State, tokens: NDArray[np.int64]) -> StepResult:
        return self.stepper.step(state, tokens)

    def select(self, state: State, rows: NDArray[np.int64]) -> State:
        return self.stepper.select(state, rows)


class Started(Wrapper):
    """A model that has been started: a search over it begins from `state`, whatever the context."""

    def __init__(self, stepper: Stepper, state: State) -> None:
        super().__init__(stepper)
        self.state = state

    def start(self, context: ContextSet) -> State:
        return self.state


class Subset(Wrapper):
    """A model over some of its tokens: token i is tokens[i], with its probability unchanged."""

    def __init__(self, stepper: Stepper, tokens: Sequence[int]) -> None:
        super().__init__(stepper)
        self.tokens = np.array(tokens, dtype=np.int64)
        self.vocab_size = len(tokens)
        ids = {token: i for i, token in enumerate(self.tokens.tolist())}
        missing = {stepper.begin, stepper.end} - {None, *ids}
        require(not missing, f"a subset of the vocabulary without the special tokens {missing}")
        self.begin = ids[stepper.begin]
        self.end = None if stepper.end is None else ids[stepper.end]

    def step(self, state: State, tokens: NDArray[np.int64]) -> StepResult:
        result = self.stepper.step(state, self.tokens[tokens])
        return replace(result, log_probs=result.log_probs[:, self.tokens])


@dataclass(frozen=True)
class _States:
    """The states of an ensemble's members, row for row."""

    members: tuple[State, ...]

    def __len__(self) -> int:
        return len(self.members[0])


class Ensemble:
    """Several models as one: the (weighted) mean of their probabilities.

    Each is started on its own member of the context set where there are members, otherwise all on
    the same one. They must share one vocabulary. Attention is averaged too, where every member has
    it in the same shape; otherwise there is none.
    """

    def __init__(self, steppers: Sequence[Stepper], weights: Sequence[float] | None = None) -> None:
        require(len(steppers) > 0, "an ensemble needs at least one model")
        kinds = [(s.vocab_size, s.begin, s.end) for s in steppers]
        for number, kind in enumerate(kinds):
            require(
                kind == kinds[0],
                f"model {number + 1} of the ensemble has (vocabulary size, begin, end) {kind}, "
                f"the first has {kinds[0]}; combine models trained with the same vocabulary",
            )
        given = [1.0] * len(steppers) if weights is None else [float(w) for w in weights]
        require(
            len(given) == len(steppers) and min(given) >= 0 and 0 < sum(given) < np.inf,
            f"ensemble weights {given} for {len(steppers)} models; "
            "give one non-negative number for each, not all zero",
        )
        self.steppers = tuple(steppers)
        self.weights = tuple(w / sum(given) for w in given)
        self.vocab_size, self.begin, self.end = kinds[0]

    def start(self, context: ContextSet) -> State:
        return _States(tuple(stepper.start(own) for stepper, own in self._with_contexts(context)))

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
        self, context: ContextSet, tokens: Sequence[Sequence[int]]
    ) -> list[NDArray[np.float32]] | None:
        """The mean of the members' posterior attention; None unless all have it."""
        pairs = self._with_contexts(context)
        posteriors = [posterior_attention(stepper, own, tokens) for stepper, own in pairs]
        known = [each for each in posteriors if each is not None]
        if len(known) < len(posteriors):
            return None
        weighted = [[w * p for p in each] for w, each in zip(self.weights, known, strict=True)]
        return [np.sum(same, axis=0, dtype=np.float32) for same in zip(*weighted, strict=True)]

    def _with_contexts(self, context: ContextSet) -> list[tuple[Stepper, ContextSet]]:
        contexts = context.members or (context,) * len(self.steppers)
        require(
            len(contexts) == len(self.steppers),
            f"{len(contexts)} context sets for an ensemble of {len(self.steppers)} models",
        )
        return list(zip(self.steppers, contexts, strict=True))

    def _mean_log_probs(self, log_probs: list[NDArray[np.float32]]) -> NDArray[np.float32]:
        """log Σ w p, shifted by the largest so that no small probability turns into zero."""
        peak = np.maximum.reduce(log_probs)  # (N, V)
        peak[peak == -np.inf] = 0.0  # impossible for every member: log Σ 0, without inf − inf
        total = np.zeros_like(peak)
        for weight, values in zip(self.weights, log_probs, strict=True):
            total += np.float32(weight) * np.exp(values - peak)
        with np.errstate(divide="ignore"):
            result: NDArray[np.float32] = peak + np.log(total)
            return result

    def _mean_attention(
        self, attention: list[NDArray[np.float32] | None]
    ) -> NDArray[np.float32] | None:
        present = [weights for weights in attention if weights is not None]
        if len(present) < len(attention) or len({weights.shape for weights in present}) != 1:
            return None
        mean = sum(w * a for w, a in zip(self.weights, present, strict=True))
        return np.asarray(mean, dtype=np.float32)


def subset(stepper: Stepper, tokens: Sequence[int]) -> Stepper:
    """A model over some of its tokens, which a stepper may have a cheaper way to be."""
    if isinstance(stepper, Ensemble):
        return Ensemble([subset(member, tokens) for member in stepper.steppers], stepper.weights)
    own = getattr(stepper, "subset", None)
    return Subset(stepper, tokens) if own is None else own(tokens)


@dataclass(frozen=True)
class _FusionState:
    own: State
    language_model: State
    first: bool  # nothing has been fed yet

    def __len__(self) -> int:
        return len(self.own)


class Fusion(Wrapper):
    """Shallow fusion (Gulcehre et al. 2015): log p + weight · log p_LM.

    The sums are scores, no longer normalised log-probabilities, and `Hypothesis.log_probs` of a
    search over a Fusion are these scores. The language model reads no context set.
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
        super().__init__(stepper)
        # a negative weight would let scores rise along a hypothesis
        require(
            0 <= weight < np.inf, f"language model weight {weight}; give a number of at least 0"
        )
        self.language_model = language_model
        self.weight = float(weight)
        self.token_map = None if token_map is None else np.array(token_map, dtype=np.int64)  # (V,)
        size = language_model.vocab_size
        if self.token_map is None:
            require(
                size == stepper.vocab_size,
                f"the language model has {size} tokens and the model {stepper.vocab_size}; "
                "give a token_map from the model's ids to the language model's",
            )
        else:
            known = (self.token_map >= 0) & (self.token_map < size)
            require(
                known.shape == (stepper.vocab_size,) and bool(known.all()),
                f"the token_map has {known.size} ids, {(~known).sum()} of them unknown to the "
                f"language model; give {stepper.vocab_size} ids from 0 to {size - 1}",
            )
            if self.end is not None and language_model.end is not None:
                self.token_map[self.end] = language_model.end

    def start(self, context: ContextSet) -> State:
        state = self.stepper.start(context)
        nothing = ContextSet.empty(len(state))
        return _FusionState(state, self.language_model.start(nothing), first=True)

    def step(self, state: State, tokens: NDArray[np.int64]) -> StepResult:
        assert isinstance(state, _FusionState)
        own = self.stepper.step(state.own, tokens)
        lm_tokens = tokens if self.token_map is None else self.token_map[tokens]
        if state.first:
            lm_tokens = np.full_like(tokens, self.language_model.begin)
        lm = self.language_model.step(state.language_model, lm_tokens)
        log_probs = own.log_probs
        if self.weight:  # 0 · −inf would be NaN
            lm_log_probs = (
                lm.log_probs if self.token_map is None else lm.log_probs[:, self.token_map]
            )
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
