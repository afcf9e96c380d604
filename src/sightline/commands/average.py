"""`sightline average`: the mean of several models' weights, as one model."""

from pathlib import Path
from typing import Annotated

import typer

from sightline.tasks.command_line import echo, note


def average(
    models: Annotated[list[Path], typer.Argument(help="A run's folder; or several models.")],
    out: Annotated[
        Path, typer.Option("--output", "--out", "-o", help="The model's folder to write.")
    ],
    newest: Annotated[int, typer.Option(min=1, help="Of one run: how many checkpoints.")] = 5,
) -> None:
    """Average the weights of a run's newest checkpoints (training.keep says how many there are), or
    of several models that were trained on from the same one.
    """
    from sightline.runtime.model_folder import find_model as find
    from sightline.training.merging import average_checkpoints, average_models

    if len(models) == 1:
        taken = average_checkpoints(models[0], out, newest)
    else:
        taken = average_models([find(model) for model in models], out, note)
    echo(f"{out}: the mean of {', '.join(str(path) for path in taken)}")
