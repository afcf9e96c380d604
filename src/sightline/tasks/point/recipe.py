"""The keys of a pointer network's recipe."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sightline import config

Problem = Literal["sort", "hull", "delaunay", "tour"]


@dataclass(frozen=True)
class TestConfig:
    """What `evaluate` generates where it is given no --data."""

    size: config.Positive = 10  # points of each
    examples: config.Positive = 1000
    seed: config.Count = 0


def _model() -> config.DecoderConfig:
    return config.DecoderConfig(
        head="pointer",
        gate=False,
        output="plain",
        attention=config.AttentionConfig(kind="none", size=256),
        embedding=256,
        hidden=256,
    )


@dataclass(frozen=True)
class PointRecipe:
    """The keys of a pointer network's recipe: instances are generated, without end."""

    # Numbers in order; a convex hull; a Delaunay triangulation; a short round trip
    problem: Problem
    task: Literal["point"] = "point"
    description: str = ""
    sizes: tuple[config.Positive, config.Positive] = (5, 10)  # points, least and most
    # In which order the points are read: as they are given, or from left to right
    order: Literal["given", "sorted"] = "given"
    constrained: bool = True  # the search writes only valid outlines, tours, lists
    batch: config.Positive = 128  # instances, all of one size
    test: TestConfig = field(default_factory=TestConfig)
    encoder: config.PointEncoderConfig = field(
        default_factory=lambda: config.PointEncoderConfig(cell="lstm")
    )
    model: config.DecoderConfig = field(default_factory=_model)
    loss: config.LossConfig = field(default_factory=config.LossConfig)
    search: config.SearchConfig = field(default_factory=lambda: config.SearchConfig(beam=3))
    training: config.TrainingConfig = field(default_factory=config.TrainingConfig)
