"""`sightline point`: numbers in order, hulls, triangulations and tours, by pointing."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sightline.errors import DataError
from sightline.tasks.command_line import (
    Beam,
    Device,
    Files,
    Model,
    Output,
    Quiet,
    echo,
    echo_json,
    lines_of,
    writing_to,
)


def point(
    texts: Annotated[
        list[str] | None,
        typer.Argument(help='Points, such as "0,0 2,1 1,3"; none: --input or --random.'),
    ] = None,
    model: Model = "",
    files: Files = None,
    random: Annotated[int, typer.Option(min=0, help="So many points drawn at random.")] = 0,
    seed: Annotated[int, typer.Option(min=0, help="What is drawn.")] = 0,
    beam: Beam = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
    figure: Annotated[
        Path | None, typer.Option(help="A folder to draw the points and what was found in.")
    ] = None,
    figure_format: Annotated[str, typer.Option(help="png, jpg, svg or pdf; gif: moving.")] = "png",
    output: Output = None,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Print, for each set of points, the numbers (from 0) of those that were pointed at."""
    from sightline.errors import UserError
    from sightline.tasks import load_for
    from sightline.tasks.point.parts import points_of
    from sightline.tasks.point.problems import DIMENSIONS, draw

    if bool(texts) + bool(files) + bool(random) != 1:
        raise DataError("give points, files of them with --input, or --random N")
    if not model:
        raise UserError("name a model: --model RUN")
    describer = load_for(model, "point", device=device)
    problem = describer.recipe.problem
    if random:
        sources = [draw(problem, 1, random, seed)[0]]
    else:
        lines = texts or lines_of(files or [])
        sources = [points_of(line, DIMENSIONS[problem]) for line in lines if line.strip()]
    described = describer.describe_each(sources, beam=beam)
    with writing_to(output):
        for number, (source, found) in enumerate(zip(sources, described, strict=True), start=1):
            if as_json:
                echo_json({"line": number, "points": source.tolist(), **found.to_json()})
            else:
                echo(found.text)
            if figure is not None:
                found.figure(figure / f"{number}.{figure_format}")
