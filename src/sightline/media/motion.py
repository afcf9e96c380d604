"""What a 3-D CNN reads of a clip: short windows of consecutive frames."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sightline.media.files import Source
from sightline.media.preprocess import ImageSpec, preprocess
from sightline.media.video import Clip, frames_at, read_clip

Between = Literal["repeated", "interpolated"]


@dataclass(frozen=True)
class MotionSpec:
    """`count` windows of `frames` frames at `rate` a second, spread over a clip's time.

    A film with fewer frames a second has each repeated, or mixed with the next by their times.
    """

    count: int
    between: Between = "repeated"
    frames: int = 16
    rate: float = 25.0  # what I3D was trained at
    size: int = 224

    def to_json(self) -> dict[str, Any]:
        return dict(vars(self))

    @property
    def picture(self) -> ImageSpec:
        """The middle of each frame, from −1 to 1."""
        return ImageSpec(self.size, "crop", 2 / 255, (1.0,) * 3, (1.0,) * 3)

    def read(self, source: Source, clip: Clip) -> tuple[list[float], NDArray[np.float32]]:
        """The windows' middles, and their pixels (W, 3, F, S, S), of that stretch of a film."""
        length = (clip.end - clip.start) / self.count
        centres = [clip.start + (number + 0.5) * length for number in range(self.count)]
        offsets = (np.arange(self.frames) - (self.frames - 1) / 2) / self.rate
        times = np.clip(np.add.outer(centres, offsets), clip.start, clip.end).ravel()
        order = np.argsort(times, kind="stable")
        side = self.size * 8 // 7
        mixed = self.between == "interpolated"
        found = frames_at(source, times[order].tolist(), side, mixed=mixed)
        pixels = np.empty((len(times), 3, self.size, self.size), np.float32)
        for place, frame in zip(order, found, strict=True):
            pixels[place] = preprocess(frame, self.picture)
        windows = pixels.reshape(self.count, self.frames, 3, self.size, self.size)
        return centres, np.ascontiguousarray(windows.swapaxes(1, 2))

    def read_file(self, source: Source) -> tuple[list[float], NDArray[np.float32]]:
        """The same of a whole file."""
        return self.read(source, read_clip(source, 1, 8))
