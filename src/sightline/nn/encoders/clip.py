"""Clip encoder: frames and windows of motion, or what is cached of them, to one context set."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from sightline.nn.encoders.image import ImageEncoder, for_inference
from sightline.nn.encoders.picture import PictureEncoder, widened
from sightline.nn.encoders.streams import positions, whole
from sightline.types import ContextSet, Inputs

if TYPE_CHECKING:
    from sightline.nn.encoders.motion import MotionEncoder


class ClipEncoder(PictureEncoder):
    """A vector for each frame, and behind them one for each window of motion (Cho et al. §IV-C).

    frames:  (B, L, 3, S, S) preprocessed pixels; `vectors` (B, L, D) is what is cached of them,
             the mean of each frame's map
    windows: (B, W, 3, F, S', S') pixels for the 3-D CNN; `motion` (B, W, D') is cached of them

    The networks are frozen; what is learned here is how motion enters the space of the frames.
    """

    motion: MotionEncoder | None = None

    def __init__(
        self, network: ImageEncoder, kept: bool = False, motion: MotionEncoder | None = None
    ) -> None:
        super().__init__(network, "tuned" if kept else "frozen")
        self.enter = nn.Linear(motion.dimension, self.dimension) if motion else None
        self._motion = nn.ModuleList()  # empty where the 3-D CNN is no part of the weights
        if motion is not None:
            self.__dict__["motion"] = motion  # past nn.Module, which would register it

    @property
    def _reads_motion(self) -> bool:
        return self.enter is not None

    def example(self) -> Inputs:
        """Two examples, for the tracer of exports."""
        assert self.network is not None
        side = self.network.spec.size
        streams = {"frames": whole(torch.zeros(2, 3, 3, side, side))}
        if self._reads_motion:
            streams["windows"] = whole(torch.zeros(2, 2, 3, 16, 224, 224))
        return Inputs(2, streams)

    def for_inference(self) -> ClipEncoder:
        """A copy that computes the same, faster, and has its networks among its weights."""
        assert self.network is not None
        twin = ClipEncoder(for_inference(self.network), kept=True, motion=self.motion)
        if self.enter is not None and twin.enter is not None and self.motion is not None:
            twin.enter.load_state_dict(self.enter.state_dict())
            twin._motion.append(self.motion)
        return twin

    def frame_vectors(self, frames: Tensor) -> Tensor:
        """(N, 3, S, S) → (N, D): the mean of each map."""
        assert self.network is not None
        vectors: Tensor = self.network(frames.float()).mean(1)
        return vectors

    def cells(self, inputs: Inputs) -> ContextSet:
        if "vectors" in inputs:
            values, mask = widened(inputs["vectors"].values), inputs["vectors"].mask
        else:
            frames, mask = inputs["frames"].values, inputs["frames"].mask
            vectors = self.frame_vectors(frames.flatten(0, 1))
            values = vectors.view(frames.shape[0], frames.shape[1], self.dimension)
        mask = positions(values, mask)
        if self.enter is None:
            return ContextSet(values, mask)
        motion, moves = self._moved(inputs)
        return ContextSet(torch.cat([values, self.enter(motion)], 1), torch.cat([mask, moves], 1))

    def _moved(self, inputs: Inputs) -> tuple[Tensor, Tensor]:
        """The vectors of the windows (B, W, D') and their mask."""
        if "motion" in inputs:
            values, mask = widened(inputs["motion"].values), inputs["motion"].mask
        else:
            windows, mask = inputs["windows"].values, inputs["windows"].mask
            assert self.motion is not None
            vectors = self.motion(windows.flatten(0, 1))
            values = vectors.view(windows.shape[0], windows.shape[1], self.motion.dimension)
        return values, positions(values, mask)
