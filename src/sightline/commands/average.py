"""`sightline average`: the mean of a run's newest checkpoints, as one model."""

from pathlib import Path
from typing import Annotated

import typer


def average(
    run: Annotated[Path, typer.Argument(help="A run's folder.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The model's folder to write.")],
    newest: Annotated[int, typer.Option(min=1, help="How many checkpoints.")] = 5,
) -> None:
    """Average the weights of a run's newest checkpoints (training.keep says how many there are)."""
    from sightline.errors import UserError

    try:
        from sightline.training.merging import average_checkpoints
    except ModuleNotFoundError as error:
        raise UserError(f"averaging needs {error.name}: pip install 'sightline[train]'") from None
    taken = average_checkpoints(run, out, newest)
    typer.echo(f"{out}: the mean of {', '.join(path.name for path in taken)}")
