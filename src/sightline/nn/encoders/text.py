"""Encoders: token ids, or vectors that a picture encoder made, in; context set out."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sightline.config import RecurrentConfig
from sightline.data.vocabulary import PAD
from sightline.nn.dropout import Dropout
from sightline.nn.encoders.image import ImageEncoder
from sightline.nn.recurrent import Recurrent
from sightline.types import ContextSet


class TextEncoder(nn.Module):
    """Token ids → context set: c_t = [→h_t; ←h_t] (D §IV-A), or one vector, the last state."""

    def __init__(self, config: RecurrentConfig, vocab_size: int) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(vocab_size, config.embedding, padding_idx=PAD)
        nn.init.normal_(self.embed.weight, std=config.embedding**-0.5)
        self.drop = Dropout(config.dropout)
        directions = 2 if config.bidirectional else 1
        sizes = [config.embedding] + [directions * config.hidden] * (config.layers - 1)
        self.layers = nn.ModuleList(
            nn.ModuleList(Recurrent(config.cell, size, config.hidden) for _ in range(directions))
            for size in sizes
        )
        self.dimension = directions * config.hidden

    def forward(self, tokens: Tensor) -> ContextSet:
        """tokens (B, M), padded with <pad>."""
        mask = tokens != PAD
        lengths = mask.sum(1)
        hidden = self.drop(self.embed(tokens))  # (B, M, E)
        last = hidden.new_zeros(0)
        for number, layer in enumerate(self.layers):
            assert isinstance(layer, nn.ModuleList)
            hidden = self.drop(hidden) if number else hidden
            outputs, finals = [], []
            for backward, recurrent in enumerate(layer):
                assert isinstance(recurrent, Recurrent)
                inputs = reverse(hidden, lengths) if backward else hidden
                states, _ = recurrent.sequence(inputs, recurrent.start(len(tokens)))
                finals.append(states[torch.arange(len(tokens)), lengths - 1])  # (B, H)
                outputs.append(reverse(states, lengths) if backward else states)
            hidden, last = torch.cat(outputs, -1), torch.cat(finals, -1)
        if self.config.summary:
            return ContextSet(self.drop(last)[:, None], torch.ones_like(mask[:, :1]))
        return ContextSet(self.drop(hidden) * mask[..., None], mask)


class FeatureEncoder(nn.Module):
    """Annotation vectors that were computed before, (B, M, D), as a context set."""

    def forward(self, features: Tensor) -> ContextSet:
        return ContextSet(features, features.new_ones(features.shape[:2], dtype=torch.bool))


class LearnedEncoder(nn.Module):
    """A picture encoder that learns with the decoder: pictures, or maps of stride 16, in."""

    def __init__(self, pictures: ImageEncoder) -> None:
        super().__init__()
        self.pictures = pictures
        # gradients of depthwise convolutions take two thirds of the time this way
        pictures.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, inputs: Tensor) -> ContextSet:
        read = self.pictures.above if self.pictures.learning == "upper" else self.pictures
        vectors: Tensor = read(inputs)
        return ContextSet(vectors, vectors.new_ones(vectors.shape[:2], dtype=torch.bool))


def reverse(sequence: Tensor, lengths: Tensor) -> Tensor:
    """Each example's first `length` steps in reverse order; the padding stays where it is."""
    steps = torch.arange(sequence.shape[1], device=sequence.device)[None]  # (1, T)
    index = torch.where(steps < lengths[:, None], lengths[:, None] - 1 - steps, steps)
    return sequence.gather(1, index[..., None].expand_as(sequence))
