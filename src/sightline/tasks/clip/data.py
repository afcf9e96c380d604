"""What a describer of clips is trained on: a manifest's clips, their vectors cached."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from sightline.data.manifest import Medium, normalise_caption
from sightline.data.vocabulary import BEGIN, END
from sightline.errors import ConfigError
from sightline.tasks.caption.data import CaptionData, batch_of
from sightline.tasks.clip.parts import reader_for
from sightline.tasks.clip.recipe import ClipRecipe
from sightline.types import Inputs

if TYPE_CHECKING:
    from sightline.data.feature_cache import FeatureCache
    from sightline.nn.encoders.clip import ClipEncoder
    from sightline.nn.model import Batch, EncoderDecoder


class ClipData(CaptionData):
    """As a captioner's, with clips for pictures."""

    medium: ClassVar[Medium] = "video"

    def __init__(self, recipe: ClipRecipe) -> None:
        if recipe.encoder.learning != "frozen":
            raise ConfigError("encoder.learning: the network that reads a clip's frames is frozen")
        if recipe.encoder.tags:
            raise ConfigError("encoder.tags: there are none for clips; set it to 0")
        super().__init__(recipe)

    @cached_property
    def clip_encoder(self) -> ClipEncoder:
        from sightline.tasks.clip.model import build_clip_encoder

        return build_clip_encoder(self.recipe)

    @cached_property
    def pictures(self) -> Any:
        mirrored = {e.id: e.media for e in self.train if e.media is not None}
        files = mirrored | {e.id: e.media for e in self.dev if e.media is not None}
        return CachedClips(self.recipe, self.clip_encoder, files, mirrored)

    def dev_batches(self) -> Iterable[Batch]:
        """All captions: twenty of one clip say much more of a model than its first."""
        for example in self.dev:
            texts = [normalise_caption(text) for text in example.targets]
            targets = [[BEGIN, *self.vocab.encode(text), END] for text in texts]
            yield batch_of(targets, self.pictures.inputs([example.id]))

    def build_model(self) -> EncoderDecoder:
        from sightline.tasks.clip.model import build_clip_model

        objective = self.self_critical() if self.recipe.self_critical else None
        return build_clip_model(self.recipe, self.vocab, self.clip_encoder, objective)


class CachedClips:
    """Vectors of frames and of motion, each from its cache."""

    def __init__(
        self,
        recipe: ClipRecipe,
        encoder: ClipEncoder,
        clips: Mapping[str, Path],
        mirrored: Mapping[str, Path],
    ) -> None:
        from sightline.tasks.clip.features import frame_vectors, motion_vectors

        assert encoder.network is not None
        reader = reader_for(recipe, encoder.network.spec)
        root = Path(recipe.features)
        self.caches: dict[str, FeatureCache] = {
            "vectors": frame_vectors(clips, encoder, reader, root)
        }
        if reader.motion is not None:
            self.caches["motion"] = motion_vectors(clips, encoder, reader, root)
        self.stamps = {name: self.caches["vectors"].stamps[name] for name in clips}
        self.key = [cache.key for cache in self.caches.values()]
        self.mirrored: FeatureCache | None = None
        if recipe.encoder.mirror:
            twin = replace(reader, spec=replace(reader.spec, mirror=True))
            self.mirrored = frame_vectors(mirrored, encoder, twin, root)

    def inputs(self, ids: Sequence[str], mirrored: NDArray[np.bool_] | None = None) -> Inputs:
        streams = {name: cache.read(ids) for name, cache in self.caches.items()}
        if mirrored is not None and self.mirrored is not None and mirrored.any():
            chosen = [name for name, seen in zip(ids, mirrored, strict=True) if seen]
            values = self.mirrored.read(chosen).values
            streams["vectors"].values[mirrored, : values.shape[1]] = values
        return Inputs(len(ids), streams)
