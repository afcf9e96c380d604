"""`sightline parse`: sentences in, their trees out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.errors import DataError, UserError
from sightline.tasks.command_line import (
    Beam,
    Device,
    Files,
    Models,
    NBest,
    Output,
    Quiet,
    echo,
    echo_json,
    lines_of,
    writing_to,
)

if TYPE_CHECKING:
    from sightline.types import Description

FORMATS = ("brackets", "json", "linear", "pretty")


def parse(
    texts: Annotated[
        list[str] | None, typer.Argument(help="Sentences; none: the lines of --input.")
    ] = None,
    model: Models = None,
    files: Files = None,
    beam: Beam = None,
    n_best: NBest = 1,
    format: Annotated[
        str, typer.Option(help="brackets: (S (NP …)); linear: (S (NP NNP )NP; pretty; json.")
    ] = "brackets",
    figure: Annotated[Path | None, typer.Option(help="A folder to draw the trees in.")] = None,
    output: Output = None,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Write each sentence's tree, line by line; an empty line stays empty.

    Words are cut as the Penn Treebank cuts them, unless punctuation stands alone already.
    """
    from sightline.figures.phrases import draw_tree
    from sightline.tasks import load_for
    from sightline.tasks.parse.parts import ensemble, tree_of

    if bool(texts) == bool(files):
        raise DataError("give sentences, or --input FILE")
    if format not in FORMATS:
        raise UserError(f"--format is one of {', '.join(FORMATS)}, not {format!r}")
    if not model:
        raise UserError("name a model: --model penn, or a run; repeat it for an ensemble")
    parser = ensemble(*(load_for(name, "parse", device=device) for name in model))
    lines = texts or lines_of(files or [])
    each = parser.describe_each(lines, beam=beam, n_best=n_best)
    with writing_to(output):
        for number, (source, description) in enumerate(zip(lines, each, strict=True), start=1):
            if format == "json":
                trees = [tree_of(one) for one in (description, *description.alternatives)]
                content = {"line": number, "source": source, **description.to_json()}
                echo_json(content | {"trees": [tree.to_json() if tree else None for tree in trees]})
            else:
                for one in (description, *description.alternatives):
                    echo(_as_text(one, format))
            tree = tree_of(description)
            if figure is not None and tree is not None:
                draw_tree(tree, figure / f"{number}.png", description.attention)


def _as_text(description: Description, format: str) -> str:
    from sightline.tasks.parse.parts import tree_of

    if format == "linear":
        return " ".join(description.tokens)
    tree: Any = tree_of(description)
    if format == "pretty" and tree is not None:
        return str(tree.pretty())
    return description.text
