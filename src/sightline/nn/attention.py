"""Attention: scores e_i = f_ATT(z_{t-1}, c_i, {α_j^{t-1}}), weights by softmax (D §III).

One class for all: content-based (additive) or location-aware scores, sharpened, windowed or
smoothed weights, and a context that is the weighted sum (soft) or one position (hard).

Rows are grouped: N = B · K rows attend to B context sets, K neighbouring rows to each (the beam,
the samples, or the captions of one picture), so that keys and values are never copied per row.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sightline.config import AttentionConfig
from sightline.nn.kernels import fused
from sightline.types import ContextSet


@dataclass(frozen=True)
class Focus:
    """Where one step looked."""

    weights: Tensor  # (N, M): α
    used: Tensor  # (N, M): what the context was made with, α or a one-hot sample
    context: Tensor  # (N, D): ẑ before any gate


class Attention(nn.Module):
    """Additive attention with an optional view of the previous weights."""

    def __init__(self, config: AttentionConfig, query_size: int, value_size: int) -> None:
        super().__init__()
        self.config = config
        self.key = nn.Linear(value_size, config.size)  # W_a
        self.query = nn.Linear(query_size, config.size, bias=False)  # W_h
        self.score = nn.Linear(config.size, 1, bias=False)  # v
        if config.kind == "location":  # Chorowski et al.: F * α₋, then U
            self.filters = nn.Conv1d(
                1, config.filters, config.width, padding=config.width // 2, bias=False
            )
            self.location = nn.Linear(config.filters, config.size, bias=False)

    def prepare(self, context: ContextSet) -> ContextSet:
        """Project the keys once, before the first step: W_a c, (B, M, A).

        Their bias is left to the query, where it is added to A numbers and not to M times as many.
        """
        return replace(context, keys=F.linear(context.values, self.key.weight))

    def forward(
        self,
        query: Tensor,  # (N, Q)
        context: ContextSet,
        previous: Tensor,  # what `remember` gave at the last step; `nothing` at the start
        chosen: Tensor | None = None,  # (N,): hard attention looks here instead of sampling
        expected: Tensor | None = None,  # (N,) bool: hard attention uses α here, else samples
        draws: Tensor | None = None,  # (N,) in [0, 1): it samples by these
    ) -> Focus:
        last, seen = self._recall(previous)
        weights = self.normalise(self.scores(query, context, seen), context, last)
        used = self.look(weights, chosen, expected, draws)
        groups, positions, _ = context.values.shape
        # φ: the weighted sum of the values, (N, D), without copying them per row
        summed = torch.bmm(used.view(groups, -1, positions), context.values).flatten(0, 1)
        return Focus(weights, used, summed)

    def chooses(self, chosen: Tensor | None, expected: Tensor | None) -> bool:
        """Whether contexts are made of one position: hard attention, given paths or rows.

        Given neither it describes, and chooses where its configuration says so.
        """
        config = self.config
        given = chosen is not None or expected is not None
        return config.hard and (given or config.describe == "argmax")

    def look(
        self,
        weights: Tensor,
        chosen: Tensor | None,
        expected: Tensor | None,
        draws: Tensor | None = None,
    ) -> Tensor:
        """What contexts are made with: α, or of hard attention one position (not in `expected`)."""
        if not self.chooses(chosen, expected):
            return weights
        if chosen is None and expected is None:
            chosen = weights.argmax(1)
        elif chosen is None and draws is not None:  # s ~ Multinoulli(α)
            chosen = inverse(weights.detach(), draws)
        elif chosen is None:
            chosen = torch.multinomial(weights.detach(), 1).squeeze(1)
        used = F.one_hot(chosen, weights.shape[1]).to(weights.dtype)
        return used if expected is None else torch.where(expected[:, None], weights, used)

    @property
    def is_plain(self) -> bool:
        """Whether α is the softmax of content-based scores and nothing else."""
        c = self.config
        changed = c.top_k or c.window or c.smoothing or c.cumulative
        return c.kind == "content" and not changed

    def scores(self, query: Tensor, context: ContextSet, previous: Tensor | None = None) -> Tensor:
        """e = v · tanh(W_a c + W_h z (+ U (F * α₋))), (N, M)."""
        assert context.keys is not None, "call prepare() first"
        queries = F.linear(query, self.query.weight, self.key.bias)  # (N, A)
        if self.config.kind == "content" and fused.usable(context.keys):
            return fused.additive_scores(context.keys, queries, self.score.weight[0])
        groups, positions, size = context.keys.shape
        hidden = context.keys[:, None] + queries.view(groups, -1, 1, size)  # (B, K, M, A)
        if self.config.kind == "location":
            assert previous is not None
            seen = self.filters(previous[:, None])  # (N, filters, M)
            hidden = hidden + self.location(seen.transpose(1, 2)).view(groups, -1, positions, size)
        result: Tensor = self.score(torch.tanh(hidden)).view(-1, positions)
        return result

    def normalise(self, scores: Tensor, context: ContextSet, last: Tensor) -> Tensor:
        """The weights α from the scores, under the mask and whatever sharpens them."""
        config = self.config
        allowed = rows_of(context.mask, scores.shape[0])  # (N, M)
        if context.bias is not None:
            scores = scores + rows_of(context.bias, scores.shape[0])
        if config.window:
            allowed = allowed & _window(last, allowed, config.window)
        scores = scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)
        if config.top_k and config.top_k < scores.shape[1]:
            least = scores.topk(config.top_k, dim=1).values[:, -1:]
            allowed = allowed & (scores >= least)
        scores = scores / config.temperature
        if config.smoothing:
            positive = torch.sigmoid(scores) * allowed
            # the floor only matters where every σ underflows
            return positive / positive.sum(1, keepdim=True).clamp_min(1e-30)
        return masked_softmax(scores, allowed)

    @property
    def _keeps_both(self) -> bool:
        """A window follows the last weights, whatever else is summed up."""
        return bool(self.config.cumulative and self.config.window)

    def nothing(self, values: Tensor, rows: int) -> Tensor:
        """What is remembered before the first step."""
        positions = values.shape[1]
        return values.new_zeros((rows, 2, positions) if self._keeps_both else (rows, positions))

    def remember(self, previous: Tensor, focus: Focus) -> Tensor:
        """For the next step: the weights (N, M), or their sum, or (N, 2, M) both."""
        if self._keeps_both:
            return torch.stack([focus.weights, previous[:, 1] + focus.weights], dim=1)
        return previous + focus.weights if self.config.cumulative else focus.weights

    def _recall(self, previous: Tensor) -> tuple[Tensor, Tensor]:
        """The last weights, and what location-aware scores see."""
        return (previous[:, 0], previous[:, 1]) if self._keeps_both else (previous, previous)


def inverse(weights: Tensor, draws: Tensor) -> Tensor:
    """The position that each number in [0, 1) falls on, (N,), where each is as long as its weight.

    In 64 bits a number of 32 bits never reaches the end: what has no weight is never chosen.
    """
    ends = weights.double().cumsum(1)  # (N, M)
    return torch.searchsorted(ends, draws[:, None] * ends[:, -1:], right=True)[:, 0]


def rows_of(per_example: Tensor, rows: int) -> Tensor:
    """(B, …) → (N, …), each example's entry repeated for its K rows (no copy when K = 1)."""
    repeats = rows // per_example.shape[0]
    return per_example if repeats == 1 else per_example.repeat_interleave(repeats, dim=0)


def masked_softmax(scores: Tensor, mask: Tensor) -> Tensor:
    """Softmax over the last dimension where `mask`; a row with nothing to see is all zeros."""
    scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
    return torch.softmax(scores, dim=-1) * mask


def _window(previous: Tensor, allowed: Tensor, reach: int) -> Tensor:
    """True within `reach` of the median of the last weights (everywhere before there are any)."""
    positions = torch.arange(previous.shape[1], device=previous.device)
    half = previous.sum(dim=1, keepdim=True) / 2
    focus = (previous.cumsum(dim=1) < half).sum(dim=1, keepdim=True)
    near = (positions - focus).abs() <= reach
    has_focus = (previous.sum(dim=1, keepdim=True) > 0) & (near & allowed).any(1, keepdim=True)
    return near | ~has_focus
