"""`sightline answer`: a story and a question in, the answer out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sightline.errors import UserError
from sightline.tasks.command_line import (
    Device,
    Model,
    NBest,
    Output,
    Quiet,
    echo,
    echo_json,
    standard_input,
    writing_to,
)


def answer(
    question: Annotated[str, typer.Argument(help="The question.")],
    story: Annotated[
        Path | None, typer.Option(help="A text file with a fact a line; -: standard input.")
    ] = None,
    fact: Annotated[list[str] | None, typer.Option(help="A fact; may be repeated.")] = None,
    model: Model = "",
    n_best: NBest = 1,
    facts: Annotated[bool, typer.Option(help="Also print the fact of each hop.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    figure: Annotated[Path | None, typer.Option(help="A file to draw the hops in.")] = None,
    output: Output = None,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Answer a question about a story, and show which facts it used."""
    from sightline.figures.facts import draw_facts
    from sightline.media.text import decode, read_lines
    from sightline.tasks import load_for
    from sightline.tasks.answer.parts import used_facts

    if not model:
        raise UserError("name a model: --model RUN")
    lines = list(fact or [])
    if story is not None and str(story) == "-":
        lines += decode(standard_input().read(), "standard input").splitlines()
    elif story is not None:
        lines += read_lines(story)
    loaded = load_for(model, "answer", device=device)
    found = loaded.describe("\n".join([*lines, question]), n_best=n_best)
    with writing_to(output):
        if as_json:
            echo_json({"question": question, **found.to_json()})
        else:
            for one in (found, *found.alternatives):
                echo(one.text if n_best == 1 else f"{one.text}\t{one.score:.4f}")
            for hop, (text, weight) in enumerate(used_facts(found) if facts else (), start=1):
                echo(f"  hop {hop}: {weight:.0%} {text}")
    if figure is not None:
        draw_facts(found, figure, question)
