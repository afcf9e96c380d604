"""TorchEncoder and TorchStepper: a PyTorch model behind the contracts of run time, in NumPy."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sightline.data.vocabulary import BEGIN, END
from sightline.nn.decoder import Decoder, DecoderState
from sightline.nn.heads import PointerHead
from sightline.nn.model import EncoderDecoder, pad
from sightline.nn.posterior import has_posterior, posterior
from sightline.search.steppers import SearchError, State, StepResult
from sightline.types import ContextSet, Inputs


class TorchEncoder:
    """Reads inputs with a model's encoder, in evaluation mode and without gradients."""

    def __init__(self, model: EncoderDecoder) -> None:
        self.model = model

    @torch.inference_mode()
    def encode(self, inputs: Inputs) -> ContextSet:
        self.model.eval()
        device = next(self.model.parameters()).device
        context = self.model.encode(inputs.map(lambda array: _tensor(array, device)))
        values, mask = context.values.cpu().numpy(), context.mask.cpu().numpy()
        bias, tokens, sure = (
            None if part is None else part.cpu().numpy()
            for part in (context.bias, context.tokens, context.sure)
        )
        return ContextSet(values, mask, bias=bias, tokens=tokens, sure=sure)


class TorchStepper:
    """Runs a decoder without gradients, one token at a time."""

    def __init__(
        self, model: EncoderDecoder | Decoder, begin: int = BEGIN, end: int | None = END
    ) -> None:
        self.decoder = model.decoder if isinstance(model, EncoderDecoder) else model
        # 0 with a pointer head: there are as many tokens as `step` gives probabilities of
        self.vocab_size = self.decoder.vocab_size
        self.begin = begin
        self.end = end
        self.left_out: list[int] = []
        self.device = next(self.decoder.parameters()).device

    def without(self, tokens: Sequence[int]) -> TorchStepper:
        """The same model with these tokens left out of the softmax."""
        other = copy.copy(self)
        other.left_out = [*self.left_out, *tokens]
        return other

    def subset(self, tokens: Sequence[int]) -> TorchStepper:
        """The same model over these tokens, with a smaller output layer; the specials stay."""
        other = copy.copy(self)
        other.decoder = self.decoder.shortlisted(torch.tensor(tokens, device=self.device))
        other.vocab_size = len(tokens)
        return other

    @torch.inference_mode()
    def start(self, context: ContextSet) -> State:
        values, mask = (_tensor(array, self.device) for array in (context.values, context.mask))
        bias = None if context.bias is None else _tensor(context.bias, self.device)
        if bias is not None:
            if self.decoder.attention is None and not isinstance(self.decoder.output, PointerHead):
                raise SearchError("this model has no attention that could be steered")
            if bias.shape != mask.shape:
                shapes = f"{tuple(bias.shape)} for context sets of {tuple(mask.shape)}"
                raise SearchError(f"a bias of shape {shapes}; give one number for each position")
        named = None if context.tokens is None else _tensor(context.tokens, self.device)
        return self.decoder.start(ContextSet(values, mask, bias=bias, tokens=named))

    @torch.inference_mode()
    def step(self, state: State, tokens: NDArray[np.int64]) -> StepResult:
        assert isinstance(state, DecoderState)
        read = _tensor(tokens, self.device)
        logits, weights, state = self.decoder.step(read, state, self.left_out)
        log_probs = torch.log_softmax(logits, dim=-1)
        if self.left_out:  # a row without any token left is impossible, not NaN
            log_probs[logits.isneginf().all(1)] = -torch.inf
        attention = None if weights is None else weights.cpu().numpy()
        return StepResult(log_probs.cpu().numpy(), attention, state)

    @torch.inference_mode()
    def select(self, state: State, rows: NDArray[np.int64]) -> State:
        assert isinstance(state, DecoderState)
        return self.decoder.select(state, _tensor(rows, self.device))

    def posterior(
        self, context: ContextSet, tokens: Sequence[Sequence[int]]
    ) -> list[NDArray[np.float32]] | None:
        """Where each example's given tokens came from, (T, M); None if that is unknown."""
        if not has_posterior(self.decoder):
            return None
        state = self.start(context)
        assert isinstance(state, DecoderState)
        self.decoder.eval()
        rows = pad([[self.begin, *row] for row in tokens], self.device)
        result = posterior(self.decoder, rows, state)
        return [each[: len(row)].cpu().numpy() for each, row in zip(result, tokens, strict=True)]


def _tensor(array: Any, device: torch.device) -> Tensor:
    """On the device; half precision is widened."""
    tensor = torch.as_tensor(array).to(device)
    return tensor.float() if tensor.dtype == torch.float16 else tensor
