"""The exponential moving average of the weights, evaluated and kept in their place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn


class Average:
    """An average that follows the trained weights; decay 0 means none, and costs nothing."""

    def __init__(self, model: nn.Module, decay: float) -> None:
        self.decay = decay
        # what does not learn stays as it is, bit for bit (and feature caches fit it)
        learning = {name: p for name, p in model.named_parameters() if p.requires_grad}
        self.parameters = learning if decay else {}
        self.values = {name: p.detach().clone() for name, p in self.parameters.items()}

    @torch.no_grad()
    def update(self, step: int) -> None:
        """Follow the weights after step number `step`; young averages follow faster."""
        if not self.values:
            return
        decay = min(self.decay, (1 + step) / (10 + step))
        current = [p.detach() for p in self.parameters.values()]
        torch._foreach_lerp_(list(self.values.values()), current, 1 - decay)

    @contextmanager
    def in_place(self) -> Iterator[None]:
        """Within this block the model has the averaged weights."""
        self._swap()
        try:
            yield
        finally:
            self._swap()

    def _swap(self) -> None:
        for name, parameter in self.parameters.items():
            parameter.data, self.values[name] = self.values[name], parameter.data

    def tensors(self) -> dict[str, Tensor]:
        """For a checkpoint, whose weights are the averaged ones: the trained ones beside them."""
        return {f"trained.{name}": p.detach() for name, p in self.parameters.items()}

    def restore(self, tensors: dict[str, Tensor]) -> None:
        """From a checkpoint: the model now holds the averaged weights; put each in its place."""
        for name, parameter in self.parameters.items():
            self.values[name] = parameter.detach().clone()
            parameter.data.copy_(tensors[f"trained.{name}"])
