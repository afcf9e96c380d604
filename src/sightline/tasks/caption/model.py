"""A captioner's network: a picture encoder, frozen or learning, and the decoder of Xu et al."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from sightline.data.vocabulary import VOCAB, Vocabulary
from sightline.nn.decoder import Decoder
from sightline.nn.encoders.image import ImageEncoder, build_encoder
from sightline.nn.encoders.picture import PictureEncoder
from sightline.nn.model import EncoderDecoder
from sightline.nn.objectives import Likelihood
from sightline.tasks.caption.recipe import CaptionRecipe


def build_network(
    recipe: CaptionRecipe, published: bool = True, download: bool = True
) -> ImageEncoder:
    """The recipe's convolutional network, with its published weights or with random ones."""
    options = {k: v for k, v in vars(recipe.encoder).items() if k != "mirror"}
    if not published or recipe.encoder.learning == "scratch":
        options["weights"] = None
    return build_encoder(**options, download=download)


def build_model(
    recipe: CaptionRecipe, vocab: Vocabulary, network: ImageEncoder, objective: Any = None
) -> EncoderDecoder:
    """The model that is trained; a frozen network is not part of its weights."""
    encoder = PictureEncoder(network, recipe.encoder.learning)
    decoder = Decoder(recipe.model, len(vocab), encoder.dimension)
    likelihood = Likelihood(recipe.loss, recipe.training.scheduled_sampling)
    return EncoderDecoder(encoder, decoder, objective or likelihood)


def saved_model(folder: Path, recipe: CaptionRecipe) -> EncoderDecoder:
    """The model that a checkpoint's weights go into; a frozen network has its published ones."""
    shapes_only = torch.get_default_device().type == "meta"
    published = recipe.encoder.learning == "frozen" and not shapes_only
    network = build_network(recipe, published, download=False)
    return build_model(recipe, Vocabulary.load(folder / VOCAB), network)


def about(encoder: Any) -> dict[str, Any]:
    """What a reader of pictures has to know of the encoder."""
    assert isinstance(encoder, PictureEncoder)
    network = encoder.network
    assert network is not None
    return {"pictures": {"spec": network.spec.to_json(), "grid": list(network.grid())}}
