"""Sound encoder: the frames of the stream "sound" to a context set, with fewer positions than
frames (D §IV-D; Chan et al. 2016 for putting neighbours together between the layers).
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from sightline.config import SoundEncoderConfig
from sightline.nn.dropout import Dropout
from sightline.nn.encoders.streams import positions, whole
from sightline.nn.encoders.text import reverse
from sightline.nn.recurrent import Recurrent
from sightline.types import ContextSet, Inputs


class SoundEncoder(nn.Module):
    """Stacked recurrent layers, each over what several positions of the one below put together."""

    def __init__(self, config: SoundEncoderConfig, features: int, classes: int = 0) -> None:
        super().__init__()
        self.config = config
        self.features = features
        self.drop = Dropout(config.dropout)
        directions = 2 if config.bidirectional else 1
        self.dimension = directions * config.hidden
        sizes = [features] + [self.dimension] * (len(config.together) - 1)
        self.layers = nn.ModuleList(
            nn.ModuleList(
                Recurrent(config.cell, n * size, config.hidden) for _ in range(directions)
            )
            for n, size in zip(config.together, sizes, strict=True)
        )
        # of a CTC loss: the tokens, of which <pad> stands for none
        self.ctc = nn.Linear(self.dimension, classes) if classes else None

    def example(self) -> Inputs:
        """Two examples, for the tracer of exports."""
        frames = 3 * math.prod(self.config.together) + 1
        sound = torch.zeros(2, frames, self.features)
        return Inputs(2, {"sound": whole(sound)})

    def forward(self, inputs: Inputs) -> ContextSet:
        hidden, mask = inputs["sound"].values, inputs["sound"].mask  # (B, L, F), (B, L)
        mask = positions(hidden, mask)
        last = hidden.new_zeros(0)
        for number, (layer, n) in enumerate(zip(self.layers, self.config.together, strict=True)):
            assert isinstance(layer, nn.ModuleList)
            hidden = self.drop(hidden) if number else hidden
            hidden, mask = put_together(hidden, mask, n)
            hidden, last = _read(layer, hidden, mask)
        if self.config.summary:
            return ContextSet(self.drop(last)[:, None], mask[:, :1])
        return ContextSet(self.drop(hidden) * mask[..., None], mask)


def put_together(hidden: Tensor, mask: Tensor, n: int) -> tuple[Tensor, Tensor]:
    """(B, L, F) → (B, ⌈L/n⌉, n·F): n neighbours as one, zeros for those behind the end."""
    if n == 1:
        return hidden, mask
    rows, size = hidden.shape[0], hidden.shape[2]
    hidden = hidden * mask[..., None]
    padded = torch.cat([hidden, hidden.new_zeros(rows, n - 1, size)], 1)
    kept = padded.shape[1] // n * n
    return padded[:, :kept].reshape(rows, -1, n * size), mask[:, ::n]


def _read(layer: nn.ModuleList, hidden: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Both directions of a layer: (B, M, D), and their last states (B, D)."""
    lengths, rows = mask.sum(1), hidden.shape[0]
    outputs, finals = [], []
    for backward, recurrent in enumerate(layer):
        assert isinstance(recurrent, Recurrent)
        sequence = reverse(hidden, lengths) if backward else hidden
        states, _ = recurrent.sequence(sequence, recurrent.start(rows))
        finals.append(states[torch.arange(rows), lengths - 1])
        outputs.append(reverse(states, lengths) if backward else states)
    return torch.cat(outputs, -1), torch.cat(finals, -1)
