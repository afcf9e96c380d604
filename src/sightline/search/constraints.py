"""Constraints: which tokens an output may continue with, whatever the model thinks of them.

A constraint is a small frozen object that looks at what has been written and allows some tokens or
all of them. `constrain(stepper, *constraints)` is the stepper under constraints, for any search.

A token that is not allowed has log-probability −inf. What is left keeps the model's own
log-probabilities, unless the constraint is `renormalised`: then they are as if the tokens had been
left out of the model's softmax.
"""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from sightline.data.vocabulary import SPECIALS
from sightline.search.steppers import (
    Ensemble,
    Fusion,
    State,
    Stepper,
    StepResult,
    Subset,
    Wrapper,
    require,
)
from sightline.types import ContextSet

Mask = NDArray[np.bool_]  # (N, V), or (1, V) where it is the same for all rows; true: allowed
FEW = 32  # so many more of the likeliest tokens cost less than the whole vocabulary


@dataclass(frozen=True)
class Rows:
    """What a constraint decides by: the N rows of a search at one step."""

    example: NDArray[np.int64]  # (N,): the example of each row, counted from 0 at the start
    written: NDArray[np.int64]  # (N, t): the tokens so far, without the begin token
    vocab_size: int
    end: int | None


class Constraint(ABC):
    """What an output may continue with, given its example and all that it has written so far.

    An ended output is not continued, so `written` never holds the end token, except in the unused
    rows of a beam, whose answer does not matter.
    """

    renormalised: ClassVar[bool] = False

    def check(self, examples: int, vocab_size: int) -> None:  # noqa: B027 (most need none)
        """Raise a SearchError unless this fits the batch and the vocabulary."""

    @abstractmethod
    def allowed(self, rows: Rows) -> Mask | None:
        """Which tokens may come next; None: all of them."""


@dataclass(frozen=True)
class Prefix(Constraint):
    """Outputs begin as given: one prefix per example, of any length or empty.

    Prefix tokens count towards the lengths of a search.
    """

    prefixes: Sequence[Sequence[int]]

    def check(self, examples: int, vocab_size: int) -> None:
        for number, prefix in enumerate(self.prefixes):
            _check_ids(f"prefix {number}", prefix, vocab_size)
        require(
            len(self.prefixes) == examples,
            f"{len(self.prefixes)} prefixes for {examples} examples; give one for each "
            "(an empty one where nothing is forced)",
        )

    def allowed(self, rows: Rows) -> Mask | None:
        t = rows.written.shape[1]
        forced = np.array([p[t] if t < len(p) else -1 for p in self.prefixes], dtype=np.int64)
        forced = forced[rows.example]  # (N,)
        (inside,) = np.nonzero(forced >= 0)
        if not len(inside):
            return None
        allowed = np.ones((len(forced), rows.vocab_size), dtype=bool)
        allowed[inside] = False
        allowed[inside, forced[inside]] = True
        return allowed


@dataclass(frozen=True)
class MinLength(Constraint):
    """Outputs have at least n tokens, the end token included."""

    n: int

    def __post_init__(self) -> None:
        require(self.n >= 0, f"minimum length {self.n}; give 0 or more")

    def allowed(self, rows: Rows) -> Mask | None:
        if rows.end is None or rows.written.shape[1] + 1 >= self.n:
            return None
        return np.not_equal(np.arange(rows.vocab_size)[None], rows.end)


@dataclass(frozen=True)
class NoRepeatedNgrams(Constraint):
    """No output holds the same n-gram twice; n = 1: no token."""

    n: int

    def __post_init__(self) -> None:
        require(self.n >= 1, f"n-grams of length {self.n}; give 1 or more")

    def allowed(self, rows: Rows) -> Mask | None:
        written, n = rows.written, self.n
        count = written.shape[1] - n + 1  # n-grams so far
        if count <= 0:
            return None
        same = np.ones((len(written), count), dtype=bool)  # begins like the n-gram in the making?
        for i in range(n - 1):
            same &= written[:, i : i + count] == written[:, count + i, None]
        repeating, places = np.nonzero(same)
        if not len(repeating):
            return None
        allowed = np.ones((len(written), rows.vocab_size), dtype=bool)
        allowed[repeating, written[repeating, places + n - 1]] = False
        return allowed


