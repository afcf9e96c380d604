"""`sightline judge`: people judge captions on a local page; `sightline judgements`: the result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.tasks.command_line import (
    Output,
    counted_nouns,
    echo,
    echo_csv,
    echo_json,
    writing_to,
)

if TYPE_CHECKING:
    from sightline.data.manifest import Example
    from sightline.metrics.judgements import Judgement


def judge(
    captions: Annotated[
        list[str],
        typer.Argument(
            metavar="CAPTIONS…",
            help="A system's captions, a file or NAME=FILE, in any format that `sightline score` "
            "reads; several systems are judged together.",
        ),
    ],
    data: Annotated[
        Path, typer.Option(help="The manifest with the pictures and people's captions.")
    ],
    output: Annotated[
        Path,
        typer.Option("--output", "--out", "-o", help="Judgements, appended; resumed if it exists."),
    ] = Path("judgements.jsonl"),
    measures: Annotated[
        str,
        typer.Option(
            "--measures", "-m", help="m1: better than a person's? m2: a person's or a machine's?"
        ),
    ] = "m1,m2",
    pictures: Annotated[
        int | None, typer.Option("--pictures", "-n", min=1, help="Ask about so many; default: all.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Of the choice and the order.")] = 0,
    as_written: Annotated[
        bool,
        typer.Option(
            "--as-written", help="Leave capitals and punctuation, which may betray the machine."
        ),
    ] = False,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free port.")] = 8000,
) -> None:
    """Serve a page on which people judge captions blind; Ctrl-C ends it and prints M1 and M2."""
    from sightline.data.durable import locked
    from sightline.errors import UserError
    from sightline.metrics.judgements import ANSWERS, read_judgements
    from sightline.serve.judging import Judging, Record, plain, questions
    from sightline.serve.server import QuietServer, bind

    kinds = [name.strip() for name in measures.lower().split(",")]
    if not kinds or not {*kinds} <= {*ANSWERS}:
        raise UserError(f"--measures {measures!r}: give m1, m2 or m1,m2")
    examples, systems = _read(captions, data)
    written = (lambda text: text) if as_written else plain
    asked = questions(
        {name: {i: written(text) for i, text in texts.items()} for name, texts in systems.items()},
        {name: [written(text) for text in _people(each)] for name, each in examples.items()},
        kinds,
        pictures,
        seed,
    )
    try:
        with locked(output.with_name(f".{output.name}.lock")):
            record = Record.open(output)
            listener = bind(host, port)
            listener.listen()  # who opens the address at once waits for the server
            shown = f"[{host}]" if ":" in host else host
            address = f"http://{shown}:{listener.getsockname()[1]}/"
            echo(f"{counted_nouns(len(asked), 'question')} for each judge at {address}", err=True)
            QuietServer.of(Judging(asked, examples, record, seed).guard).run([listener])
    except BlockingIOError:
        raise UserError(f"{output}: another `sightline judge` writes to it") from None
    found = read_judgements(output)
    if found:
        _table(found)


def judgements(
    file: Annotated[Path, typer.Argument(help="What `sightline judge` wrote.")],
    as_json: Annotated[bool, typer.Option("--json", help="Shares and agreement as JSON.")] = False,
    as_csv: Annotated[bool, typer.Option("--csv", help="Every judgement as a row.")] = False,
    output: Output = None,
) -> None:
    """Print M1 and M2 of people's judgements, and how far the judges agree."""
    from sightline.errors import UserError
    from sightline.metrics.judgements import agreement, read_judgements, shares

    found = read_judgements(file)
    if not found:
        raise UserError(f"{file}: there is no judgement in this file")
    with writing_to(output):
        if as_json:
            echo_json({"shares": shares(found), "agreement": agreement(found)}, indent=2)
        elif as_csv:
            rows = [each.to_json() for each in found]
            echo_csv(list(rows[0]))
            for row in rows:
                echo_csv(list(row.values()))
        else:
            _table(found)


def _read(captions: list[str], data: Path) -> tuple[dict[str, Example], dict[str, dict[str, str]]]:
    """The manifest's examples that can be judged, and the captions of each system."""
    from sightline.data.manifest import read_manifest
    from sightline.errors import DataError, UserError
    from sightline.metrics.files import by_file_name, read_hypotheses
    from sightline.metrics.judgements import PERSON

    examples = {each.id: each for each in read_manifest(data) if _people(each)}
    by_file = {str(each.media): each.id for each in examples.values() if each.media}
    systems: dict[str, dict[str, str]] = {}
    for given in captions:
        name, is_named, path = given.partition("=")
        if not is_named:
            name, path = Path(given).stem, given
        if name in systems or name == PERSON:
            raise UserError(f"{given}: the name {name!r} is taken; write OTHER={path}")
        texts = by_file_name(read_hypotheses(Path(path)), examples)
        texts = {by_file.get(item, item): text for item, text in texts.items()}
        for item in texts:
            if item not in examples:
                raise DataError(f"{path}: item {item!r} has no caption of a person in {data}")
            if examples[item].medium not in ("image", "source"):
                raise DataError(f"{data}: item {item!r}: only pictures and texts can be judged")
        systems[name] = texts
    return examples, systems


def _people(example: Example) -> list[str]:
    """The targets that people wrote."""
    origins = example.origins or ("human",) * len(example.targets)
    return [t for t, o in zip(example.targets, origins, strict=True) if o == "human"]


def _table(found: list[Judgement]) -> None:
    from rich.console import Console
    from rich.table import Table

    from sightline.metrics.judgements import agreement, shares

    console = Console()
    judges = len({each.judge for each in found})
    title = f"{counted_nouns(len(found), 'judgement')} by {counted_nouns(judges, 'judge')}"
    table = Table(title=title, title_justify="left", title_style="bold")
    for heading in ("", "captions of", "share", "95 %", "judgements", "answers"):
        table.add_column(heading, justify="right" if heading in ("share", "judgements") else "left")
    for row in shares(found):
        low, high = row["interval"]
        answers = ", ".join(f"{number} {answer}" for answer, number in row["answers"].items())
        cells = [row["measure"], row["system"], f"{row['share']:.3f}", f"{low:.3f} to {high:.3f}"]
        table.add_row(*cells, str(row["judgements"]), answers)
    console.print(table)
    for measure, values in agreement(found).items():
        _agreement(console, measure, values)


def _agreement(console: Any, measure: str, values: dict[str, Any]) -> None:
    def show(value: float | None) -> str:
        return "–" if value is None else f"{value:.2f}"

    pairs = ", ".join(
        f"{' and '.join(each['judges'])} {show(each['kappa'])} (of {each['both']})"
        for each in values["cohen_kappa"]
    )
    console.print(
        f"{measure} agreement: Cohen's κ {pairs}; Fleiss' κ {show(values['fleiss_kappa'])}; "
        f"Krippendorff's α {show(values['krippendorff_alpha'])}",
        style="dim",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
