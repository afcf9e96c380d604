"""Whether a run can be begun in a folder, or continued there: the same recipe, the same data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sightline import config as recipes
from sightline.errors import CheckpointError, TrainingError
from sightline.training import checkpoint as files
from sightline.training.checkpoint import Run
from sightline.training.task import TrainingTask


def check_same(
    folder: Path, training: dict[str, Any], task: TrainingTask, free_to_change: Sequence[str]
) -> None:
    """A TrainingError where the checkpoint is of another recipe, but for these keys, or data."""
    recipe = task.recipe
    before = recipes.to_dict(recipes.parse_file(folder / files.CONFIG, type(recipe)))
    changed = _differences(before, recipes.to_dict(recipe))
    refused = [key for key in changed if key not in free_to_change]
    if refused:
        raise TrainingError(
            f"{folder} was trained with another {', '.join(refused)}; "
            "resume with the same recipe, or train into another --out"
        )
    # texts, and for other media also the files: digests that runs before today's do not have
    stored, now = str(training.get("data")).split("+"), task.fingerprint.split("+")
    files_differ = any(_text(folder / name) != text for name, text in task.files.items())
    if files_differ or any(one != other for one, other in zip(stored, now, strict=False)):
        replaced = " (files were replaced)" if stored[0] == now[0] and not files_differ else ""
        raise TrainingError(
            f"{folder} was trained on other data than this{replaced}; resume with the same files"
        )


def check_folder(run: Run, resume: bool) -> None:
    """A TrainingError where a run is begun twice, or continued that never began."""
    used = run.newest() is not None
    if used and not resume:
        raise TrainingError(
            f"{run.folder} already holds a run; --resume continues it, --out names another folder"
        )
    if resume and not used:
        raise TrainingError(f"{run.folder} holds no checkpoint to resume; leave --resume out")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} is missing or damaged ({error})") from None


def _differences(before: Any, after: Any, prefix: str = "") -> list[str]:
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return [] if before == after else [prefix.removesuffix(".")]
    changed = []
    for key in dict.fromkeys([*before, *after]):
        changed += _differences(before.get(key), after.get(key), f"{prefix}{key}.")
    return changed
