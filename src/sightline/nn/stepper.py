"""TorchStepper: a PyTorch model behind the Stepper contract of the search."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sightline.data.vocabulary import BEGIN, END
from sightline.nn.decoder import DecoderState
from sightline.nn.model import EncoderDecoder, pad
from sightline.nn.posterior import knows_why, posterior
from sightline.search.steppers import SearchError, State, Steered, StepResult


class TorchStepper:
    """Runs a model, in evaluation mode and without gradients, one token at a time."""

    def __init__(
        self,
        model: EncoderDecoder,
        begin: int = BEGIN,
        end: int | None = END,
        banned: Sequence[int] = (),  # tokens never to be written
    ) -> None:
        self.model = model
        self.vocab_size = model.decoder.vocab_size
        self.begin = begin
        self.end = end
        self.banned = list(banned)
        self.device = next(model.parameters()).device

    @torch.inference_mode()
    def start(self, inputs: Any) -> State:
        """`inputs` as the encoder takes them, a state begun already, or a language model's rows."""
        if isinstance(inputs, Steered):
            return self._start_steered(inputs)
        self.model.eval()
        if isinstance(inputs, DecoderState):
            return inputs
        inputs = self._on_device(inputs)
        return self.model.start(inputs, inputs if self.model.encoder is None else 1)

    def _start_steered(self, steered: Steered) -> State:
        self.model.eval()
        context = self.model.encode(self._on_device(steered.inputs))
        if context is None or self.model.decoder.attention is None:
            raise SearchError("this model has no attention that could be steered")
        bias = torch.from_numpy(steered.bias).to(self.device)
        if bias.shape != context.mask.shape:
            shapes = f"{tuple(bias.shape)} for context sets of {tuple(context.mask.shape)}"
            raise SearchError(f"a bias of shape {shapes}; give one number for each position")
        return self.model.decoder.start(replace(context, bias=bias))

    def _on_device(self, inputs: Any) -> Any:
        if isinstance(inputs, np.ndarray):
            inputs = torch.from_numpy(inputs)
        if isinstance(inputs, torch.Tensor):
            inputs = (inputs.float() if inputs.is_floating_point() else inputs).to(self.device)
        return inputs

    @torch.inference_mode()
    def step(self, state: State, tokens: NDArray[np.int64]) -> StepResult:
        assert isinstance(state, DecoderState)
        ids = torch.from_numpy(tokens).to(self.device)
        logits, weights, state = self.model.decoder.step(ids, state)
        logits[:, self.banned] = -torch.inf
        log_probs = torch.log_softmax(logits, dim=-1)
        attention = None if weights is None else weights.cpu().numpy()
        return StepResult(log_probs.cpu().numpy(), attention, state)

    @torch.inference_mode()
    def select(self, state: State, rows: NDArray[np.int64]) -> State:
        assert isinstance(state, DecoderState)
        return self.model.decoder.select(state, torch.from_numpy(rows).to(self.device))

    @torch.inference_mode()
    def posterior(
        self, inputs: Any, tokens: Sequence[Sequence[int]]
    ) -> list[NDArray[np.float32]] | None:
        """For each example's given tokens where they came from, (T, M); None if that is unknown."""
        decoder = self.model.decoder
        if not knows_why(decoder):
            return None
        state = self.start(inputs)
        assert isinstance(state, DecoderState)
        found = posterior(decoder, pad([[self.begin, *row] for row in tokens], self.device), state)
        return [each[: len(row)].cpu().numpy() for each, row in zip(found, tokens, strict=True)]
