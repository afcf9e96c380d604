"""One file per `sightline` command; the table of them is in `sightline/cli.py`."""

from collections.abc import Sequence
from typing import Any


def load_for(model: str, *tasks: str, overrides: Sequence[str] = ()) -> Any:
    """Load a model for a command that works on some tasks only."""
    from sightline.errors import UserError
    from sightline.tasks import load_model

    try:
        loaded = load_model(model, overrides)
    except ModuleNotFoundError as error:
        raise UserError(f"this model needs {error.name}: pip install 'sightline[train]'") from None
    if loaded.recipe.task not in tasks:
        raise UserError(
            f"{model} is a model for {loaded.recipe.task}, not for {' or '.join(tasks)}"
        )
    return loaded


def one_thread() -> None:
    """One row at a time is faster on one core, and ten times so when the others are busy."""
    import sys

    if "torch" in sys.modules:  # an exported model has no use for it
        sys.modules["torch"].set_num_threads(1)
