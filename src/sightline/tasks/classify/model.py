"""A classifier's network: a recurrent encoder of the text, and one step of the same decoder."""

from __future__ import annotations

from pathlib import Path

from sightline.data.vocabulary import VOCAB, Vocabulary
from sightline.errors import ConfigError
from sightline.nn.decoder import Decoder
from sightline.nn.encoders.text import TextEncoder
from sightline.nn.model import EncoderDecoder
from sightline.nn.objectives import Likelihood
from sightline.tasks.classify.parts import SOURCE_VOCAB
from sightline.tasks.classify.recipe import ClassifyRecipe


def build_model(recipe: ClassifyRecipe, source: Vocabulary, classes: Vocabulary) -> EncoderDecoder:
    if recipe.model.head != "class":
        raise ConfigError(f"a classifier needs model.head=class, not {recipe.model.head}")
    encoder = TextEncoder(recipe.encoder, len(source))
    decoder = Decoder(recipe.model, len(classes), encoder.dimension)
    return EncoderDecoder(encoder, decoder, Likelihood(recipe.loss))


def saved_model(folder: Path, recipe: ClassifyRecipe) -> EncoderDecoder:
    """The model that a checkpoint's weights go into."""
    source, classes = (Vocabulary.load(folder / name) for name in (SOURCE_VOCAB, VOCAB))
    return build_model(recipe, source, classes)
