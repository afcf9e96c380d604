"""`sightline export`: a trained model as a folder that runs without PyTorch."""

from pathlib import Path
from typing import Annotated

import typer

from sightline.tasks.command_line import echo


def export(
    model: Annotated[str, typer.Argument(help="A run's folder or a checkpoint's.")],
    out: Annotated[Path, typer.Argument(help="The folder to write; an export there is replaced.")],
    int8: Annotated[
        bool,
        typer.Option(
            "--int8", help="The decoder in 8 bits: half its size and time; needs --check."
        ),
    ] = False,
    check: Annotated[
        Path | None,
        typer.Option(help="A manifest (or text): refuse an export that is not as good on it."),
    ] = None,
    split: Annotated[str, typer.Option(help="Which part of the manifest.")] = "test",
) -> None:
    """Write a model as ONNX graphs that describe, translate or sample without PyTorch."""
    from sightline.export.write import Check
    from sightline.export.write import export as write

    held_out = None if check is None else Check(check, split)
    found = write(model, out, "int8" if int8 else "int16", held_out)
    size = sum(path.stat().st_size for path in out.iterdir())
    echo(f"wrote {out} ({size / 1e6:.1f} MB)")
    if found is not None:
        echo(str(found))
