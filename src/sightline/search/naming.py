"""Naming: a model that is readier to write the word that its encoder is sure of.

A captioner has read "dog" far more often than "wolf", and writes it even where its encoder's
classifier is sure of a wolf. Under naming the word's odds are raised until it is written:

    p'(w) = p(w) e^b / Z,  p'(v) = p(v) / Z for all others,  Z = 1 + p(w) (e^b − 1)

a distribution again, so a search weighs its sentences as before. The word is not forced (as by
the constrained beam search of Anderson et al. 2017): where no sentence has a place for it, it
stays out.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sightline.data.vocabulary import PAD
from sightline.search.constraints import Banned, constrain
from sightline.search.steppers import State, Stepper, StepResult, Wrapper
from sightline.types import ContextSet

NOTHING = PAD  # the word of an example whose encoder is sure of none


@dataclass(frozen=True)
class _NamingState:
    inner: State
    word: NDArray[np.int64]  # (N,): what is still to be named, or NOTHING

    def __len__(self) -> int:
        return len(self.word)


class Naming(Wrapper):
    """A model whose odds for a word are e^bonus times as high, until it is written.

    The word is the one that the encoder is surest of, if it is at least as sure as `least` has for
    that word, (V,) or one number for all.
    """

    def __init__(self, stepper: Stepper, bonus: float, least: float | NDArray[np.float32]) -> None:
        super().__init__(stepper)
        self.bonus = bonus
        self.least = np.asarray(least, np.float32)

    def without(self, tokens: Sequence[int]) -> Stepper:
        """The same with these tokens left out of the model's softmax."""
        return Naming(constrain(self.stepper, Banned(tokens)), self.bonus, self.least)

    def start(self, context: ContextSet) -> State:
        inner = self.stepper.start(context)
        word = np.full(len(inner), NOTHING)
        if context.sure is not None and context.tokens is not None:
            place = context.sure.argmax(axis=1)[:, None]  # (B, 1)
            surest = np.take_along_axis(context.tokens, place, axis=1)[:, 0]  # (B,)
            least = self.least[surest] if self.least.ndim else self.least
            sure = np.take_along_axis(context.sure, place, axis=1)[:, 0] >= least
            word[sure] = surest[sure]
        return _NamingState(inner, word)

    def step(self, state: State, tokens: NDArray[np.int64]) -> StepResult:
        assert isinstance(state, _NamingState)
        word = np.where(tokens == state.word, NOTHING, state.word)
        result = self.stepper.step(state.inner, tokens)
        (rows,) = np.nonzero(word != NOTHING)
        log_probs = result.log_probs
        if len(rows):
            log_probs = log_probs.copy()
            before = log_probs[rows, word[rows]]
            Z = 1 + np.exp(before) * np.float32(np.expm1(self.bonus))
            log_probs[rows] -= np.log(Z)[:, None]
            log_probs[rows, word[rows]] += np.float32(self.bonus)
        return StepResult(log_probs, result.attention, _NamingState(result.state, word))

    def leading(self, state: State, tokens: NDArray[np.int64], count: int) -> StepResult:
        """As the model itself where no example has a word to be named."""
        assert isinstance(state, _NamingState)
        inner = getattr(self.stepper, "leading", None)
        if inner is None or (state.word != NOTHING).any():
            return self.step(state, tokens)
        result: StepResult = inner(state.inner, tokens, count)
        after = _NamingState(result.state, state.word)
        return StepResult(result.log_probs, result.attention, after, result.tokens)

    def select(self, state: State, rows: NDArray[np.int64]) -> State:
        assert isinstance(state, _NamingState)
        return _NamingState(self.stepper.select(state.inner, rows), state.word[rows])
