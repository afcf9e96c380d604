"""A pointer network: a recurrent encoder of points, and the same decoder with a pointer head."""

from __future__ import annotations

from pathlib import Path

from sightline.errors import ConfigError
from sightline.nn.decoder import Decoder
from sightline.nn.encoders.points import point_encoder
from sightline.nn.model import EncoderDecoder
from sightline.nn.objectives import Likelihood
from sightline.tasks.point.problems import DIMENSIONS
from sightline.tasks.point.recipe import PointRecipe


def build_model(recipe: PointRecipe) -> EncoderDecoder:
    if recipe.model.head != "pointer":
        raise ConfigError(f"this task needs model.head=pointer, not {recipe.model.head}")
    if recipe.encoder.summary:
        raise ConfigError("encoder.summary leaves nothing to point at; set it to false")
    encoder = point_encoder(recipe.encoder, DIMENSIONS[recipe.problem])
    decoder = Decoder(recipe.model, 0, encoder.dimension)
    return EncoderDecoder(encoder, decoder, Likelihood(recipe.loss))


def saved_model(folder: Path, recipe: PointRecipe) -> EncoderDecoder:
    """The model that a checkpoint's weights go into."""
    return build_model(recipe)
