"""Point encoders: the coordinates of the stream "points" to a context set, one vector a point."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from sightline.config import PointEncoderConfig
from sightline.errors import ConfigError
from sightline.nn.dropout import Dropout
from sightline.nn.encoders.streams import positions, whole
from sightline.nn.encoders.text import RecurrentEncoder
from sightline.types import ContextSet, Inputs

WIDER = 2  # times as many numbers in the middle of a block's second part
PLACES = 16  # features of where a point lies, seen from another
UNSEEN = -1e9  # the score of a point that does not exist


def point_encoder(config: PointEncoderConfig, size: int) -> PointEncoder | SetEncoder:
    """The encoder of points with `size` coordinates."""
    return (SetEncoder if config.kind == "set" else PointEncoder)(config, size)


class PointEncoder(RecurrentEncoder):
    """Points, each embedded by a linear map and read in the order that they come in."""

    def __init__(self, config: PointEncoderConfig, size: int) -> None:
        super().__init__(config, nn.Linear(size, config.embedding))
        self.size = size  # coordinates of a point

    def example(self) -> Inputs:
        return example(self.size)

    def forward(self, inputs: Inputs) -> ContextSet:
        points = inputs["points"].values  # (B, M, size)
        mask = positions(points, inputs["points"].mask)  # (B, M)
        return self.read(self.embed(points), mask)


class SetEncoder(nn.Module):
    """Points that look at each other, in layers of self-attention (Vaswani et al. 2017).

    There are no positions: the order in which points come changes nothing but the order of their
    vectors. How much a point looks at another also depends on where that lies, seen from it.
    """

    def __init__(self, config: PointEncoderConfig, size: int) -> None:
        super().__init__()
        if config.hidden % config.heads:
            raise ConfigError(
                f"encoder.hidden={config.hidden} cannot be shared out to "
                f"encoder.heads={config.heads}"
            )
        self.size, self.config = size, config
        self.dimension = config.hidden
        self.embed = nn.Linear(size, config.hidden)
        self.place = nn.Linear(size + 2, PLACES)
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.hidden)

    def example(self) -> Inputs:
        return example(self.size)

    def forward(self, inputs: Inputs) -> ContextSet:
        points = inputs["points"].values  # (B, M, size)
        mask = positions(points, inputs["points"].mask)  # (B, M)
        places = torch.relu(self.place.weight @ seen_from(points) + self.place.bias[:, None])
        tracing = torch.jit.is_tracing()  # type: ignore[no-untyped-call, attr-defined]
        whole = not tracing and bool(mask.all())
        unseen = None if whole else ~mask[:, None, None]  # (B, 1, 1, M)
        hidden = self.embed(points)
        for block in self.blocks:
            hidden = block(hidden, places, unseen)
        return ContextSet(self.norm(hidden) * mask[..., None], mask)


class Block(nn.Module):
    """Self-attention and a network of each vector, each added to what it is given."""

    def __init__(self, config: PointEncoderConfig) -> None:
        super().__init__()
        width, self.heads = config.hidden, config.heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.project = nn.Linear(width, 3 * width)  # queries, keys and values
        self.lean = nn.Linear(PLACES, config.heads)
        self.join = nn.Linear(width, width)
        self.widen, self.narrow = nn.Linear(width, WIDER * width), nn.Linear(WIDER * width, width)
        self.drop = Dropout(config.dropout)

    def forward(self, hidden: Tensor, places: Tensor, unseen: Tensor | None) -> Tensor:
        rows, count, width = hidden.shape
        # a product for each example, in the order of axes in which scores are, (B, heads, M · M)
        lean = self.lean.weight @ places + self.lean.bias[:, None]
        if unseen is not None:
            lean = lean.view(rows, -1, count, count).masked_fill(unseen, UNSEEN)
        parts = self.project(self.before(hidden)).view(rows, count, 3, self.heads, -1)
        queries, keys, values = (part.flatten(0, 1) for part in parts.permute(2, 0, 3, 1, 4))
        scale = (self.join.in_features // self.heads) ** -0.5
        # (B · heads, M, M), of queries and keys (B · heads, M, width / heads)
        lean = lean.view(-1, count, count)
        scores = torch.baddbmm(lean, queries, keys.transpose(1, 2), alpha=scale)
        seen = torch.bmm(scores.softmax(-1), values).view(rows, self.heads, count, -1)
        hidden = hidden + self.drop(self.join(seen.transpose(1, 2).reshape(rows, count, width)))
        wide = torch.relu(self.widen(self.between(hidden)))
        result: Tensor = hidden + self.drop(self.narrow(wide))
        return result


def seen_from(points: Tensor) -> Tensor:
    """Direction, distance and its logarithm of each point from each, (B, size + 2, M · M)."""
    axes = points.transpose(1, 2)
    apart = axes[:, :, None] - axes[..., None]  # (B, size, M, M): j seen from i
    far = (apart * apart).sum(1, keepdim=True).add(1e-6).sqrt()
    return torch.cat([apart / far, far, far.log()], 1).flatten(2)


def example(size: int) -> Inputs:
    """Two examples, for the tracer of exports."""
    return Inputs(2, {"points": whole(torch.zeros(2, 3, size))})
