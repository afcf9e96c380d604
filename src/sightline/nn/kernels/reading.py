"""Reading a context set many times, and backwards, with hand-written gradients.

Left to autograd, each step of a decoder writes a gradient of the size of all values, and these are
summed; and a gather has a gradient that is slower than the gather.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class WeightedSums:
    """Σ_i α_i c_i, step after step, over the same values; their gradient is one product."""

    def __init__(self, values: Tensor) -> None:  # (B, M, D)
        self.values = values.detach()
        self.steps: list[tuple[Tensor, Tensor]] = []  # α (B, K, M) and the sum's gradient
        self.anchor: Tensor = _Anchor.apply(values, self)  # type: ignore[no-untyped-call]

    def __call__(self, weights: Tensor) -> Tensor:
        """α (N, M) → (N, D), N = B · K."""
        sums: Tensor = _Sum.apply(weights, self.anchor, self)  # type: ignore[no-untyped-call]
        return sums


class _Anchor(torch.autograd.Function):
    """Every sum depends on it, so its backward pass follows all of theirs."""

    @staticmethod
    def forward(ctx: Any, values: Tensor, sums: WeightedSums) -> Tensor:
        ctx.sums = sums
        return values.new_zeros(())

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, _: Tensor) -> tuple[Tensor, None]:
        steps = ctx.sums.steps
        weights, gradients = (torch.cat(part, 1) for part in zip(*steps, strict=True))
        steps.clear()
        return torch.bmm(weights.transpose(1, 2), gradients), None


class _Sum(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, weights: Tensor, anchor: Tensor, sums: WeightedSums) -> Tensor:
        groups, positions, _ = sums.values.shape
        grouped = weights.view(groups, -1, positions)
        ctx.save_for_backward(grouped)
        ctx.sums = sums
        return torch.bmm(grouped, sums.values).flatten(0, 1)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_sums: Tensor) -> tuple[Tensor, Tensor, None]:
        (weights,) = ctx.saved_tensors
        values = ctx.sums.values
        grouped = d_sums.view(len(weights), -1, values.shape[2])
        ctx.sums.steps.append((weights, grouped))
        d_weights = torch.bmm(grouped, values.transpose(1, 2)).flatten(0, 1)
        return d_weights, d_sums.new_zeros(()), None


class Reversed(torch.autograd.Function):
    """Rows in another order that is its own inverse: sequence (B, L, D), index (B, L)."""

    @staticmethod
    def forward(ctx: Any, sequence: Tensor, index: Tensor) -> Tensor:
        starts = torch.arange(len(index), device=index.device)[:, None] * index.shape[1]
        places = (starts + index).flatten()
        ctx.save_for_backward(places)
        return _taken(sequence, places)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_sequence: Tensor) -> tuple[Tensor, None]:
        (places,) = ctx.saved_tensors
        return _taken(d_sequence, places), None


def _taken(sequence: Tensor, places: Tensor) -> Tensor:
    return sequence.flatten(0, 1).index_select(0, places).view(sequence.shape)
