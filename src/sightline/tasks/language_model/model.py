"""A language model's network: the decoder alone."""

from __future__ import annotations

from pathlib import Path

from sightline.data.vocabulary import VOCAB, Vocabulary
from sightline.nn.decoder import Decoder
from sightline.nn.model import EncoderDecoder
from sightline.nn.objectives import Likelihood
from sightline.tasks.language_model.recipe import LanguageModelRecipe


def build_model(recipe: LanguageModelRecipe, vocab: Vocabulary) -> EncoderDecoder:
    objective = Likelihood(recipe.loss, recipe.training.scheduled_sampling)
    return EncoderDecoder(None, Decoder(recipe.model, len(vocab)), objective)


def saved_model(folder: Path, recipe: LanguageModelRecipe) -> EncoderDecoder:
    """The model that a checkpoint's weights go into."""
    return build_model(recipe, Vocabulary.load(folder / VOCAB))