@dataclass(frozen=True)
class NoRepeatedWords(Constraint):
    """Each of these tokens, such as those of content words, is written at most once."""

    tokens: Sequence[int] | NDArray[np.int64]

    def allowed(self, rows: Rows) -> Mask | None:
        counts = np.zeros(rows.vocab_size, dtype=bool)
        counts[np.asarray(self.tokens)] = True
        having, places = np.nonzero(counts[rows.written])
        if not len(having):
            return None
        allowed = np.ones((len(rows.example), rows.vocab_size), dtype=bool)
        allowed[having, rows.written[having, places]] = False
        return allowed


@dataclass(frozen=True)
class Banned(Constraint):
    """These tokens are never written."""

    renormalised = True
    tokens: Sequence[int]

    def check(self, examples: int, vocab_size: int) -> None:
        _check_ids("the list of banned tokens", self.tokens, vocab_size)

    def allowed(self, rows: Rows) -> Mask | None:
        allowed = np.ones((1, rows.vocab_size), dtype=bool)
        allowed[:, list(self.tokens)] = False
        return allowed


@dataclass(frozen=True)
class Shortlist(Constraint):
    """Example b writes only the tokens of choices[b] (Jean et al. 2015)."""

    renormalised = True
    choices: Mask  # (B, V)

    def check(self, examples: int, vocab_size: int) -> None:
        require(
            self.choices.shape == (examples, vocab_size),
            f"a shortlist of shape {self.choices.shape} for {examples} examples and "
            f"{vocab_size} tokens; give one row for each example and one column for each token",
        )

    def allowed(self, rows: Rows) -> Mask | None:
        return self.choices[rows.example]


@dataclass(frozen=True)
class _ConstrainedState:
    inner: State
    example: NDArray[np.int64]  # (N,)
    fed: NDArray[np.int64]  # (N, t): every token fed so far; the first is the begin token

    def __len__(self) -> int:
        return len(self.example)


class Constrained(Wrapper):
    """A model that writes only what all the constraints allow."""

    def __init__(self, stepper: Stepper, *constraints: Constraint) -> None:
        super().__init__(stepper)
        self.constraints = constraints
        # what is left out of a softmax is left out before anything else is forbidden
        self._renormalised = [each for each in constraints if each.renormalised]
        self._masked = [each for each in constraints if not each.renormalised]

    def start(self, context: ContextSet) -> State:
        inner = self.stepper.start(context)
        N = len(inner)
        # a pointer's tokens are the special ones and the positions of its inputs
        vocab_size = self.vocab_size or len(SPECIALS) + context.values.shape[1]
        for constraint in self.constraints:
            constraint.check(N, vocab_size)
        return _ConstrainedState(inner, np.arange(N), np.empty((N, 0), dtype=np.int64))

    def step(self, state: State, tokens: NDArray[np.int64]) -> StepResult:
        assert isinstance(state, _ConstrainedState)
        result = self.stepper.step(state.inner, tokens)
        log_probs = result.log_probs
        rows, fed = self._feed(state, tokens, log_probs.shape[1])
        if (allowed := _allowed(self._renormalised, rows)) is not None:
            log_probs = _renormalise(np.where(allowed, log_probs, np.float32(-np.inf)))
        if (allowed := _allowed(self._masked, rows)) is not None:
            log_probs = np.where(allowed, log_probs, np.float32(-np.inf))
        following = _ConstrainedState(result.state, state.example, fed)
        return StepResult(log_probs, result.attention, following)

    def leading(self, state: State, tokens: NDArray[np.int64], count: int) -> StepResult:
        """The likeliest allowed tokens: as many more as are forbidden, less those forbidden."""
        assert isinstance(state, _ConstrainedState)
        inner_leading = getattr(self.stepper, "leading", None)
        if inner_leading is None or self._renormalised or not self.vocab_size:
            return self.step(state, tokens)  # of a pointer it is the step that says how many
        rows, fed = self._feed(state, tokens, self.vocab_size)
        allowed, more = _allowed(self._masked, rows), 0
        if allowed is not None:
            more = self.vocab_size - int(np.count_nonzero(allowed, axis=1).min())
            if more > FEW or count + more > self.vocab_size:
                return self.step(state, tokens)
        result = inner_leading(state.inner, tokens, count + more)
        if allowed is not None:
            result = _restricted(result, allowed, count)
        following = _ConstrainedState(result.state, state.example, fed)
        return StepResult(result.log_probs, result.attention, following, result.tokens)

    def select(self, state: State, rows: NDArray[np.int64]) -> State:
        assert isinstance(state, _ConstrainedState)
        inner = self.stepper.select(state.inner, rows)
        return _ConstrainedState(inner, state.example[rows], state.fed[rows])

    def _feed(
        self, state: _ConstrainedState, tokens: NDArray[np.int64], vocab_size: int
    ) -> tuple[Rows, NDArray[np.int64]]:
        fed = np.concatenate([state.fed, tokens[:, None]], axis=1)
        return Rows(state.example, fed[:, 1:], vocab_size, self.end), fed


