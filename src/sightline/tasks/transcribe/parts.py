"""A speech recogniser without PyTorch: its reader of sounds, and what it writes."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from sightline.data.vocabulary import VOCAB, Vocabulary
from sightline.media.audio import (
    Floats,
    SoundSource,
    features,
    filter_banks,
    frame_times,
    read_sound,
    sound_blocks,
)
from sightline.media.voice import Segment, segments
from sightline.runtime.codec import Codec
from sightline.tasks.transcribe.recipe import TranscribeRecipe
from sightline.types import Inputs, Layout, Stream

FRAMES_PER_TOKEN = 4  # nobody says more than 25 phones a second


@dataclass(frozen=True)
class SoundReader:
    """A recording (a file, bytes, or samples at 16 kHz) as its frames, cut up if it is long."""

    together: int  # frames of one position
    longest: float  # seconds that are read in one piece
    takes: Literal["file", "text"] = "file"
    batch: int = 16

    def read(
        self, source: SoundSource, *, most: float = 600.0, whole: bool = False
    ) -> list[Inputs]:
        """The pieces in which somebody speaks; none of silence. At most `most` seconds."""
        samples = read_sound(source, self.longest if whole else most)
        return [self.piece(each) for each in segments([samples], self.longest)]

    def piece(self, segment: Segment) -> Inputs:
        return self.inputs(features(filter_banks(segment.samples)), segment.start)

    def inputs(self, frames: Floats, start: float = 0.0) -> Inputs:
        """Frames (T, 123) that begin at this second."""
        layout = Layout.frames(frame_times(len(frames), self.together, start))
        return Inputs(1, {"sound": Stream.ragged([frames])}, (layout,))

    def pieces(self, source: SoundSource) -> Any:
        """The same one by one, of a recording of any length."""
        return segments(sound_blocks(source), self.longest)


class SpeechCodec(Codec):
    """Phones, words or pieces of words, at most so many as can be said in the time."""

    def max_length(self, size: int) -> int:
        return min(self.search.max_length, 10 + size // FRAMES_PER_TOKEN)


def reader(folder: Path, recipe: TranscribeRecipe, about: Mapping[str, Any]) -> SoundReader:
    return SoundReader(math.prod(recipe.encoder.together), recipe.longest)


def codec(folder: Path, recipe: TranscribeRecipe) -> SpeechCodec:
    return SpeechCodec(Vocabulary.load(folder / VOCAB), recipe.search)
