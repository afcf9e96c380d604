"""An exported model as a Describer, run by onnxruntime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from sightline.data.vocabulary import VOCAB
from sightline.errors import CheckpointError, DataError
from sightline.runtime.confidence import read_confidence
from sightline.runtime.describer import Describer, Options
from sightline.runtime.model_folder import ENCODER, EXPORT, Export, reason
from sightline.runtime.onnx import OnnxEncoder, OnnxStepper

if TYPE_CHECKING:
    from sightline.tasks.spec import TaskSpec


def load_export(export: Export, recipe: Any, spec: TaskSpec) -> Describer:
    if export.about.get("task") != recipe.task:
        raise CheckpointError(
            f"{export.folder / EXPORT} and config.yaml name different tasks; export the model again"
        )
    codec = spec.codec(export.folder, recipe)
    stepper = OnnxStepper(export, codec.begin, codec.end)
    if stepper.vocab_size not in (0, len(codec.vocab)):  # 0: a pointer has none of its own
        raise CheckpointError(
            f"{export.folder / VOCAB} has {len(codec.vocab)} tokens, the graphs "
            f"{stepper.vocab_size}; export the model again"
        )
    try:
        reader = spec.reader(export.folder, recipe, export.about)
    except (DataError, LookupError, TypeError, ValueError) as error:
        raise CheckpointError(f"{export.folder / EXPORT} is damaged ({reason(error)})") from None
    return Describer(
        task=spec.name,
        recipe=recipe,
        reader=reader,
        codec=codec,
        stepper=stepper,
        encoder=OnnxEncoder(export) if ENCODER in export.graphs else None,
        defaults=Options(**spec.defaults),
        confidence=read_confidence(export.folder),
    )
