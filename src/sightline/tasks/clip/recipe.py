"""The keys of a recipe for clips: a captioner's, and how a clip is read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Literal

from sightline import config
from sightline.config.reader import Check
from sightline.tasks.caption.recipe import CaptionRecipe

Frames = Annotated[int, Check(lambda n: 1 <= n <= 500, "from 1 to 500")]


@dataclass(frozen=True)
class ClipConfig:
    """What is read of a clip: frames, each by `encoder` into one vector, and motion."""

    frames: Frames = 16  # so many, spread over the clip; of a shorter one all there are
    # Evenly over the clip's time, or over that of each shot, which has one at least
    sampling: Literal["uniform", "shots"] = "uniform"
    # A 3-D CNN (Carreira and Zisserman 2017), its vectors behind the frames' in the context set
    motion: Literal["none", "i3d"] = "none"
    weights: str = "default"  # of the 3-D CNN: a file, package:NAME; as published
    windows: Frames = 8  # so many stretches of 16 frames are read for it
    size: config.Positive = 224  # of their frames, the side in pixels
    # Frames for the 3-D CNN, which was trained at 25 a second: of a slower film each is repeated,
    # or mixed with the next
    between: Literal["repeated", "interpolated"] = "repeated"


@dataclass(frozen=True)
class ClipRecipe(CaptionRecipe):
    """The keys of a recipe for clips. `encoder` reads frames and is frozen."""

    task: Literal["clip"] = "clip"  # type: ignore[assignment]
    # shows the numbers of table IV, which are of other clips
    benchmark: Literal["youtube2text", "montreal_dvs"] | None = None  # type: ignore[assignment]
    clip: ClipConfig = field(default_factory=ClipConfig)
