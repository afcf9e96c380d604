"""Sightline: encoder-decoder networks with attention that describe things in words.

import sightline
model = sightline.load("runs/shakespeare-lstm")
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sightline.runtime.describer import Describer

# Nothing that Sightline runs contacts anyone. onnxruntime reads this when it is imported.
os.environ["ORT_DISABLE_TELEMETRY"] = "1"

__version__ = "0.2.0"
__all__ = ["ContextSet", "Description", "Hypothesis", "Inputs", "Layout", "load"]


def load(model: Path | str, device: str = "auto") -> Describer:
    """A trained model of any task: a run's folder, a checkpoint's, or a zoo model's name.

    `device` is where a run computes (auto, cpu, cuda, cuda:1, mps); what is exported, as the zoo's
    models are, computes on the CPU.
    """
    from sightline.tasks import load_model

    return load_model(model, device=device)


def __getattr__(name: str) -> Any:
    """The public types, imported when first used so that `import sightline` is quick."""
    if name in __all__:
        from sightline import types

        return getattr(types, name)
    raise AttributeError(f"module 'sightline' has no attribute {name!r}")
