"""Deep fusion as a section of a translator's recipe: the two trained models that it joins."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from sightline.data.sentences import Sentences
from sightline.data.vocabulary import VOCAB, Vocabulary
from sightline.errors import CheckpointError, ConfigError
from sightline.runtime.model_folder import find_model, is_export
from sightline.tasks.translate.parts import SOURCE_VOCAB
from sightline.tasks.translate.recipe import FusionConfig

if TYPE_CHECKING:
    from sightline.nn.model import EncoderDecoder
    from sightline.tasks.language_model.recipe import LanguageModelRecipe

LANGUAGE_MODEL = "language_model.yaml"  # in a fused model's folder: its language model's recipe


@dataclass(frozen=True)
class Trained:
    """What a fused model begins with."""

    folders: tuple[Path, Path]  # the translator's, the language model's
    source: Sentences
    target: Sentences
    language_model: LanguageModelRecipe

    def put_into(self, fused: EncoderDecoder, translator: EncoderDecoder) -> None:
        """Fill a fused model; `translator` is one of the same recipe without fusion."""
        from sightline.nn.deep_fusion import fuse
        from sightline.tasks.language_model.model import build_model
        from sightline.training.checkpoint import load_weights

        language_model = build_model(self.language_model, self.target.vocab)
        load_weights(translator, self.folders[0])
        load_weights(language_model, self.folders[1])
        fuse(fused, translator, language_model)


def find(config: FusionConfig) -> Trained:
    """The two models, if they are trained ones that fit together."""
    first, translator = _trained("translator", config.translator, "translate")
    second, language_model = _trained("language_model", config.language_model, "language_model")
    if translator.fusion is not None:
        raise ConfigError(
            f"fusion.translator={config.translator} is a fused model already; "
            "give the translator that it was made from"
        )
    vocab = Vocabulary.load(first / VOCAB)
    if language_model.sequence != "line" or Vocabulary.load(second / VOCAB) != vocab:
        raise ConfigError(
            f"fusion.language_model={config.language_model} does not write the sentences of "
            f"{config.translator} in the same tokens; train one with like={config.translator} "
            "sequence=line"
        )
    source = Sentences(Vocabulary.load(first / SOURCE_VOCAB))
    return Trained((first, second), source, Sentences(vocab), language_model)


def language_model_in(folder: Path) -> LanguageModelRecipe:
    """The recipe of the language model that a fused model's folder holds."""
    from sightline.tasks import read_recipe

    try:
        return cast("LanguageModelRecipe", read_recipe(folder / LANGUAGE_MODEL))
    except ConfigError as error:
        raise CheckpointError(f"{folder} is not a whole fused model: {error}") from None


def _trained(key: str, model: str, task: str) -> tuple[Path, Any]:
    from sightline.tasks import read_recipe

    folder = find_model(model)
    recipe = read_recipe(folder / "config.yaml")
    if recipe.task != task:
        raise ConfigError(
            f"fusion.{key}={model} is a model of the task {recipe.task}; give one of {task}"
        )
    if is_export(folder):
        raise ConfigError(f"fusion.{key}={model} is an export; give the run that it was made from")
    return folder, recipe
