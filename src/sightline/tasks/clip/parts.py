"""What reads clips, without PyTorch; their words are a captioner's."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sightline.errors import CheckpointError
from sightline.media.motion import MotionSpec
from sightline.media.preprocess import ImageSpec, preprocess
from sightline.media.video import Clip, Sampling, read_clip, read_clips
from sightline.tasks.caption.parts import LARGEST_SIDE
from sightline.tasks.clip.recipe import ClipRecipe
from sightline.types import Inputs, Layout, Stream


@dataclass(frozen=True)
class ClipReader:
    """A clip (a file, or bytes) as the encoder takes it."""

    spec: ImageSpec  # of a frame
    count: int  # frames at most
    sampling: Sampling = "uniform"
    motion: MotionSpec | None = None
    takes: Literal["file", "text"] = "file"
    batch: int = 1  # a clip is as much as many pictures

    def read(self, source: Any, *, longest: float = math.inf, whole: bool = False) -> list[Inputs]:
        clip = read_clip(source, self.count, self.side, sampling=self.sampling, longest=longest)
        return [self.inputs(clip, source)]

    def stretches(self, source: Any, **options: Any) -> Iterator[tuple[float, float, list[Inputs]]]:
        """Parts of a film as it is read: start, end, and what is there; see `read_clips`."""
        for clip in read_clips(source, self.count, self.side, sampling=self.sampling, **options):
            yield clip.start, clip.end, [self.inputs(clip, source)]

    @property
    def side(self) -> int:
        """Of the frames that are kept: somewhat more than the network sees."""
        return self.spec.size * 8 // 7

    def inputs(self, clip: Clip, source: Any) -> Inputs:
        """Streams "frames" (1, L, 3, S, S) and, with a 3-D CNN, "windows" (1, W, 3, F, S, S)."""
        pixels = np.stack([preprocess(frame, self.spec) for frame in clip.frames])
        streams = {"frames": Stream.ragged([pixels])}
        times, labels = list(clip.times), []
        if self.motion is not None:
            centres, windows = self.motion.read(source, clip)
            streams["windows"] = Stream.ragged([windows])
            labels = ["frame"] * len(times) + ["motion"] * len(centres)
            times += centres
        height, width = clip.frames[0].shape[:2]
        layout = Layout("frames", times=tuple(times), labels=tuple(labels), size=(width, height))
        return Inputs(1, streams, (layout,))


def reader(folder: Path, recipe: ClipRecipe, about: Mapping[str, Any]) -> ClipReader:
    spec = ImageSpec.from_json(about["frames"]["spec"])
    if not 0 < int(spec.size) <= LARGEST_SIDE:
        raise CheckpointError(f"{folder}: no model has frames of {spec.size} pixels; do not use it")
    return reader_for(recipe, spec)


def reader_for(recipe: ClipRecipe, spec: ImageSpec) -> ClipReader:
    clip = recipe.clip
    motion = (
        None if clip.motion == "none" else MotionSpec(clip.windows, clip.between, size=clip.size)
    )
    return ClipReader(spec, clip.frames, clip.sampling, motion)


def sample_clips(recipe: ClipRecipe) -> list[Path]:
    """The one that ships, for the demo; the page has it, too."""
    return [Path(__file__).parent / "panel" / "sample.mp4"]
