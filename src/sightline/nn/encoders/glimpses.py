"""Glimpses: a coarse look at a whole picture, then a few places of it at full resolution.

A small network scores the cells of a look whose size does not depend on the picture's; the best k
cells, some way apart, are cut out of the picture and read by another one. Only these pixels are
touched, so that the cost is that of k crops, whether the picture has 1 megapixel or 100 (Mnih et
al. 2014 and Ba et al. 2014 have the same aim and REINFORCE; this is attention over a coarse map of
which the top k are fetched).

What the scores learn from: they are added to the decoder's attention (`ContextSet.bias`), so
that α_ti ∝ exp(e_ti + s_i), and a place that helped is scored higher the next time. In training
Gumbel noise makes other places likely to be looked at, too.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from sightline.config import GlimpseConfig
from sightline.types import ContextSet, Inputs, Stream

PIXELS = "pixels"  # the stream: (B, H, W, 3) of bytes, the pictures as they are
_FINEST = 3.0  # pixels between the coarse look's, at least: less would be a second full look


class GlimpseEncoder(nn.Module):
    """Pictures of one size (B, H, W, 3) to k vectors each, in the order of their scores."""

    def __init__(self, config: GlimpseConfig) -> None:
        super().__init__()
        self.config = config
        self.dimension = config.dimension
        self.score = nn.Sequential(
            *_layer(3, 16, 3, stride=2, padding=1),
            *_layer(16, 16, 3, padding=1),
            *_layer(16, 16, 3, padding=3, dilation=3),
            nn.Conv2d(16, 1, 1),
        )
        self.read = glimpse_network(config.dimension)
        self.place = nn.Linear(2, config.dimension)

    def example(self) -> Inputs:
        """Two pictures, for the tracer of exports."""
        side = 4 * self.config.side
        return Inputs(2, {PIXELS: Stream(torch.zeros(2, side, side, 3, dtype=torch.uint8))})

    def forward(self, inputs: Inputs) -> ContextSet:
        pixels = inputs[PIXELS].values  # (B, H, W, 3), which may be mapped from a file
        centres, scores = self.choose(pixels)  # (B, k, 2) in pixels, (B, k)
        crops = cut(pixels, centres, self.config.side)  # (B, k, side, side, 3)
        vectors = self.read(planes(crops.flatten(0, 1))).mean((2, 3))  # (B · k, D)
        size = torch.tensor(pixels.shape[1:3], device=pixels.device)
        values = vectors.unflatten(0, centres.shape[:2]) + self.place(centres / size - 0.5)
        mask = torch.ones(values.shape[:2], dtype=torch.bool, device=values.device)
        return ContextSet(values, mask, bias=scores)

    def choose(self, pixels: Tensor) -> tuple[Tensor, Tensor]:
        """Where to look: centres (row, column) in pixels, (B, k, 2), and their scores, (B, k)."""
        stride = self.stride(max(pixels.shape[1:3]))
        scores = self.score(planes(look(pixels, stride)))[:, 0]  # (B, rows, columns)
        rows, columns = scores.shape[1:]
        cell = 2 * stride  # pixels: the first layer halves
        side = torch.arange(max(rows, columns), device=scores.device)
        places = torch.stack(
            [side[:rows].repeat_interleave(columns), side[:columns].repeat(rows)], dim=1
        )
        places = (places + 0.5) * cell  # (cells, 2)
        flat = scores.flatten(1)
        ranked = flat.detach()
        if self.training and self.config.explore:
            gumbel = -torch.log(-torch.log(torch.rand_like(ranked).clamp(1e-9, 1 - 1e-7)))
            ranked = ranked + self.config.explore * gumbel
        chosen = []
        for _ in range(self.config.glimpses):
            best = ranked.argmax(1)  # (B,)
            chosen.append(best)
            # what this glimpse shows is not looked at again
            near = (places - places[best][:, None]).abs().amax(2) < max(self.config.apart, cell)
            ranked = ranked.masked_fill(near, -1e9)
        picked = torch.stack(chosen, dim=1)  # (B, k)
        return places[picked], flat.gather(1, picked)

    def stride(self, longest: int) -> float:
        """Pixels between those of the coarse look; in training that of any size of picture."""
        least = max(_FINEST, longest / self.config.coarse)
        if not self.training:
            return least
        most = max(least, self.config.largest / self.config.coarse)
        return float(math.exp(torch.empty(()).uniform_(math.log(least), math.log(most)).item()))


def glimpse_network(dimension: int) -> nn.Sequential:
    """Pictures (B, 3, H, W) to a map of stride 32."""
    return nn.Sequential(
        *_layer(3, 32, 4, stride=4),
        *_layer(32, 48, 3, stride=2, padding=1),
        *_layer(48, 96, 3, stride=2, padding=1),
        *_layer(96, dimension, 3, stride=2, padding=1),
    )


def _layer(before: int, after: int, width: int, **how: int) -> tuple[nn.Module, ...]:
    convolution = nn.Conv2d(before, after, width, bias=False, **how)  # type: ignore[arg-type]
    return convolution, nn.BatchNorm2d(after), nn.ReLU()


def planes(pixels: Tensor) -> Tensor:
    """Bytes (B, H, W, 3) as a network takes them, (B, 3, H, W) in [-1, 1]."""
    return pixels.permute(0, 3, 1, 2).float() / 127.5 - 1


def look(pixels: Tensor, stride: float) -> Tensor:
    """Every `stride`-th pixel, each the mean of four near it, as bytes: no other is touched."""
    height, width = pixels.shape[1:3]
    found = torch.zeros((), device=pixels.device)
    for down in (0.3, 0.7):
        for across in (0.3, 0.7):
            rows = ((torch.arange(int(height / stride)) + down) * stride).long()
            columns = ((torch.arange(int(width / stride)) + across) * stride).long()
            found = found + pixels[:, rows[:, None], columns[None]].float()
    return found / 4


def cut(pixels: Tensor, centres: Tensor, side: int) -> Tensor:
    """Squares around the centres (B, k, 2), moved inwards at the edges: (B, k, side, side, 3)."""
    size = torch.tensor(pixels.shape[1:3])
    starts = (centres.cpu() - side / 2).round().long()
    starts = torch.minimum(starts.clamp_min(0), (size - side).clamp_min(0))  # (B, k, 2)
    along = torch.arange(side)
    rows = (starts[..., :1] + along).clamp_max(int(size[0]) - 1)  # (B, k, side)
    columns = (starts[..., 1:] + along).clamp_max(int(size[1]) - 1)
    batch = torch.arange(len(pixels))[:, None, None, None]
    return pixels[batch, rows[..., :, None], columns[..., None, :]]
