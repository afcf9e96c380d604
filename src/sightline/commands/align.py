"""`sightline align`: which words of known translations belong together."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from sightline.commands import Device

if TYPE_CHECKING:
    from sightline.tasks.alignments import WordAlignment

BATCH = 1024  # pairs aligned together, sorted by length among themselves


def align(
    source: Annotated[Path, typer.Argument(help="A text file, one sentence a line.")],
    target: Annotated[Path, typer.Argument(help="Its translation, line by line.")],
    model: Annotated[
        list[str], typer.Option("--model", "-m", help="A translation model; several: together.")
    ],
    format: Annotated[
        str, typer.Option(help="pharaoh: 0-0 1-2 …; json: words, links and confidences.")
    ] = "pharaoh",
    min_confidence: Annotated[
        float, typer.Option(min=0, max=1, help="Leave out links of less attention than this.")
    ] = 0.0,
    gold: Annotated[
        Path | None,
        typer.Option(help="Hand-made alignments (1-1 sure, 2p3 possible): tell the error rate."),
    ] = None,
    save_lexicon: Annotated[
        bool,
        typer.Option(help="Keep the word pairs in the model's folder, to replace unknown words."),
    ] = False,
    device: Device = "auto",
) -> None:
    """Force known pairs through a model; write one line of links per pair."""
    import json

    from sightline.commands.translate import load_translators
    from sightline.errors import DataError, UserError
    from sightline.media.text import read_lines

    if format not in ("pharaoh", "json"):
        raise UserError(f"--format is pharaoh or json, not {format!r}")
    sources, targets = read_lines(source), read_lines(target)
    if len(sources) != len(targets):
        raise DataError(
            f"{source} has {len(sources):,} lines and {target} has {len(targets):,}; line by line "
            "they have to translate each other"
        )
    translator = load_translators(model, device)
    alignments = []
    for at in range(0, len(sources), BATCH):
        texts = sources[at : at + BATCH], targets[at : at + BATCH]
        for number, found in enumerate(translator.align(*texts), start=at):
            if not found.target and sources[number].strip() and targets[number].strip():
                typer.echo(f"note: line {number + 1} is too long to align", err=True)
            if format == "json":
                content = {"line": number + 1, **found.to_json(min_confidence)}
                typer.echo(json.dumps(content, ensure_ascii=False))
            else:
                typer.echo(found.pharaoh(min_confidence))
            alignments += [found] if gold else []
    if gold:
        _report(gold, alignments, min_confidence)
    if save_lexicon:
        from sightline import zoo
        from sightline.tasks.alignments import learn_lexicon
        from sightline.tasks.alignments import save_lexicon as save

        lexicon = learn_lexicon(translator, zip(sources, targets, strict=True))
        path = save(zoo.find(model[0]), lexicon)
        typer.echo(f"wrote {path}: {len(lexicon):,} words", err=True)


def _report(path: Path, found: list[WordAlignment], least: float) -> None:
    from sightline.errors import DataError
    from sightline.media.text import read_lines
    from sightline.metrics.alignment import read_alignment
    from sightline.tasks.alignments import error_rates

    lines = read_lines(path)
    if len(lines) != len(found):
        raise DataError(f"{path} has {len(lines):,} lines for {len(found):,} pairs")
    gold = [read_alignment(line, 1, f"{path}:{n}") for n, line in enumerate(lines, start=1)]
    ours, straight = error_rates(found, gold, least)
    typer.echo(f"alignment error rate {ours:.4f} (the diagonal: {straight:.4f})", err=True)
