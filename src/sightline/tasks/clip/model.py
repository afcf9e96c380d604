"""The network that describes clips: encoders of frames and motion, a captioner's decoder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from sightline.data.vocabulary import VOCAB, Vocabulary
from sightline.nn.decoder import Decoder
from sightline.nn.encoders.clip import ClipEncoder
from sightline.nn.model import EncoderDecoder
from sightline.nn.objectives import Likelihood
from sightline.tasks.caption.model import build_network
from sightline.tasks.caption.recipe import INITIAL
from sightline.tasks.clip.recipe import ClipRecipe


def build_clip_encoder(
    recipe: ClipRecipe, published: bool = True, download: bool = True
) -> ClipEncoder:
    """With the networks' published weights, or with random ones."""
    network = build_network(recipe, published, download)
    motion = None
    if recipe.clip.motion != "none":
        from sightline.nn.encoders.motion import build_motion

        motion = build_motion(recipe.clip.weights if published else None)
    return ClipEncoder(network, kept=recipe.encoder.weights == INITIAL, motion=motion)


def build_clip_model(
    recipe: ClipRecipe, vocab: Vocabulary, encoder: ClipEncoder, objective: Any = None
) -> EncoderDecoder:
    decoder = Decoder(recipe.model, len(vocab), encoder.dimension)
    likelihood = Likelihood(recipe.loss, recipe.training.scheduled_sampling)
    return EncoderDecoder(encoder, decoder, objective or likelihood)


def saved_model(folder: Path, recipe: ClipRecipe) -> EncoderDecoder:
    """The model that a checkpoint's weights go into; frozen networks have their published ones."""
    shapes_only = torch.get_default_device().type == "meta"
    published = recipe.encoder.weights != INITIAL and not shapes_only
    encoder = build_clip_encoder(recipe, published, download=False)
    return build_clip_model(recipe, Vocabulary.load(folder / VOCAB), encoder)


def about(encoder: Any) -> dict[str, Any]:
    """What a reader of clips has to know of the encoder."""
    assert isinstance(encoder, ClipEncoder)
    assert encoder.network is not None
    return {"frames": {"spec": encoder.network.spec.to_json()}}
