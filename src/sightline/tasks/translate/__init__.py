"""Translation (D §IV-A): a recurrent encoder of the source, attention, and the same decoder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from sightline.tasks.spec import TaskSpec
from sightline.tasks.translate.alignments import LEXICON
from sightline.tasks.translate.parts import codec, reader
from sightline.tasks.translate.recipe import TranslateRecipe
from sightline.training.task import TrainingTask

if TYPE_CHECKING:
    from sightline.nn.model import EncoderDecoder
    from sightline.tasks.route import Route


def _data(recipe: TranslateRecipe) -> TrainingTask:
    from sightline.tasks.translate.data import TranslationData

    return TranslationData(recipe)


def _model(folder: Path, recipe: TranslateRecipe) -> EncoderDecoder:
    from sightline.tasks.translate.model import saved_model

    return saved_model(folder, recipe)


def _route() -> Route:
    from sightline.tasks.translate.route import ROUTE

    return ROUTE


SPEC = TaskSpec(
    name="translate",
    recipe=TranslateRecipe,
    data=_data,
    model=_model,
    reader=reader,
    codec=codec,
    metrics=("sacrebleu", "chrf"),
    local_paths=("manifest", "fusion.translator", "fusion.language_model", "training.initial"),
    files=(LEXICON,),
    commands={
        "translate": "sightline.tasks.translate.commands:translate",
        "align": "sightline.tasks.translate.commands:align",
    },
    route=_route,
    panel=Path(__file__).parent / "panel",
)
