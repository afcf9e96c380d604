"""Recurrent encoders; the text encoder: token ids of the stream "tokens" to a context set.

With `spelling` there is also the stream "spelling" (B, M, F): ids of each word's features.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sightline.config import RecurrentConfig
from sightline.data import spelling
from sightline.data.vocabulary import PAD, UNKNOWN
from sightline.nn.dropout import Dropout
from sightline.nn.recurrent import Recurrent
from sightline.types import ContextSet, Inputs, Stream


class RecurrentEncoder(nn.Module):
    """c_t = [→h_t; ←h_t] of every position (D §IV-A), or one vector, the last state."""

    def __init__(self, config: RecurrentConfig, embed: nn.Module) -> None:
        super().__init__()
        self.config = config
        self.embed = embed
        self.drop = Dropout(config.dropout)
        directions = 2 if config.bidirectional else 1
        sizes = [config.embedding] + [directions * config.hidden] * (config.layers - 1)
        self.layers = nn.ModuleList(
            nn.ModuleList(Recurrent(config.cell, size, config.hidden) for _ in range(directions))
            for size in sizes
        )
        self.dimension = directions * config.hidden

    def read(self, hidden: Tensor, mask: Tensor) -> ContextSet:
        """Embedded positions (B, M, E) to a context set."""
        lengths, rows = mask.sum(1), hidden.shape[0]  # not len: a traced graph takes any number
        hidden = self.drop(hidden)
        last = hidden.new_zeros(0)
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, nn.ModuleList)
            hidden = self.drop(hidden) if number else hidden
            outputs, finals = [], []
            for backward, recurrent in enumerate(layer):
                assert isinstance(recurrent, Recurrent)
                turned = bool(backward) != self.config.reversed
                sequence = reverse(hidden, lengths) if turned else hidden
                states, _ = recurrent.sequence(sequence, recurrent.start(rows))
                finals.append(states[torch.arange(rows), lengths - 1])  # (B, H)
                outputs.append(reverse(states, lengths) if turned else states)
            hidden, last = torch.cat(outputs, -1), torch.cat(finals, -1)
        if self.config.summary:
            return ContextSet(self.drop(last)[:, None], mask[:, :1])
        return ContextSet(self.drop(hidden) * mask[..., None], mask)


class TextEncoder(RecurrentEncoder):
    """Tokens, each embedded by itself."""

    def __init__(self, config: RecurrentConfig, vocab_size: int) -> None:
        embed = nn.Embedding(vocab_size, config.embedding, padding_idx=PAD)
        nn.init.normal_(embed.weight, std=config.embedding**-0.5)
        super().__init__(config, embed)
        if config.spelling:
            self.spell = nn.Embedding(spelling.SIZE, config.embedding, padding_idx=0)
            nn.init.normal_(self.spell.weight, std=0.5 * config.embedding**-0.5)

    def example(self) -> Inputs:
        """Two examples, for the tracer of exports."""
        tokens = torch.full((2, 3), PAD + 1)
        streams = {"tokens": Stream(tokens, tokens != PAD)}
        if self.config.spelling:
            streams["spelling"] = Stream(torch.ones(2, 3, 5, dtype=torch.long), tokens != PAD)
        return Inputs(2, streams)

    def forward(self, inputs: Inputs) -> ContextSet:
        tokens, mask = inputs["tokens"].values, inputs["tokens"].mask  # (B, M)
        if mask is None:
            mask = torch.ones_like(tokens, dtype=torch.bool)
        if self.training and self.config.word_dropout:
            dropped = torch.rand(tokens.shape, device=tokens.device) < self.config.word_dropout
            tokens = tokens.masked_fill(dropped & (tokens > UNKNOWN), UNKNOWN)
        hidden = self.embed(tokens)  # (B, M, E)
        if self.config.spelling:
            spelled = inputs["spelling"]
            assert spelled.mask is not None
            hidden = hidden + self.spell(spelled.values).sum(2) * spelled.mask[..., None]
        return self.read(hidden, mask)


def reverse(sequence: Tensor, lengths: Tensor) -> Tensor:
    """Each example's first `length` steps in reverse order; the padding stays where it is."""
    steps = torch.arange(sequence.shape[1], device=sequence.device)[None]  # (1, T)
    index = torch.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)
    return sequence.gather(1, index[..., None].expand_as(sequence))
