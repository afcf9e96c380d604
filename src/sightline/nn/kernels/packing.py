"""Rows of different lengths, packed step by step: one that has ended takes no part in later steps.

(N, T, …) ↔ (R, …), the rows of the first step before those of the second, padding left out
"""

from __future__ import annotations

import torch
from torch import Tensor

from sightline.data.vocabulary import END, PAD


class Packing:
    """Which rows take part in which step, for tokens (N, T) that are read one at a time."""

    def __init__(self, tokens: Tensor) -> None:
        self.rows, self.steps = tokens.shape
        # nothing is to be written after <end>; what follows it may be padding only
        writes = (tokens != PAD) & (tokens != END)
        alive = writes.flip(1).cummax(1).values.flip(1)  # (N, T)
        alive[:, 0] = True
        step, row = alive.t().nonzero().unbind(1)
        self.where = row * self.steps + step  # (R,): among (N · T)
        self.whole = len(step) == tokens.numel()  # nothing is left out
        sizes = [size for size in alive.sum(0).tolist() if size]
        ends = torch.tensor(sizes).cumsum(0).tolist()
        self.spans = [slice(end - size, end) for end, size in zip(ends, sizes, strict=True)]
        places = alive.cumsum(0) - 1  # (N, T): each row's place among those of a step
        # per step: which rows these are, and their places in the step before; None where they are
        # all of them, and the same as before
        self.live: list[Tensor | None] = [None] * len(sizes)
        self.kept: list[Tensor | None] = [None] * len(sizes)
        for t in range(1, len(sizes)):
            if sizes[t] < self.rows:
                self.live[t] = row[self.spans[t]]
            if sizes[t] < sizes[t - 1]:
                self.kept[t] = places[row[self.spans[t]], t - 1]
        lengths = alive.sum(1) - 1  # (N,)
        starts = torch.tensor([span.start for span in self.spans], device=tokens.device)
        self.last = starts[lengths] + places.gather(1, lengths[:, None])[:, 0]  # (N,): among R

    def pack(self, padded: Tensor) -> Tensor:
        """(N, T, …) → (R, …)."""
        if self.whole:
            return padded.transpose(0, 1).flatten(0, 1)
        return padded.flatten(0, 1).index_select(0, self.where)

    def unpack(self, packed: Tensor) -> Tensor:
        """(R, …) → (N, T, …), zeros where a row has ended."""
        padded: Tensor
        if self.whole:
            padded = packed.unflatten(0, (self.steps, self.rows)).transpose(0, 1).contiguous()
            return padded
        padded = packed.new_zeros(self.rows * self.steps, *packed.shape[1:])
        padded = padded.index_copy_(0, self.where, packed).unflatten(0, (self.rows, self.steps))
        return padded
