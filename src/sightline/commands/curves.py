"""`sightline curves`: training and held-out curves of runs as a picture."""

from pathlib import Path
from typing import Annotated

import typer

from sightline.tasks.command_line import echo


def curves(
    runs: Annotated[list[Path], typer.Argument(help="Folders of runs.")],
    out: Annotated[
        Path, typer.Option("--output", "--out", "-o", help="The picture: .png, .svg or .pdf.")
    ] = Path("curves.png"),
    metric: Annotated[str, typer.Option("--metric", "-m", help="Which metric of the log.")] = (
        "loss"
    ),
    by: Annotated[str, typer.Option(help="Along: minutes, step or epoch.")] = "minutes",
) -> None:
    """Draw the learning curves of one or more runs."""
    from sightline.figures import draw_curves

    draw_curves(runs, out, metric, by)
    echo(f"wrote {out}", err=True)
