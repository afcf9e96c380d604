"""Masks of the streams that encoders read."""

from __future__ import annotations

import torch
from torch import Tensor

from sightline.types import Stream


def positions(values: Tensor, mask: Tensor | None) -> Tensor:
    """Which of the positions (B, L, …) exist: all, where there is no mask."""
    return torch.ones_like(values[..., 0], dtype=torch.bool) if mask is None else mask


def whole(values: Tensor) -> Stream:
    """A stream without padding, and with a mask: an example for the tracer of exports."""
    return Stream(values, torch.ones(values.shape[:2], dtype=torch.bool))
