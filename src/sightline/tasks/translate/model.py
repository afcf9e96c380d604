"""A translator's network: a recurrent encoder of the source, attention, and the same decoder."""

from __future__ import annotations

from pathlib import Path

from sightline.config import DecoderConfig
from sightline.data.vocabulary import VOCAB, Vocabulary
from sightline.nn.decoder import Decoder
from sightline.nn.deep_fusion import FusedDecoder
from sightline.nn.encoders.text import TextEncoder
from sightline.nn.model import EncoderDecoder
from sightline.nn.objectives import Likelihood
from sightline.tasks.translate import fusion
from sightline.tasks.translate.parts import SOURCE_VOCAB
from sightline.tasks.translate.recipe import TranslateRecipe


def build_model(
    recipe: TranslateRecipe,
    source: Vocabulary,
    target: Vocabulary,
    language_model: DecoderConfig | None = None,  # one that is fused in
) -> EncoderDecoder:
    encoder = TextEncoder(recipe.encoder, len(source))
    sizes = (len(target), encoder.dimension)
    if language_model is None:
        decoder = Decoder(recipe.model, *sizes)
    else:
        decoder = FusedDecoder(recipe.model, *sizes, language_model)
    objective = Likelihood(recipe.loss, recipe.training.scheduled_sampling)
    return EncoderDecoder(encoder, decoder, objective)


def saved_model(folder: Path, recipe: TranslateRecipe) -> EncoderDecoder:
    """The model that a checkpoint's weights go into."""
    source, target = (Vocabulary.load(folder / name) for name in (SOURCE_VOCAB, VOCAB))
    prior = None if recipe.fusion is None else fusion.language_model_in(folder).model
    return build_model(recipe, source, target, prior)
