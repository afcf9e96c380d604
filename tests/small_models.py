"""Small untrained models of every task, saved as checkpoints, for tests of what runs models."""

from dataclasses import replace

import numpy as np
import torch
from safetensors.torch import save_file

from sightline import config
from sightline.config import (
    AttentionConfig,
    DecoderConfig,
    ImageEncoderConfig,
    PointEncoderConfig,
    RecurrentConfig,
    SearchConfig,
)
from sightline.data.imagenet import imagenet_words
from sightline.data.vocabulary import SPECIALS, Vocabulary
from sightline.tasks.caption.model import build_model as build_captioner
from sightline.tasks.caption.model import build_network
from sightline.tasks.caption.recipe import CaptionRecipe
from sightline.tasks.classify.model import build_model as build_classifier
from sightline.tasks.classify.recipe import ClassifyRecipe
from sightline.tasks.language_model.model import build_model as build_language_model
from sightline.tasks.language_model.recipe import LanguageModelRecipe
from sightline.tasks.point.model import build_model as build_pointer
from sightline.tasks.point.recipe import PointRecipe
from sightline.tasks.translate.model import build_model as build_translator
from sightline.tasks.translate.recipe import TranslateRecipe

NOUNS_AND_SUCH = ("a", "dog", "cat", "runs", "sits", "on", "the", "red", "grass", "sofa", "big")
WORDS = Vocabulary("word", [*SPECIALS, *NOUNS_AND_SUCH])
LETTERS = Vocabulary("char", [*SPECIALS, *"\nabcdefgh "])
SMALL = DecoderConfig(embedding=12, hidden=16, attention=AttentionConfig(size=10))


def save(folder, recipe, model, **vocabularies):
    """A checkpoint's folder, its weights large enough for outputs that differ."""
    folder.mkdir(parents=True)
    weights = {name: tensor.clone().contiguous() for name, tensor in model.state_dict().items()}
    for name, tensor in weights.items():
        if name.startswith("decoder.") and tensor.dim() > 1:
            tensor.mul_(3)
    save_file(weights, folder / "weights.safetensors")
    (folder / "config.yaml").write_text(config.to_yaml(recipe))
    for name, vocab in vocabularies.items():
        (folder / f"{name}.json").write_text(vocab.to_json())
    return folder


def save_captioner(folder, tags=0):
    """With `tags`, one that names and copies words."""
    torch.manual_seed(0)
    vocab = WORDS.extended(imagenet_words()) if tags else WORDS
    encoder = ImageEncoderConfig("efficientnet_lite0", size=70, learning="scratch", tags=tags)
    recipe = CaptionRecipe(
        manifest=str(folder / "pictures.jsonl"),
        features=str(folder / "features"),
        encoder=encoder,
        model=replace(SMALL, head="copy") if tags else SMALL,
        search=SearchConfig(beam=3, max_length=8),
    )
    model = build_captioner(recipe, vocab, build_network(recipe, published=False))
    return save(folder, recipe, model, vocab=vocab)


def save_translator(folder):
    torch.manual_seed(0)
    recipe = TranslateRecipe(
        manifest=str(folder / "pairs.jsonl"),
        encoder=RecurrentConfig(embedding=8, hidden=7),
        model=SMALL,
        search=SearchConfig(beam=3, max_length=20, length_penalty=1.0),
    )
    model = build_translator(recipe, LETTERS, WORDS)
    return save(folder, recipe, model, vocab=WORDS, source_vocab=LETTERS)


def save_language_model(folder):
    torch.manual_seed(0)
    recipe = LanguageModelRecipe(
        text=str(folder / "text.txt"),
        model=DecoderConfig(
            embedding=16, hidden=32, layers=2, attention=AttentionConfig("none"), context=()
        ),
    )
    model = build_language_model(recipe, LETTERS)
    return save(folder, recipe, model, vocab=LETTERS)


def save_classifier(folder):
    torch.manual_seed(0)
    recipe = ClassifyRecipe(
        manifest=str(folder / "texts.jsonl"),
        encoder=RecurrentConfig(embedding=8, hidden=7),
        model=DecoderConfig(hidden=12, attention=AttentionConfig(size=6), head="class"),
    )
    classes = Vocabulary("word", [*SPECIALS, "animals", "furniture", "none of these"])
    model = build_classifier(recipe, WORDS, classes)
    return save(folder, recipe, model, vocab=classes, source_vocab=WORDS)


def save_pointer(folder, problem="hull"):
    torch.manual_seed(0)
    recipe = PointRecipe(
        problem,
        encoder=PointEncoderConfig(embedding=8, hidden=7),
        model=DecoderConfig(
            embedding=8, hidden=12, attention=AttentionConfig("none", size=6), head="pointer"
        ),
    )
    return save(folder, recipe, build_pointer(recipe))


def pictures(count, seed=0):
    """Coarse colours of several sizes."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        blocks = rng.integers(0, 256, (3 + number, 4, 3), dtype=np.uint8)
        yield blocks.repeat(25, axis=0).repeat(25, axis=1)
