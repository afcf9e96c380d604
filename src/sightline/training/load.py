"""A run, or one of its checkpoints, as a Describer that computes in PyTorch."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sightline.nn.device import pick_device
from sightline.nn.encoders.picture import PictureEncoder
from sightline.nn.model import EncoderDecoder
from sightline.nn.stepper import TorchEncoder, TorchStepper
from sightline.runtime.codec import Codec
from sightline.runtime.confidence import read_confidence
from sightline.runtime.describer import Describer, Options, Reader
from sightline.training import checkpoint

if TYPE_CHECKING:
    from sightline.tasks.spec import TaskSpec


def load_run(folder: Path, recipe: Any, spec: TaskSpec, device: str) -> Describer:
    where = pick_device(device, "device")
    checkpoint.require_fit(lambda: spec.model(folder, recipe), folder)
    model = spec.model(folder, recipe)
    checkpoint.load_weights(model, folder)
    if isinstance(model.encoder, PictureEncoder):  # of pictures, or of a clip's frames
        model.encoder = model.encoder.for_inference()
    model = model.to(where).eval()
    reader = spec.reader(folder, recipe, spec.about(model.encoder))
    describer = describer_of(spec, recipe, reader, spec.codec(folder, recipe), model)
    return replace(describer, confidence=read_confidence(folder))


def describer_of(
    spec: TaskSpec, recipe: Any, reader: Reader, codec: Codec, model: EncoderDecoder
) -> Describer:
    """A model in training, or a loaded one, as a Describer."""
    return Describer(
        task=spec.name,
        recipe=recipe,
        reader=reader,
        codec=codec,
        stepper=TorchStepper(model, codec.begin, codec.end),
        encoder=None if model.encoder is None else TorchEncoder(model),
        defaults=Options(**spec.defaults),
    )
