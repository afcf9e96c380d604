"""Deep fusion (Gulcehre et al. 2015): the state of a language model enters the deep output.

    g_t = σ(v · s_t + b)
    p(y_t) ∝ exp(L_o(E y_{t-1} + L_h h_t + L_z ẑ_t + L_s (g_t s_t)))

s_t is the state of a language model that has read what was written, y_0 … y_{t-1}. It and the
translator are trained before and stay as they are; the output layer and what is new here learn.
"""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from sightline.config import DecoderConfig
from sightline.data.vocabulary import PAD
from sightline.errors import ConfigError
from sightline.nn.decoder import Decoded, Decoder, DecoderState, with_rows
from sightline.nn.model import EncoderDecoder
from sightline.nn.recurrent import Recurrent
from sightline.types import ContextSet

GATE_BIAS = -1.0  # as in the paper: the gate begins rather closed
# Where the output layer is tied its matrix is the embedding, which stays as it is.
LEARNS = tuple(
    f"decoder.{part}."
    for part in ("output", "from_hidden", "from_context", "from_prior", "prior_gate")
)


class LanguageModelCells(nn.Module):
    """The part of a language model that reads: its embedding and cells, without its head."""

    def __init__(self, config: DecoderConfig, vocab_size: int) -> None:
        super().__init__()
        self.embed = nn.Embedding(vocab_size, config.embedding, padding_idx=PAD)
        self.recurrent = Recurrent(config.cell, config.embedding, config.hidden, config.layers)


class FusedDecoder(Decoder):
    """A decoder whose readout also gets the state of a language model."""

    def __init__(
        self, config: DecoderConfig, vocab_size: int, context_size: int, prior: DecoderConfig
    ) -> None:
        super().__init__(config, vocab_size, context_size)
        if config.head != "vocabulary":
            raise ConfigError(f"deep fusion needs model.head=vocabulary, not {config.head}")
        self.prior = LanguageModelCells(prior, vocab_size)
        self.prior_gate = nn.Linear(prior.hidden, 1)  # v, b
        nn.init.constant_(self.prior_gate.bias, GATE_BIAS)
        self.from_prior = nn.Linear(prior.hidden, self.readout_size, bias=False)  # L_s
        nn.init.zeros_(self.from_prior.weight)  # it begins as the translator that it was

    def start(self, context: ContextSet, per_example: int = 1) -> DecoderState:
        state = super().start(context, per_example)
        return replace(state, prior=self.prior.recurrent.start(len(state)))

    def forward(self, tokens: Tensor, state: DecoderState, chosen: Tensor | None = None) -> Decoded:
        decoded = super().forward(tokens, state, chosen)
        hidden, after = self.prior.recurrent.sequence(self.prior.embed(tokens), state.prior)
        return replace(
            decoded,
            readouts=decoded.readouts + self.from_prior(self.drop(self._gated(hidden))),
            state=replace(decoded.state, prior=after),
        )

    def advance(
        self, tokens: Tensor, state: DecoderState
    ) -> tuple[Tensor, Tensor | None, DecoderState]:
        readout, weights, following = super().advance(tokens, state)
        cells = self.prior.recurrent
        hidden, after = cells.step(cells.project(self.prior.embed(tokens)), state.prior)
        readout = readout + self.from_prior(self._gated(hidden))
        return readout, weights, replace(following, prior=after)

    def shortlisted(self, index: Tensor) -> Decoder:
        twin = super().shortlisted(index)
        twin.prior = with_rows(self.prior, self.prior.embed, index)  # reads the same tokens
        return twin

    def _gated(self, hidden: Tensor) -> Tensor:
        """g_t s_t, (…, H)."""
        return torch.sigmoid(self.prior_gate(hidden)) * hidden


def fuse(fused: EncoderDecoder, translator: EncoderDecoder, language_model: EncoderDecoder) -> None:
    """Put the weights of two trained models into a fused one, and let only the rest learn."""
    assert isinstance(fused.decoder, FusedDecoder)
    fused.load_state_dict(translator.state_dict(), strict=False)
    prior = fused.decoder.prior
    trained = language_model.decoder.state_dict()
    prior.load_state_dict({name: trained[name] for name in prior.state_dict()})
    for name, parameter in fused.named_parameters():
        parameter.requires_grad_(name.startswith(LEARNS))
