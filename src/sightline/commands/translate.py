"""`sightline translate`: sentences from arguments, files or a pipe into another language."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sightline.commands import Device

if TYPE_CHECKING:
    from sightline.tasks.translate import Translator
    from sightline.types import Description

BATCH = 512  # lines translated together, sorted by length among themselves


def translate(
    texts: Annotated[
        list[str] | None,
        typer.Argument(help="Sentences; none: the lines of --input or of standard input."),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option("--model", "-m", help="A run, a checkpoint or a zoo name; several: together."),
    ] = None,
    files: Annotated[
        list[Path] | None,
        typer.Option("--input", "-i", help="A text file (.gz, .xz too), one sentence a line."),
    ] = None,
    beam: Annotated[
        int | None, typer.Option(min=1, help="Hypotheses searched side by side.")
    ] = None,
    n_best: Annotated[int, typer.Option(min=1, help="Translations per sentence.")] = 1,
    align: Annotated[bool, typer.Option(help="Also print which words came from which.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
    lm: Annotated[
        str | None, typer.Option(help="A language model of the target language to add.")
    ] = None,
    lm_weight: Annotated[float, typer.Option(min=0, help="How much it counts.")] = 0.2,
    shortlist: Annotated[
        int, typer.Option(min=0, help="Only so many common tokens, and the lexicon's; 0: all.")
    ] = 0,
    figure: Annotated[
        Path | None, typer.Option(help="Draw the alignment matrices, as PNG, in this folder.")
    ] = None,
    device: Device = "auto",
) -> None:
    """Translate sentences, line by line; empty lines stay empty."""
    from sightline.errors import DataError

    if texts and files:
        raise DataError("give sentences or --input, not both")
    translator = load_translators(model or [], device, lm, lm_weight)
    blocks: Iterable[list[str]]
    if texts or files:
        from sightline.media.text import read_lines

        lines = texts or [line for path in files or [] for line in read_lines(path)]
        blocks = (lines[at : at + BATCH] for at in range(0, len(lines), BATCH))
    else:
        blocks = _arriving()
    number = 0
    for block in blocks:
        found = translator.translate(block, beam=beam, n_best=n_best, shortlist=shortlist)
        for source, description in zip(block, found, strict=True):
            number += 1
            if align and description.tokens and description.attention is None:
                typer.echo(f"note: line {number} is too long to align", err=True)
            if as_json:
                typer.echo(_as_json(translator, source, description, number, align))
            else:
                typer.echo(_as_text(translator, description, number, align, n_best > 1))
            if figure is not None and description.attention is not None:
                translator.alignment(description).figure(figure / f"{number}.png")


def load_translators(
    models: list[str], device: str, lm: str | None = None, lm_weight: float = 0.0
) -> Translator:
    """The models together, with a language model where one is named."""
    from sightline.errors import UserError
    from sightline.tasks import load_for

    if not models:
        raise UserError("name a model: --model en-de, or a run; repeat it for an ensemble")
    first, *others = (load_for(name, "translate", device=device) for name in models)
    translator: Translator = first.together(*others) if others else first
    if lm is not None:
        translator = translator.fused(load_for(lm, "language_model", device=device), lm_weight)
    return translator


def _arriving() -> Iterator[list[str]]:
    """The lines of standard input, as many at a time as have arrived.

    So a file goes through in large batches, and a program that waits for each answer before it
    writes the next line gets it.
    """
    import queue
    import sys
    import threading

    from sightline.errors import DataError
    from sightline.media.text import decode

    lines: queue.Queue[bytes | None] = queue.Queue(maxsize=BATCH)

    def read() -> None:
        for line in sys.stdin.buffer:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    raw = lines.get()
    number = 0
    while raw is not None:
        block: list[str] = []
        while raw is not None:
            number += 1
            try:
                block.append(decode(raw, "standard input", number).rstrip("\r\n"))
            except DataError:
                yield block  # the lines before the bad one are still answered
                raise
            if len(block) == BATCH or lines.empty():
                break
            raw = lines.get()
        yield block
        raw = None if raw is None else lines.get()


def _as_text(
    translator: Translator, description: Description, number: int, align: bool, ranked: bool
) -> str:
    """The translation; with n-best lists `NUMBER ||| TEXT ||| SCORE`; then the alignment."""
    rows = []
    for found in (description, *description.alternatives):
        parts = [found.text]
        if ranked:
            parts = [str(number), found.text, f"{found.score:.4f}"]
        if align:
            parts.append(translator.alignment(found).pharaoh())
        rows.append(" ||| ".join(parts))
    return "\n".join(rows)


def _as_json(
    translator: Translator, source: str, description: Description, number: int, align: bool
) -> str:
    import json

    content = {"line": number, "source": source, **description.to_json()}
    if align:
        content["alignment"] = translator.alignment(description).to_json()
    return json.dumps(content, ensure_ascii=False)
