"""`sightline classify`: the class of a sentence, and the words that it looked at."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sightline.errors import DataError, UserError
from sightline.tasks.command_line import (
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
    from sightline.runtime.describer import Describer
    from sightline.types import Description

SHOWN = 3  # words that are printed with --words


def classify(
    texts: Annotated[
        list[str] | None, typer.Argument(help="Sentences; none: the lines of --input.")
    ] = None,
    model: Models = None,
    files: Files = None,
    n_best: NBest = 1,
    words: Annotated[bool, typer.Option(help="Also print the words looked at most.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
    figure: Annotated[Path | None, typer.Option(help="A folder to draw attention in.")] = None,
    output: Output = None,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Tell the class of each sentence and how sure it is; empty lines stay empty."""

    if bool(texts) == bool(files):
        raise DataError("give sentences, or files of them with --input")
    classifier = load_classifiers(model or [], device)
    lines = texts or lines_of(files or [])
    described = classifier.describe_each(lines, n_best=n_best)
    with writing_to(output):
        for number, (line, found) in enumerate(zip(lines, described, strict=True), start=1):
            if as_json:
                echo_json({"line": number, "source": line, **found.to_json()})
            else:
                echo(_as_text(found, words))
            if figure is not None and found.attention is not None:
                found.figure(figure / f"{number}.png")


def load_classifiers(models: list[str], device: str = "auto") -> Describer:
    """The models together."""
    from sightline.tasks import load_for
    from sightline.tasks.classify.parts import words_of

    if not models:
        raise UserError("name a model: --model RUN; repeat it for an ensemble")
    first, *others = [load_for(name, "classify", device=device) for name in models]
    for name, other in zip(models[1:], others, strict=True):
        if words_of(first) != words_of(other) or first.codec.vocab != other.codec.vocab:
            raise UserError(
                f"{name} has other words or classes than {models[0]}; an ensemble needs models "
                "that were trained on the same data"
            )
    return first.ensemble(*others)


def _as_text(found: Description, words: bool) -> str:
    every = [found, *found.alternatives] if found.tokens else []
    parts = [f"{each.text} {math.exp(each.score):.3f}" for each in every]
    if words and found.attention is not None and found.layout is not None:
        order = found.attention[0].argsort()[::-1][:SHOWN]
        parts.append(" ".join(found.layout.labels[i] for i in order))
    return "\t".join(parts)
