"""`sightline translate` and `sightline align`: sentences, and which words belong together."""

from __future__ import annotations

import queue
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.data.progress import counted
from sightline.errors import DataError, UserError
from sightline.tasks.command_line import (
    AsCsv,
    AsJson,
    Beam,
    Device,
    Files,
    Models,
    NBest,
    NoAttention,
    Output,
    Quiet,
    apart,
    echo,
    echo_csv,
    echo_json,
    lines_of,
    note,
    standard_input,
    writing_to,
)

if TYPE_CHECKING:
    from sightline.runtime.describer import Describer
    from sightline.tasks.translate.alignments import WordAlignment
    from sightline.types import Description

BATCH = 512  # lines translated together, sorted by length among themselves
COLUMNS = ("line", "source", "text", "score", "confidence")
STDIN = Path("-")
UNSURE = 0.1  # a confidence below which a line is pointed out: docs/lab/confidence.md
PAIRS = 1024  # pairs aligned together


def translate(
    texts: Annotated[
        list[str] | None,
        typer.Argument(help="Sentences; none: the lines of --input or of standard input."),
    ] = None,
    model: Models = None,
    files: Files = None,
    beam: Beam = None,
    n_best: NBest = 1,
    align: Annotated[bool, typer.Option(help="Also print which words came from which.")] = False,
    output: Output = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    no_attention: NoAttention = False,
    lm: Annotated[str | None, typer.Option(help="A language model of the target to add.")] = None,
    lm_weight: Annotated[float, typer.Option(min=0, help="How much it counts.")] = 0.2,
    shortlist: Annotated[
        int, typer.Option(min=0, help="Only so many common tokens, and the lexicon's; 0: all.")
    ] = 0,
    figure: Annotated[Path | None, typer.Option(help="A folder to draw alignments in.")] = None,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Translate sentences, line by line; empty lines stay empty."""
    from sightline.tasks.translate.alignments import alignment_of

    if texts and files:
        raise DataError("give sentences or --input, not both")
    if as_json and as_csv:
        raise UserError("give --json or --csv, not both")
    lines = None
    if texts or (files and files != [STDIN]):
        lines = texts or lines_of(files or [])
    translator = load_translators(model or [], device, lm, lm_weight)
    ask = {"beam": beam, "n_best": n_best, "shortlist": shortlist}
    number, unsure = 0, []
    with writing_to(output):
        if as_csv:
            echo_csv(COLUMNS)
        for source, description in _translated(translator, lines, ask, output is not None):
            number += 1
            if align and description.tokens and description.attention is None:
                note(f"note: line {number} is too long to align")
            if description.confidence is not None and description.confidence < UNSURE:
                unsure.append(number)
            if as_json:
                attention = not no_attention
                echo_json(_as_json(translator, source, description, number, align, attention))
            elif as_csv:
                for one in (description, *description.alternatives):
                    echo_csv([number, source, one.text, f"{one.score:.4f}", one.confidence])
            else:
                echo(_as_text(translator, description, number, align, n_best > 1))
            if figure is not None and description.attention is not None:
                alignment_of(translator, description).figure(figure / f"{number}.png")
    _warn(unsure, number)


def _warn(unsure: list[int], count: int) -> None:
    """Which lines are probably wrong: far from what the model was trained on."""
    if not unsure:
        return
    few = ", ".join(map(str, unsure[:5])) + (" …" if len(unsure) > 5 else "")
    one = len(unsure) == 1
    what = "this translation" if count == 1 else f"{len(unsure):,} of {count:,} lines"
    where = "" if count == 1 else f" (line{'' if one else 's'} {few})"
    why = "the text is unlike what the model was trained on"
    note(f"note: {what} {'is' if one else 'are'} probably wrong{where}: {why}")


def _translated(
    translator: Describer, lines: list[str] | None, ask: dict[str, Any], away: bool
) -> Iterator[tuple[str, Description]]:
    """Each line with its translation; None: those of standard input, as they arrive."""
    if lines is None:
        for block in _arriving():
            yield from zip(block, translator.describe(block, **ask), strict=True)
        return
    blocks = (lines[at : at + BATCH] for at in range(0, len(lines), BATCH))
    pairs = (
        pair
        for block in blocks
        for pair in zip(block, translator.describe(block, **ask), strict=True)
    )
    # on a terminal the translations themselves show how far it is
    shown = len(lines) > BATCH and (away or not sys.stdout.isatty())
    yield from counted(pairs, len(lines), "translating") if shown else pairs


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

    arriving = apart(standard_input())
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
    translator: Describer,
    source: str,
    description: Description,
    number: int,
    align: bool,
    attention: bool,
) -> dict[str, Any]:
    from sightline.tasks.translate.alignments import alignment_of

    content = {"line": number, "source": source, **description.to_json(attention)}
    if align:
        content["alignment"] = alignment_of(translator, description).to_json()
    return content


def align(
    source: Annotated[Path, typer.Argument(help="A text file, one sentence a line.")],
    target: Annotated[Path, typer.Argument(help="Its translation, line by line.")],
    model: Models = None,
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
    output: Output = None,
    device: Device = "auto",
    quiet: Quiet = False,
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
    translator = load_translators(model or [], device)
    kept = []
    with writing_to(output):
        for at in range(0, len(sources), PAIRS):
            texts = sources[at : at + PAIRS], targets[at : at + PAIRS]
            for number, links in enumerate(alignments.align(translator, *texts), start=at):
                if not links.target and sources[number].strip() and targets[number].strip():
                    note(f"note: line {number + 1} is too long to align")
                if format == "json":
                    echo_json({"line": number + 1, **links.to_json(min_confidence)})
                else:
                    echo(links.pharaoh(min_confidence))
                kept += [links] if gold else []
    if gold:
        _error_rate(gold, kept, min_confidence)
    if save_lexicon:
        from sightline.runtime.model_folder import find_model

        lexicon = alignments.learn_lexicon(translator, zip(sources, targets, strict=True))
        path = alignments.save_lexicon(find_model((model or [])[0]), lexicon)
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
