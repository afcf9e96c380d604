"""A captioner without PyTorch: its reader of pictures, and its words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sightline.data.imagenet import animals
from sightline.data.manifest import normalise_caption
from sightline.data.vocabulary import VOCAB, Vocabulary
from sightline.errors import CheckpointError
from sightline.media.focus import Region, focus_bias
from sightline.media.image import MAX_PIXELS
from sightline.media.preprocess import ImageSpec, read_picture
from sightline.runtime.codec import Codec
from sightline.samples import samples
from sightline.tasks.caption.agreement import agreed, plurals
from sightline.tasks.caption.recipe import CaptionRecipe
from sightline.types import Inputs, Layout, Stream

LARGEST_SIDE = 4096  # of a picture that a network sees


@dataclass(frozen=True)
class PictureReader:
    """A picture (a file, bytes, or pixels (H, W, 3)) as the encoder takes it."""

    spec: ImageSpec
    grid: tuple[int, int]  # rows and columns of the map
    takes: Literal["file", "text"] = "file"
    batch: int = 8  # with two workers: of more, a search step no longer fits the caches

    def read(
        self,
        source: Any,
        *,
        focus: Region | None = None,
        max_pixels: int = MAX_PIXELS,
        whole: bool = False,
    ) -> list[Inputs]:
        inputs = read_picture(source, self.spec, self.grid, max_pixels=max_pixels)
        if focus is None:
            return [inputs]
        (layout,) = inputs.layouts
        assert layout is not None
        bias = focus_bias(focus, layout.box, self.grid)  # (M,)
        return [replace(inputs, streams={**inputs.streams, "bias": Stream(bias[None])})]


class CaptionCodec(Codec):
    """Words in lower case without punctuation; in English, with articles that agree."""

    @cached_property
    def plurals(self) -> dict[str, str]:
        """Of the animals that captions seldom name; the decoder knows how to write the others."""
        ids = self.vocab.ids
        return {w: many for w, many in plurals().items() if ids.get(w, 0) >= self.search.common}

    def least_sure(self) -> NDArray[np.float32]:
        least = super().least_sure()
        of_things = np.maximum(least, self.search.sure_of_things)
        is_animal = np.array([token in animals() for token in self.vocab.tokens])
        return np.where(is_animal, least, of_things)

    def split(self, text: str) -> list[str]:
        return self.vocab.split(normalise_caption(text))

    def ids(self, tokens: Sequence[str]) -> list[int]:
        """A plural that `words` gave and the vocabulary lacks is its singular."""
        singular = {many: w for w, many in self.plurals.items() if many not in self.vocab.ids}
        return super().ids([singular.get(token, token) for token in tokens])

    def words(
        self, tokens: Sequence[int], weights: NDArray[np.float32] | None, layout: Layout | None
    ) -> list[str]:
        words = super().words(tokens, weights, layout)
        english = {"a", "an", "the"} <= self.vocab.ids.keys()
        return agreed(words, self.plurals) if english else words


def reader(folder: Path, recipe: CaptionRecipe, about: Mapping[str, Any]) -> PictureReader:
    rows, columns = map(int, about["pictures"]["grid"])
    spec = ImageSpec.from_json(about["pictures"]["spec"])
    if not (0 < int(spec.size) <= LARGEST_SIDE and 0 < rows * columns <= LARGEST_SIDE**2):
        sizes = f"pictures of {spec.size} pixels, a map of {rows} × {columns}"
        raise CheckpointError(f"{folder}: no model has {sizes}; do not use it")
    return PictureReader(spec, (rows, columns))


def codec(folder: Path, recipe: CaptionRecipe) -> CaptionCodec:
    return CaptionCodec(Vocabulary.load(folder / VOCAB), recipe.search)


def sample_photos(recipe: CaptionRecipe) -> list[Path]:
    """Those that ship, for the demo."""
    return [photo.path for photo in samples()]
