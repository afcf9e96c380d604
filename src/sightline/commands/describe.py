"""`sightline describe`: descriptions of anything that a model reads, and where it looked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.tasks.command_line import (
    AsCsv,
    AsJson,
    Beam,
    Device,
    Models,
    NBest,
    NoAttention,
    Output,
    Quiet,
    counted_nouns,
    echo,
    echo_csv,
    echo_json,
    note,
    standard_input,
    writing_to,
)

if TYPE_CHECKING:
    from sightline.runtime.describer import Describer
    from sightline.types import Description

BATCH = 16  # files read and described together
COLUMNS = ("file", "text", "score", "confidence", "error")


def describe(
    sources: Annotated[
        list[str],
        typer.Argument(
            help="Files, folders, patterns, - for standard input; or texts, as the model reads."
        ),
    ],
    model: Models = None,
    beam: Beam = None,
    n_best: NBest = 1,
    prefix: Annotated[str, typer.Option(help="Words that the description begins with.")] = "",
    groups: Annotated[
        int, typer.Option(min=1, help="Diverse beam search: the beam in so many groups.")
    ] = 1,
    repeats: Annotated[
        bool, typer.Option("--repeats", help="Allow a content word to be written twice.")
    ] = False,
    tags: Annotated[
        bool, typer.Option("--tags/--no-tags", help="Use the words that a classifier recognised.")
    ] = True,
    temperature: Annotated[
        float | None,
        typer.Option(min=0, help="Draw the words instead of searching; 1: as likely as they are."),
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of --temperature.")] = 0,
    focus: Annotated[
        str | None,
        typer.Option(metavar="X,Y,W,H", help="Look here: a region, as fractions of the picture."),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(help="Draw where it looked, one file per source, in this folder."),
    ] = None,
    figure_format: Annotated[
        str, typer.Option(help="png, jpg or svg: a panel per word; gif or webp: animated.")
    ] = "png",
    sheet: Annotated[
        Path | None,
        typer.Option(help="Draw all pictures, each with its caption and one word underlined."),
    ] = None,
    every: Annotated[
        float | None,
        typer.Option(min=0.1, help="Clips: a description of every so many seconds, with times."),
    ] = None,
    shots: Annotated[
        bool, typer.Option("--shots", help="Clips: a description of every shot, with times.")
    ] = False,
    subtitles: Annotated[
        str | None, typer.Option(help="With --every or --shots: srt or vtt.")
    ] = None,
    output: Output = None,
    as_json: AsJson = False,
    as_csv: AsCsv = False,
    no_attention: NoAttention = False,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Describe pictures (or whatever the model reads) in words; one bad file stops no other."""
    import sys

    from sightline.data.progress import counted
    from sightline.errors import UserError
    from sightline.media.focus import parse_focus
    from sightline.tasks import load_for

    if as_json and as_csv:
        raise UserError("give --json or --csv, not both")
    options: dict[str, Any] = {"beam": beam, "n_best": n_best, "prefix": prefix, "groups": groups}
    options |= {"focus": None if focus is None else parse_focus(focus)}
    options |= {"words_once": False if repeats else None, "tags": tags}
    options |= {"temperature": temperature, "seed": seed}
    describer = _together([load_for(name, device=device) for name in model or ["default"]])
    failed = 0
    looked: list[tuple[Any, Description, None]] = []
    if every is not None or shots or subtitles is not None:
        with writing_to(output):
            _running(describer, sources, options, every, shots, "json" if as_json else subtitles)
        return
    names = list(_expand(sources)) if describer.reader.takes == "file" else sources
    figures = _figure_names(names, describer)
    outcomes: Iterator[Any] = _outcomes(describer, names, options)
    # on a terminal the descriptions themselves show how far it is
    if len(names) > BATCH and (output is not None or not sys.stdout.isatty()):
        outcomes = counted(outcomes, len(names), "describing")
    with writing_to(output):
        if as_csv:
            echo_csv(COLUMNS)
        for (name, source, result), drawn in zip(outcomes, figures, strict=True):
            failed += isinstance(result, str)
            if as_csv:
                _row(name, result)
            else:
                _show(name, result, as_json, len(names) == 1, not no_attention)
            if figure is not None and not isinstance(result, str):
                path = figure / f"{drawn}.{figure_format}"
                result.figure(path, source)
                note(f"wrote {path}")
            if sheet is not None and not isinstance(result, str):
                looked.append((source, result, None))
    if sheet is not None and looked:
        from sightline.figures import draw_underlined

        draw_underlined(looked, sheet)
        note(f"wrote {sheet}")
    if len(names) > 1:
        note(f"{len(names) - failed:,} described" + (f", {failed:,} failed" if failed else ""))
    if failed:
        raise typer.Exit(2)


