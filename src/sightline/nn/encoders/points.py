"""Point encoder: the coordinates of the stream "points" to a context set, one vector a point."""

from __future__ import annotations

import torch
from torch import nn

from sightline.config import RecurrentConfig
from sightline.nn.encoders.text import RecurrentEncoder
from sightline.types import ContextSet, Inputs, Stream


class PointEncoder(RecurrentEncoder):
    """Points, each embedded by a linear map and read in the order that they come in."""

    def __init__(self, config: RecurrentConfig, size: int) -> None:
        super().__init__(config, nn.Linear(size, config.embedding))
        self.size = size  # coordinates of a point

    def example(self) -> Inputs:
        """Two examples, for the tracer of exports."""
        points = torch.zeros(2, 3, self.size)
        return Inputs(2, {"points": Stream(points, torch.ones(2, 3, dtype=torch.bool))})

    def forward(self, inputs: Inputs) -> ContextSet:
        points, mask = inputs["points"].values, inputs["points"].mask  # (B, M, size), (B, M)
        if mask is None:
            mask = torch.ones_like(points[..., 0], dtype=torch.bool)
        return self.read(self.embed(points), mask)
