"""Captions for pictures (Xu et al.): a convolutional encoder, attention, one sentence."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from sightline.tasks.caption.parts import codec, reader
from sightline.tasks.caption.recipe import PUBLISHED, CaptionRecipe
from sightline.tasks.spec import TaskSpec
from sightline.training.task import TrainingTask

if TYPE_CHECKING:
    from sightline.nn.model import EncoderDecoder
    from sightline.tasks.route import Route


def _data(recipe: CaptionRecipe) -> TrainingTask:
    from sightline.tasks.caption.data import CaptionData

    return CaptionData(recipe)


def _model(folder: Path, recipe: CaptionRecipe) -> EncoderDecoder:
    from sightline.tasks.caption.model import saved_model

    return saved_model(folder, recipe)


def _about(encoder: Any) -> dict[str, Any]:
    from sightline.tasks.caption.model import about

    return about(encoder)


def _route() -> Route:
    from sightline.tasks.caption.route import ROUTE

    return ROUTE


SPEC = TaskSpec(
    name="caption",
    recipe=CaptionRecipe,
    data=_data,
    model=_model,
    reader=reader,
    codec=codec,
    about=_about,
    medium="image",
    metrics=("bleu", "bleu_nobp", "meteor", "rouge_l", "cider"),
    published=PUBLISHED,
    local_paths=("manifest", "features", "encoder.weights", "training.initial"),
    route=_route,
    panel=Path(__file__).parent / "panel",
)
