"""Exported models of every task, run by onnxruntime: what `sightline.load` gives of an export."""

from __future__ import annotations

from typing import Any

from sightline.errors import CheckpointError
from sightline.exported import EXPORT, Export
from sightline.onnx_stepper import OnnxPictureEncoder, OnnxStepper
from sightline.tasks.captioner import Captioner
from sightline.vocab import UNKNOWN, Vocabulary


def load_exported(export: Export, recipe: Any) -> Any:
    if export.about.get("task") != recipe.task:
        raise CheckpointError(
            f"{export.folder / EXPORT} and config.yaml name different tasks; export the model anew"
        )
    return {"caption": _captioner}[recipe.task](export, recipe)


def _captioner(export: Export, recipe: Any) -> Captioner:
    vocab = Vocabulary.load(export.folder / "vocab.json")
    stepper = OnnxStepper(export, banned=[UNKNOWN])
    return Captioner(recipe, vocab, stepper, OnnxPictureEncoder(export))
