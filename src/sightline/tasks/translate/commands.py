"""`sightline translate` and `sightline align`: sentences, and which words belong together."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.errors import DataError, UserError
from sightline.tasks.command_line import Device, echo, echo_json, standard_input

if TYPE_CHECKING:
    from sightline.runtime.describer import Describer
    from sightline.tasks.translate.alignments import WordAlignment
    from sightline.types import Description

BATCH = 512  # lines translated together, sorted by length among themselves
PAIRS = 1024  # pairs aligned together


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
    beam: Annotated[int | None, typer.Option(min=1, help="Hypotheses kept at a step.")] = None,
    n_best: Annotated[int, typer.Option(min=1, help="Translations per sentence.")] = 1,
    align: Annotated[bool, typer.Option(help="Also print which words came from which.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per line.")] = False,
    lm: Annotated[str | None, typer.Option(help="A language model of the target to add.")] = None,
    lm_weight: Annotated[float, typer.Option(min=0, help="How much it counts.")] = 0.2,
    shortlist: Annotated[
        int, typer.Option(min=0, help="Only so many common tokens, and the lexicon's; 0: all.")
    ] = 0,
    figure: Annotated[Path | None, typer.Option(help="A folder to draw alignments in.")] = None,
    device: Device = "auto",
) -> None:
    """Translate sentences, line by line; empty lines stay empty."""
    from sightline.tasks.translate.alignments import alignment_of

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
        described = translator.describe(block, beam=beam, n_best=n_best, shortlist=shortlist)
        for source, description in zip(block, described, strict=True):
            number += 1
            if align and description.tokens and description.attention is None:
                echo(f"note: line {number} is too long to align", err=True)
            if as_json:
                echo_json(_as_json(translator, source, description, number, align))
            else:
                echo(_as_text(translator, description, number, align, n_best > 1))
            if figure is not None and description.attention is not None:
                alignment_of(translator, description).figure(figure / f"{number}.png")


def load_translators(
    models: list[str], device: str, lm: str | None = None, lm_weight: float = 0.0
) -> Describer:
    """The models together, with a language model where one is named."""
    from sightline.tasks import load_for
    from sightline.tasks.translate.parts import ensemble, fused

    if not models:
        raise UserError("name a model: --model en-de, or a run; repeat it for an ensemble")
    translator = ensemble(*(load_for(name, "translate", device=device) for name in models))
    if lm is not None:
        translator = fused(translator, load_for(lm, "language_model", device=device), lm_weight)
    return translator


def _arriving() -> Iterator[list[str]]:
    """The lines of standard input, as many at a time as have arrived.

    So a file goes through in large batches, and a program that waits for each answer before it
    writes the next line gets it.
    """
    from sightline.media.text import decode

    lines: queue.Queue[bytes | None] = queue.Queue(maxsize=BATCH)

    def read() -> None:
        for line in arriving:
            lines.put(line)
        lines.put(None)

    arriving = standard_input()
    threading.Thread(target=read, daemon=True).start()
    block: list[str] = []
    for number, raw in enumerate(iter(lines.get, None), start=1):
        try:
            block.append(decode(raw, "standard input", number).rstrip("\r\n"))
        except DataError:
            yield block  # the lines before the bad one are still answered
            raise
        if len(block) == BATCH or lines.empty():
            yield block
            block = []
    if block:
        yield block


def _as_text(
    translator: Describer, description: Description, number: int, align: bool, ranked: bool
) -> str:
    """The translation; with n-best lists `NUMBER ||| TEXT ||| SCORE`; then the alignment."""
    from sightline.tasks.translate.alignments import alignment_of

    rows = []
    for each in (description, *description.alternatives):
        parts = [str(number), each.text, f"{each.score:.4f}"] if ranked else [each.text]
        if align:
            parts.append(alignment_of(translator, each).pharaoh())
        rows.append(" ||| ".join(parts))
    return "\n".join(rows)


def _as_json(
    translator: Describer, source: str, description: Description, number: int, align: bool
) -> dict[str, Any]:
    from sightline.tasks.translate.alignments import alignment_of

    content = {"line": number, "source": source, **description.to_json()}
    if align:
        content["alignment"] = alignment_of(translator, description).to_json()
    return content


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
        typer.Option(help="Hand-made alignments (1-1 sure, 2p3 possible): print the error rate."),
    ] = None,
    save_lexicon: Annotated[bool, typer.Option(help="Keep word pairs with the model.")] = False,
    device: Device = "auto",
) -> None:
    """Force known pairs through a model; write one line of links per pair."""
    from sightline.media.text import read_lines
    from sightline.tasks.translate import alignments

    if format not in ("pharaoh", "json"):
        raise UserError(f"--format is pharaoh or json, not {format!r}")
    sources, targets = read_lines(source), read_lines(target)
    if len(sources) != len(targets):
        raise DataError(
            f"{source} has {len(sources):,} lines and {target} has {len(targets):,}; line by line "
            "they have to translate each other"
        )
    translator = load_translators(model, device)
    kept = []
    for at in range(0, len(sources), PAIRS):
        texts = sources[at : at + PAIRS], targets[at : at + PAIRS]
        for number, links in enumerate(alignments.align(translator, *texts), start=at):
            if not links.target and sources[number].strip() and targets[number].strip():
                echo(f"note: line {number + 1} is too long to align", err=True)
            if format == "json":
                content = {"line": number + 1, **links.to_json(min_confidence)}
                echo_json(content)
            else:
                echo(links.pharaoh(min_confidence))
            kept += [links] if gold else []
    if gold:
        _error_rate(gold, kept, min_confidence)
    if save_lexicon:
        from sightline.runtime.model_folder import find_model

        lexicon = alignments.learn_lexicon(translator, zip(sources, targets, strict=True))
        path = alignments.save_lexicon(find_model(model[0]), lexicon)
        echo(f"wrote {path}: {len(lexicon):,} words", err=True)


def _error_rate(path: Path, kept: list[WordAlignment], least: float) -> None:
    from sightline.media.text import read_lines
    from sightline.metrics.alignment import read_alignment
    from sightline.tasks.translate.alignments import error_rates

    lines = read_lines(path)
    if len(lines) != len(kept):
        raise DataError(f"{path} has {len(lines):,} lines for {len(kept):,} pairs")
    gold = [read_alignment(line, 1, f"{path}:{n}") for n, line in enumerate(lines, start=1)]
    ours, straight = error_rates(kept, gold, least)
    echo(f"alignment error rate {ours:.4f} (the diagonal: {straight:.4f})", err=True)