def constrain(stepper: Stepper, *constraints: Constraint) -> Stepper:
    """The stepper under all these constraints; the stepper itself where there are none.

    What is left out of a softmax is left out of every softmax: of each model of an ensemble, and
    of the model that a language model is fused with. A stepper that has `without` leaves banned
    tokens out by itself.
    """
    if renormalised := [each for each in constraints if each.renormalised]:
        stepper = _leave_out(stepper, renormalised)
    masked = [each for each in constraints if not each.renormalised]
    return Constrained(stepper, *masked) if masked else stepper


def _leave_out(stepper: Stepper, constraints: Sequence[Constraint]) -> Stepper:
    if isinstance(stepper, Ensemble):
        members = [_leave_out(member, constraints) for member in stepper.steppers]
        return Ensemble(members, stepper.weights)
    if isinstance(stepper, Fusion):
        model, lm = _leave_out(stepper.stepper, constraints), stepper.language_model
        return Fusion(model, lm, stepper.weight, stepper.token_map)
    if isinstance(stepper, Constrained):  # so that the order of calls does not matter
        return Constrained(_leave_out(stepper.stepper, constraints), *stepper.constraints)
    if banned := [t for part in constraints if isinstance(part, Banned) for t in part.tokens]:
        stepper = _without(stepper, banned)
    others = [part for part in constraints if not isinstance(part, Banned)]
    return Constrained(stepper, *others) if others else stepper


def _without(stepper: Stepper, tokens: list[int]) -> Stepper:
    if isinstance(stepper, Subset):  # left out of the softmax over all tokens
        banned = Banned(stepper.tokens[tokens].tolist())
        return Subset(_leave_out(stepper.stepper, [banned]), stepper.tokens.tolist())
    own = getattr(stepper, "without", None)
    return Constrained(stepper, Banned(tokens)) if own is None else own(tokens)


def _allowed(constraints: Sequence[Constraint], rows: Rows) -> Mask | None:
    masks = [mask for each in constraints if (mask := each.allowed(rows)) is not None]
    return functools.reduce(np.logical_and, masks) if masks else None


def _renormalise(log_probs: NDArray[np.float32]) -> NDArray[np.float32]:
    """Probabilities that sum to 1 in every row (N, V) that has any."""
    peak = log_probs.max(axis=1, keepdims=True)
    peak[peak == -np.inf] = 0.0  # nothing is possible: stays so, without inf − inf
    total = np.exp(log_probs - peak).sum(axis=1, keepdims=True)
    total[total == 0] = 1.0
    return np.asarray(log_probs - (peak + np.log(total)), np.float32)


def _restricted(result: StepResult, allowed: Mask, count: int) -> StepResult:
    """Of a result's tokens, best first, the first `count` that are allowed."""
    if result.tokens is None:  # it has all tokens, in order
        log_probs = np.where(allowed, result.log_probs, np.float32(-np.inf))
        return replace(result, log_probs=log_probs)
    allowed = np.broadcast_to(allowed, (len(result.tokens), allowed.shape[1]))
    dropped = ~np.take_along_axis(allowed, result.tokens, axis=1)  # (N, n)
    order = dropped.argsort(axis=1, kind="stable")[:, :count]
    return replace(
        result,
        log_probs=np.take_along_axis(result.log_probs, order, axis=1),
        tokens=np.take_along_axis(result.tokens, order, axis=1),
    )


def _check_ids(what: str, tokens: Sequence[int], vocab_size: int) -> None:
    for token in tokens:
        require(
            0 <= token < vocab_size,
            f"{what} has the token id {token}; the vocabulary's ids are 0 to {vocab_size - 1}",
        )