def _together(models: list[Describer]) -> Describer:
    """One model, or an ensemble of several that read the same and write the same words."""
    from sightline.errors import UserError

    first, *others = models
    for number, other in enumerate(others, start=2):
        alike = other.task == first.task and other.codec.vocab == first.codec.vocab
        if first.reader.takes == "file":
            alike = alike and other.reader == first.reader
        if not alike:
            raise UserError(
                f"model {number} reads otherwise than the first, or writes other words; an "
                "ensemble needs models of the same recipe's encoder and data"
            )
    return first.ensemble(*others)


def _running(
    describer: Describer,
    sources: list[str],
    options: dict[str, Any],
    every: float | None,
    shots: bool,
    form: str | None,
) -> None:
    """A line for each stretch of one film."""
    import math

    from sightline.errors import UserError
    from sightline.runtime.describer import Options
    from sightline.tasks.running import film_time, passages, write_passages

    if form not in (None, "json", "srt", "vtt"):
        raise UserError(f"--subtitles must be srt or vtt, not {form!r}")
    if (every is None) == (not shots):
        raise UserError("a running description takes one of --every SECONDS and --shots")
    if len(sources) != 1 or options.pop("focus") is not None:
        raise UserError("a running description is of one film, and has no --focus")
    source = standard_input().read() if sources[0] == "-" else sources[0]
    found = passages(
        describer, source, every=every or math.inf, shots=shots, ask=Options(**options),
        progress=film_time(sources[0]),
    )  # fmt: skip
    write_passages(found, sources[0], form or "text")  # type: ignore[arg-type]  # checked above


def _expand(sources: list[str]) -> Iterator[str]:
    """The files that are meant: folders give the pictures in them, patterns what they match."""
    import glob

    from sightline.data.features import others_in, pictures_in
    from sightline.errors import DataError

    for source in sources:
        path = Path(source)
        if path.is_dir():
            others = others_in(path)
            if others:
                note(
                    f"{source}: {counted_nouns(len(others), 'file')} not taken for pictures, "
                    f"such as {others[0]}"
                )
            yield from (str(file) for file in pictures_in(path).values())
        elif glob.has_magic(source) and not path.exists():
            matches = sorted(glob.glob(source, recursive=True))
            if not matches:
                raise DataError(f"no file matches {source}")
            yield from matches
        else:
            yield source  # if it does not exist, its own line says so


def _figure_names(names: list[str], describer: Describer) -> list[str]:
    """A name for each source's figure, without its ending; none twice, whatever their letters."""
    taken: set[str] = set()
    found = []
    for name in names:
        stem = _stem(name, describer)
        free = next(
            each
            for each in (stem, *(f"{stem}-{number}" for number in range(2, len(names) + 2)))
            if each.casefold() not in taken
        )
        taken.add(free.casefold())
        found.append(free)
    return found


def _outcomes(
    describer: Describer, names: list[str], options: dict[str, Any]
) -> Iterator[tuple[str, Any, Description | str]]:
    """For each source in order: its name, what was read, and its description or what was wrong."""
    from sightline.errors import DataError
    from sightline.runtime.describer import Options

    reading = {"focus": options["focus"]} if options["focus"] is not None else {}
    ask = Options(**{name: value for name, value in options.items() if name != "focus"})
    for at in range(0, len(names), BATCH):
        some = names[at : at + BATCH]
        inputs: dict[int, Any] = {}
        sources: dict[int, Any] = {}
        errors: dict[int, str] = {}
        for number, name in enumerate(some):
            sources[number] = standard_input().read() if name == "-" else name
            try:
                inputs[number] = describer.reader.read(sources[number], **reading)
            except DataError as error:
                errors[number] = str(error).replace("the picture's bytes", "standard input")
        described = dict(
            zip(inputs, describer.describe_inputs(list(inputs.values()), ask), strict=True)
        )
        for number, name in enumerate(some):
            yield name, sources[number], described.get(number) or errors[number]


def _stem(name: str, describer: Describer) -> str:
    if name == "-":
        return "stdin"
    return Path(name).stem if describer.reader.takes == "file" else name[:40].replace("/", "_")


def _show(
    name: str, result: Description | str, as_json: bool, alone: bool, attention: bool
) -> None:
    if as_json:
        content = {"error": result} if isinstance(result, str) else result.to_json(attention)
        echo_json({"file": name, **content})
    elif isinstance(result, str):
        echo(f"sightline: {result}", err=True)
    else:
        start = "" if alone else f"{name}: "
        echo(start + result.text)
        for other in result.alternatives:
            echo(" " * len(start) + f"{other.text}  ({other.score:.2f})")


def _row(name: str, result: Description | str) -> None:
    """A row for each description of a source, or for what was wrong with it."""
    if isinstance(result, str):
        echo_csv([name, None, None, None, result])
        return
    for one in (result, *result.alternatives):
        echo_csv([name, one.text, f"{one.score:.4f}", one.confidence, None])
