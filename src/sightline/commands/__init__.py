"""One file per `sightline` command; the table of them is in `sightline/cli.py`."""

from typing import Any


def load_for(model: str, task: str) -> Any:
    """Load a model for a command that works on one task, or say which command does."""
    from sightline.errors import UserError
    from sightline.tasks import load_model

    try:
        loaded = load_model(model)
    except ModuleNotFoundError as error:
        raise UserError(f"this model needs {error.name}: pip install 'sightline[train]'") from None
    if loaded.recipe.task != task:
        raise UserError(f"{model} is a model for {loaded.recipe.task}, not for {task}")
    return loaded
