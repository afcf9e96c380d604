"""The models that ship, each a folder with its card; and finding a model by name or path."""

from __future__ import annotations

import os
from pathlib import Path

from sightline.errors import CheckpointError
from sightline.runtime.model_folder import is_export

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The models that come with this install."""
    return sorted(path.parent.name for path in FOLDER.glob("*/config.yaml"))


def find(model: Path | str) -> Path:
    """The folder of the weights: a run's best or newest, a checkpoint, an export, of the zoo."""
    path = Path(model)
    if not os.path.exists(path):  # unlike Path.exists, also false for a name too long
        if str(model) in names():
            return FOLDER / str(model)
        known = ", ".join(names()) or "none yet"
        raise CheckpointError(f"no model at {path}, and the zoo has none of that name ({known})")
    if (path / "config.yaml").is_file() or is_export(path):
        return path
    best, found = _best(path), sorted(path.glob("checkpoints/step-*"))
    if best is not None and best not in found:  # another would not be the model that is meant
        raise CheckpointError(f"{best} is gone, the best of {path}; give another checkpoint of it")
    if not found:
        raise CheckpointError(f"{path} holds no model; give the folder of a run or of a checkpoint")
    return best or found[-1]


def _best(run: Path) -> Path | None:
    try:
        name = (run / "best").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
    return run / "checkpoints" / Path(name).name  # a name only: it cannot point elsewhere
