"""Language models (D §II): p(w_1 … w_T) by characters, words or BPE pieces of a text file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sightline.runtime.describer import Options
from sightline.tasks.language_model.parts import codec, evaluate, reader
from sightline.tasks.language_model.recipe import LanguageModelRecipe
from sightline.tasks.spec import TaskSpec
from sightline.training.task import TrainingTask

if TYPE_CHECKING:
    from sightline.nn.model import EncoderDecoder


def _data(recipe: LanguageModelRecipe) -> TrainingTask:
    from sightline.tasks.language_model.data import TextData

    return TextData(recipe)


def _model(folder: Path, recipe: LanguageModelRecipe) -> EncoderDecoder:
    from sightline.tasks.language_model.model import saved_model

    return saved_model(folder, recipe)


SPEC = TaskSpec(
    name="language_model",
    recipe=LanguageModelRecipe,
    data=_data,
    model=_model,
    reader=reader,
    codec=codec,
    metrics=("loss", "bits", "perplexity"),
    defaults=Options(temperature=1.0, length=500),
    evaluate=evaluate,
    local_paths=("text", "held_out_text", "like", "training.initial"),
    commands={"sample": "sightline.tasks.language_model.commands:sample"},
)
