"""Text encoder: the token ids of the stream "tokens" to a context set."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sightline.config import RecurrentConfig
from sightline.data.vocabulary import BEGIN, PAD, UNKNOWN
from sightline.nn.dropout import Dropout
from sightline.nn.recurrent import Recurrent
from sightline.types import ContextSet, Inputs, Stream


class TextEncoder(nn.Module):
    """c_t = [→h_t; ←h_t] of every token (D §IV-A), or one vector, the last state."""

    def __init__(self, config: RecurrentConfig, vocab_size: int) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(vocab_size, config.embedding, padding_idx=PAD)
        nn.init.normal_(self.embed.weight, std=config.embedding**-0.5)
        if config.bigrams:
            self.bigrams = nn.Embedding(config.bigrams, config.embedding)
            nn.init.zeros_(self.bigrams.weight)  # a pair that training lacks adds nothing
        self.drop = Dropout(config.dropout)
        directions = 2 if config.bidirectional else 1
        sizes = [config.embedding] + [directions * config.hidden] * (config.layers - 1)
        self.layers = nn.ModuleList(
            nn.ModuleList(Recurrent(config.cell, size, config.hidden) for _ in range(directions))
            for size in sizes
        )
        self.dimension = directions * config.hidden

    def example(self) -> Inputs:
        """Two examples, for the tracer of exports."""
        tokens = torch.full((2, 3), PAD + 1)
        return Inputs(2, {"tokens": Stream(tokens, tokens != PAD)})

    def forward(self, inputs: Inputs) -> ContextSet:
        tokens, mask = inputs["tokens"].values, inputs["tokens"].mask  # (B, M)
        if mask is None:
            mask = torch.ones_like(tokens, dtype=torch.bool)
        lengths, rows = mask.sum(1), tokens.shape[0]  # not len: a traced graph takes any number
        hidden = self.drop(self._embed(tokens))  # (B, M, E)
        last = hidden.new_zeros(0)
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, nn.ModuleList)
            hidden = self.drop(hidden) if number else hidden
            outputs, finals = [], []
            for backward, recurrent in enumerate(layer):
                assert isinstance(recurrent, Recurrent)
                sequence = reverse(hidden, lengths) if backward else hidden
                states, _ = recurrent.sequence(sequence, recurrent.start(rows))
                finals.append(states[torch.arange(rows), lengths - 1])  # (B, H)
                outputs.append(reverse(states, lengths) if backward else states)
            hidden, last = torch.cat(outputs, -1), torch.cat(finals, -1)
        if self.config.summary:
            return ContextSet(self.drop(last)[:, None], mask[:, :1])
        return ContextSet(self.drop(hidden) * mask[..., None], mask)

    def _embed(self, tokens: Tensor) -> Tensor:
        if self.training and self.config.word_dropout:
            unread = torch.rand(tokens.shape, device=tokens.device) < self.config.word_dropout
            tokens = tokens.masked_fill(unread, UNKNOWN)
        embedded: Tensor = self.embed(tokens)  # (B, M, E)
        if not self.config.bigrams:
            return embedded
        before = F.pad(tokens[:, :-1], (1, 0), value=BEGIN)
        pairs, count = before * 1_000_003 + tokens, self.config.bigrams
        # their remainder, without ONNX's Mod: pairs that share a vector are rarely both in use
        hashed = pairs - torch.div(pairs, count, rounding_mode="trunc") * count
        return embedded + self.bigrams(hashed)


def reverse(sequence: Tensor, lengths: Tensor) -> Tensor:
    """Each example's first `length` steps in reverse order; the padding stays where it is."""
    steps = torch.arange(sequence.shape[1], device=sequence.device)[None]  # (1, T)
    index = torch.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)
    return sequence.gather(1, index[..., None].expand_as(sequence))
