"""`sightline export`: a trained model as a folder that runs without PyTorch."""

from pathlib import Path
from typing import Annotated

import typer


def export(
    model: Annotated[str, typer.Argument(help="A run's folder or a checkpoint's.")],
    out: Annotated[Path, typer.Argument(help="The folder to write; an export there is replaced.")],
    int8: Annotated[
        bool, typer.Option("--int8", help="Weights in 8 bits: half the size; needs --check.")
    ] = False,
    check: Annotated[
        Path | None,
        typer.Option(help="A manifest or a text: compare with the original on it, and refuse."),
    ] = None,
) -> None:
    """Write a model as ONNX graphs, to be described, translated or sampled with on any machine."""
    from sightline.export import export as write

    folder = write(model, out, "int8" if int8 else "int16")
    size = sum(path.stat().st_size for path in folder.iterdir())
    typer.echo(f"wrote {folder} ({size / 1e6:.1f} MB)")
