"""The encoder-decoder: reads inputs into a context set and scores or writes descriptions."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from sightline.config import LossConfig
from sightline.data.vocabulary import PAD, UNKNOWN
from sightline.errors import ConfigError, DataError
from sightline.nn.decoder import Decoder, DecoderState
from sightline.nn.losses import HardObjective, Loss, scale, sequence_loss
from sightline.types import ContextSet


@dataclass(frozen=True)
class Batch:
    """A minibatch of target sequences, with what they describe."""

    targets: Tensor  # (N, T + 1): <begin> y_1 … y_T, padded with <pad>
    inputs: Any = None  # what the encoder takes, for B examples; N = B · K
    name: str = ""  # says which examples these are, for error messages
    items: tuple[str, ...] = ()  # the examples' ids, where the task needs them

    def to(self, device: torch.device) -> Batch:
        inputs = None if self.inputs is None else self.inputs.to(device)
        return Batch(self.targets.to(device), inputs, self.name, self.items)


class EncoderDecoder(nn.Module):
    """An encoder (or none: a language model) and a decoder, with the loss that trains them."""

    def __init__(self, encoder: nn.Module | None, decoder: Decoder, loss: LossConfig) -> None:
        super().__init__()
        if loss.label_smoothing and decoder.config.sampled_softmax:
            raise ConfigError(
                "loss.label_smoothing needs the scores of all tokens, and model.sampled_softmax "
                "computes those of a few; set one of them to 0"
            )
        self.encoder = encoder
        self.decoder = decoder
        self.loss_config = loss
        self.own_words = 0.0  # scheduled sampling: how many words before it draws; the loop sets it
        self.hard: HardObjective | None = None
        if decoder.attention is not None and decoder.config.attention.hard:
            self.hard = HardObjective(loss.hard)

    def encode(self, inputs: Any, name: str = "") -> ContextSet | None:
        """Read the inputs; one with nothing to look at is an error that says which it is."""
        if self.encoder is None:
            return None
        context: ContextSet = self.encoder(inputs)
        seen = context.mask.any(1)  # (B,)
        if not bool(seen.all()):
            number = int((~seen).nonzero()[0]) + 1
            where = f" of {name}" if name else ""
            raise DataError(f"example {number}{where} is empty: there is nothing to attend to")
        return context

    def start(self, inputs: Any, rows: int = 1) -> DecoderState:
        """The decoder's first state, one row per example (`rows` of them with no encoder)."""
        return self.decoder.start(self.encode(inputs), rows)

    def loss(self, batch: Batch, state: DecoderState | None = None) -> tuple[Loss, DecoderState]:
        """The loss of a batch, from `state` where one is carried over (truncated BPTT)."""
        before, targets = batch.targets[:, :-1], batch.targets[:, 1:]
        if state is None:
            context = self.encode(batch.inputs, batch.name)
            if self.hard is not None and self.training:
                assert context is not None
                return self._hard_loss(self.hard, context, before, targets)
            examples = len(targets) if context is None else len(context)
            state = self.decoder.start(context, len(targets), len(targets) // examples)
        decoded = self.decoder(self._partly_own(before, state), state)
        _, loss = sequence_loss(self.decoder, decoded, targets, self.loss_config)
        return loss, decoded.state

    def _partly_own(self, before: Tensor, state: DecoderState) -> Tensor:
        """The words before, (N, T), in training some of its own (Bengio et al. 2015).

        Each is drawn given all before it, drawn or true; the gradient does not pass through them.
        """
        if not (self.training and self.own_words):
            return before
        own = (torch.rand(before.shape, device=before.device) < self.own_words) & (before != PAD)
        mixed = before.clone()
        self.decoder.eval()
        with torch.no_grad():
            for t in range(1, before.shape[1]):
                logits, _, state = self.decoder.step(mixed[:, t - 1], state)
                logits[:, : UNKNOWN + 1] = -torch.inf
                drawn = torch.multinomial(logits.softmax(1), 1)[:, 0]
                mixed[:, t] = torch.where(own[:, t], drawn, before[:, t])
        self.decoder.train()
        return mixed

    def _hard_loss(
        self, objective: HardObjective, context: ContextSet, before: Tensor, targets: Tensor
    ) -> tuple[Loss, DecoderState]:
        """Xu et al. §4.1: N sampled paths per caption, as rows that share one context set."""
        samples = objective.config.samples
        expected = objective.expected_rows(len(targets), targets.device)
        before, targets, expected = (
            each.repeat_interleave(samples, 0) for each in (before, targets, expected)
        )
        state = self.decoder.start(context, per_example=len(targets) // len(context))
        state = replace(state, expected=expected)
        decoded = self.decoder(self._partly_own(before, state), state)
        likelihood, loss = sequence_loss(self.decoder, decoded, targets, self.loss_config)
        bonus, parts = objective(likelihood, decoded, expected, targets != PAD)
        total = loss.total + bonus / scale(self.loss_config, loss.tokens, len(targets))
        return (
            Loss(total, loss.nats / samples, loss.tokens // samples, loss.parts | parts),
            decoded.state,
        )


def pad(sequences: list[list[int]], device: torch.device | str = "cpu") -> Tensor:
    """Token lists as one (N, T) tensor, padded at the end."""
    longest = max(map(len, sequences))
    rows = [sequence + [PAD] * (longest - len(sequence)) for sequence in sequences]
    return torch.tensor(rows, dtype=torch.long, device=device)
