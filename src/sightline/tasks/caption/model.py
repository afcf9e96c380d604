"""A captioner's network: a picture encoder, frozen or learning, and the decoder of Xu et al."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor

from sightline.data.vocabulary import VOCAB, Vocabulary
from sightline.errors import ConfigError
from sightline.nn.backbones.weights import find_weights, read_weights
from sightline.nn.decoder import Decoder
from sightline.nn.encoders.image import ENCODERS, ImageEncoder, build_encoder, for_inference
from sightline.nn.encoders.picture import PictureEncoder
from sightline.nn.encoders.tags import Tagger
from sightline.nn.model import EncoderDecoder
from sightline.nn.objectives import Likelihood
from sightline.tasks.caption.parts import CaptionCodec
from sightline.tasks.caption.recipe import INITIAL, CaptionRecipe
from sightline.types import Inputs

CLASSIFIER = "_fc.weight"  # in EfficientNet-Lite's published file
TAGGER = "encoder.tagger."  # in a captioner's weights


def build_network(
    recipe: CaptionRecipe, published: bool = True, download: bool = True
) -> ImageEncoder:
    """The recipe's convolutional network, with its published weights or with random ones."""
    others = ("mirror", "tags", "tag_words")
    options = {k: v for k, v in vars(recipe.encoder).items() if k not in others}
    if recipe.encoder.weights == INITIAL:
        options["weights"] = recipe.training.initial
    if not published or recipe.encoder.learning == "scratch":
        options["weights"] = None
    return build_encoder(**options, download=download)


def build_model(
    recipe: CaptionRecipe, vocab: Vocabulary, network: ImageEncoder, objective: Any = None
) -> EncoderDecoder:
    """The model that is trained.

    A frozen network is no part of its weights, unless it came with the model that it started from.
    """
    kept = recipe.encoder.weights == INITIAL and recipe.encoder.learning == "frozen"
    tagger = build_tagger(recipe, vocab, network.dimension) if recipe.encoder.tags else None
    encoder = PictureEncoder(network, "tuned" if kept else recipe.encoder.learning, tagger=tagger)
    decoder = Decoder(recipe.model, len(vocab), encoder.dimension)
    likelihood = Likelihood(recipe.loss, recipe.training.scheduled_sampling)
    return EncoderDecoder(encoder, decoder, objective or likelihood)


def build_tagger(recipe: CaptionRecipe, vocab: Vocabulary, dimension: int) -> Tagger:
    """Random weights; `teach` gives it those of a published classifier."""
    common = CaptionCodec(vocab, recipe.search).content_words[: recipe.encoder.tag_words]
    return Tagger(dimension, vocab, common.tolist(), recipe.encoder.tags)


def teach(tagger: Tagger, recipe: CaptionRecipe) -> None:
    """Give it the classifier that its encoder was published with, or the tagger of a run."""
    source = recipe.encoder.weights
    if source == "default":
        source = ENCODERS[recipe.encoder.name].weights
    path = find_weights(source)  # of a run: all its weights, not its encoder's alone
    weights = load_file(path) if path.suffix == ".safetensors" else read_weights(path)
    own = {n.removeprefix(TAGGER): w for n, w in weights.items() if n.startswith(TAGGER)}
    if own:
        tagger.load_state_dict(own)
    elif CLASSIFIER in weights:
        tagger.classes.weight.data = weights[CLASSIFIER].float()
        tagger.classes.bias.data = weights[CLASSIFIER.replace("weight", "bias")].float()
    else:
        raise ConfigError(
            f"encoder.tags: {recipe.encoder.weights} has no classifier of ImageNet; "
            "use an efficientnet_lite, or set encoder.tags=0"
        )


def classifier(recipe: CaptionRecipe) -> Callable[[Inputs], Tensor]:
    """The published network's own logits of ImageNet's classes, (B, 1000)."""
    as_published = replace(recipe.encoder, learning="frozen", weights="default")
    published = replace(recipe, encoder=as_published)
    network = PictureEncoder(for_inference(build_network(published)))
    weights = read_weights(find_weights(ENCODERS[recipe.encoder.name].weights))
    matrix, bias = (weights[CLASSIFIER.replace("weight", n)].float() for n in ("weight", "bias"))

    @torch.no_grad()
    def logits(inputs: Inputs) -> Tensor:
        mean: Tensor = network.cells(inputs).values.mean(1)
        return mean @ matrix.t() + bias

    return logits


def saved_model(folder: Path, recipe: CaptionRecipe) -> EncoderDecoder:
    """The model that a checkpoint's weights go into; a frozen network has its published ones."""
    shapes_only = torch.get_default_device().type == "meta"
    own = recipe.encoder.weights == INITIAL or recipe.encoder.learning != "frozen"
    published = not own and not shapes_only
    network = build_network(recipe, published, download=False)
    return build_model(recipe, Vocabulary.load(folder / VOCAB), network)


def thawed(recipe: CaptionRecipe) -> CaptionRecipe:
    """With an encoder whose weights are part of the model."""
    return replace(recipe, encoder=replace(recipe.encoder, learning="tuned", weights="default"))


def about(encoder: Any) -> dict[str, Any]:
    """What a reader of pictures has to know of the encoder."""
    assert isinstance(encoder, PictureEncoder)
    network = encoder.network
    assert network is not None
    return {"pictures": {"spec": network.spec.to_json(), "grid": list(network.grid())}}
