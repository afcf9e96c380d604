"""Shortlists (Jean et al. 2015): each sentence is written in the tokens that it may need.

These are the commonest tokens of the vocabulary, the translations that the lexicon has for the
sentence's own tokens, and these tokens themselves, for names. The output layer of a batch holds
what any of its sentences may need; each sentence still chooses among its own alone, so that a
batch equals its singles.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.data.vocabulary import SPECIALS, Vocabulary
from sightline.errors import UserError
from sightline.runtime.onnx import OnnxStepper
from sightline.search.steppers import Ensemble, State, Stepper, StepResult
from sightline.tasks.alignments import Lexicon


def candidates(
    sources: Sequence[Sequence[str]], common: int, lexicon: Lexicon, vocab: Vocabulary
) -> tuple[list[int], NDArray[np.bool_]]:
    """The tokens (C,) that the sentences may need, ascending, and which of them each may (B, C)."""
    if not lexicon:
        raise UserError(
            "a shortlist needs the model's lexicon; make it with `sightline align SRC TGT "
            "--model RUN --save-lexicon` on the training text"
        )
    always = range(min(len(vocab), len(SPECIALS) + common))
    own = [
        {
            vocab.ids[word]
            for token in tokens
            for word in (token, *lexicon.get(token, ()))
            if word in vocab.ids
        }
        for tokens in sources
    ]
    tokens = sorted({*always, *(token for some in own for token in some)})
    place = {token: i for i, token in enumerate(tokens)}
    allowed = np.zeros((len(sources), len(tokens)), dtype=bool)
    allowed[:, : len(always)] = True
    for row, some in enumerate(own):
        allowed[row, [place[token] for token in some]] = True
    return tokens, allowed


def shorten(stepper: Stepper, tokens: list[int], allowed: NDArray[np.bool_]) -> Stepper:
    """The same stepper over the shortlist: its token i is tokens[i]."""
    if isinstance(stepper, Ensemble):
        members = [shorten(member, tokens, allowed) for member in stepper.steppers]
        return Ensemble(members, stepper.weights)
    if isinstance(stepper, OnnxStepper):  # its output layer cannot be cut
        return Shortlist(Among(stepper, tokens), allowed)
    from sightline.nn.shortlist import shortlisted
    from sightline.nn.stepper import TorchStepper

    assert isinstance(stepper, TorchStepper)
    # specials keep their ids: begin, end and what is banned are the same
    small = shortlisted(stepper.model, tokens)
    return Shortlist(TorchStepper(small, stepper.begin, stepper.end, stepper.banned), allowed)


class Among:
    """A model over some of its tokens: token i is tokens[i]; probabilities are as they were."""

    def __init__(self, stepper: Stepper, tokens: list[int]) -> None:
        self.stepper = stepper
        self.tokens = np.array(tokens)
        self.vocab_size = len(tokens)
        self.begin, self.end = stepper.begin, stepper.end  # specials keep their ids

    def start(self, inputs: Any) -> State:
        return self.stepper.start(inputs)

    def step(self, state: State, tokens: NDArray[np.int64]) -> StepResult:
        result = self.stepper.step(state, self.tokens[tokens])
        return replace(result, log_probs=result.log_probs[:, self.tokens])

    def select(self, state: State, rows: NDArray[np.int64]) -> State:
        return self.stepper.select(state, rows)


@dataclass(frozen=True)
class _State:
    inner: State
    example: NDArray[np.int64]  # (N,): whose shortlist each row is held to

    def __len__(self) -> int:
        return len(self.example)


class Shortlist:
    """A model whose example b writes only tokens of allowed[b]; their probabilities sum to 1."""

    def __init__(self, stepper: Stepper, allowed: NDArray[np.bool_]) -> None:
        self.stepper = stepper
        self.vocab_size, self.begin, self.end = stepper.vocab_size, stepper.begin, stepper.end
        self.allowed = allowed  # (B, V)

    def start(self, inputs: Any) -> State:
        return _State(self.stepper.start(inputs), np.arange(len(self.allowed)))

    def step(self, state: State, tokens: NDArray[np.int64]) -> StepResult:
        assert isinstance(state, _State)
        result = self.stepper.step(state.inner, tokens)
        log_probs = np.where(self.allowed[state.example], result.log_probs, -np.inf)  # (N, V)
        peak = log_probs.max(1, keepdims=True)
        log_probs -= peak + np.log(np.exp(log_probs - peak).sum(1, keepdims=True))
        following = _State(result.state, state.example)
        return StepResult(log_probs.astype(np.float32), result.attention, following)

    def select(self, state: State, rows: NDArray[np.int64]) -> State:
        assert isinstance(state, _State)
        return _State(self.stepper.select(state.inner, rows), state.example[rows])
