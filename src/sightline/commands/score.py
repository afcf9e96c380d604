"""`sightline score`: BLEU, METEOR, ROUGE-L and CIDEr, equal to the COCO caption evaluation's."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.tasks.command_line import (
    Output,
    Quiet,
    counted_nouns,
    echo,
    echo_json,
    note,
    writing_to,
)

if TYPE_CHECKING:
    from sightline.metrics import Comparison, Scores

Comparisons = Mapping[str, "Comparison"]  # by the other system's file


def score(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="[HYPOTHESES] REFERENCES…",
            help="COCO's or pycocoevalcap's .json, .jsonl, .csv, .tsv, or text by line; .gz, .xz; "
            "-: stdin. What `describe --json` and `evaluate --json` write is read, too.",
        ),
    ],
    hypotheses: Annotated[
        Path | None,
        typer.Option("--input", "-i", help="The captions to score; all FILES are references then."),
    ] = None,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            "--metrics",
            "-m",
            help="With commas, or repeated: bleu, bleu_4, bleu_nobp, meteor, rouge_l, cider, "
            "cider_plain, wer, per, sacrebleu, chrf.",
            show_default="bleu,meteor,rouge_l,cider",
        ),
    ] = None,
    compare: Annotated[
        list[Path] | None,
        typer.Option(help="Another system's captions, to print the difference; may be repeated."),
    ] = None,
    per_item: Annotated[
        Path | None, typer.Option(help="Write the scores of each item to this CSV file.")
    ] = None,
    subset: Annotated[
        bool, typer.Option("--subset", help="Score only the items that have a hypothesis.")
    ] = False,
    document_frequencies: Annotated[
        Path | None, typer.Option(help="CIDEr's document frequencies, saved from another corpus.")
    ] = None,
    intervals: Annotated[
        bool, typer.Option(help="Bootstrap 95 % intervals (1,000 resamples).")
    ] = True,
    score_only: Annotated[
        bool, typer.Option("--score-only", "-b", help="Print the numbers alone, one a line.")
    ] = False,
    width: Annotated[
        int | None, typer.Option("--width", "-w", min=0, max=17, help="Decimals of the scores.")
    ] = None,
    output: Output = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
    quiet: Quiet = False,
) -> None:
    """Score captions against references as the COCO evaluation does, without Java."""
    from sightline import metrics as scoring
    from sightline.errors import UserError
    from sightline.metrics.files import STDIN, by_file_name, read_hypotheses, read_references

    if hypotheses is None:
        hypotheses, *files = files
    if not files:
        raise UserError("give HYPOTHESES and REFERENCES, or --input HYPOTHESES and REFERENCES")
    if [hypotheses, *files, *(compare or [])].count(STDIN) > 1:
        raise UserError("only one file can be standard input")
    texts = read_hypotheses(hypotheses)
    known = read_references(files)
    texts = by_file_name(texts, known)
    if subset:
        known = {item: known[item] for item in texts if item in known}
    names = [name.strip() for some in metrics for name in some.split(",")] if metrics else None
    given = document_frequencies
    saved = None if given is None else scoring.DocumentFrequencies.load(given)
    intervals = intervals and not score_only
    result = scoring.score(texts, known, names, intervals=intervals, document_frequencies=saved)
    comparisons = {}
    for path in compare or []:
        other = by_file_name(read_hypotheses(path), known)
        comparisons[str(path)] = scoring.compare(
            texts, other, known, names, document_frequencies=saved
        )
    if per_item is not None:
        _write_items(per_item, result)
    for said in result["notes"]:
        note(f"sightline: {said}")
    with writing_to(output):
        if as_json:
            _print_json(result, comparisons)
        elif score_only:
            _print_numbers(result, width)
        else:
            references = sum(len(texts) for texts in known.values())
            counts = counted_nouns(len(texts), "item"), counted_nouns(references, "reference")
            _print_table(", ".join(counts), result, comparisons, width)


def _print_json(result: Scores, comparisons: Comparisons) -> None:
    content: dict[str, Any] = {key: result[key] for key in ("corpus", "signatures", "intervals")}
    compared = [
        {
            "with": path,
            "corpus": found["second"],
            **{key: found[key] for key in ("difference", "intervals", "p")},
        }
        for path, found in comparisons.items()
    ]
    if len(compared) == 1:
        content["comparison"] = compared[0]
    elif compared:
        content["comparisons"] = compared
    echo_json(content, indent=2)


def _print_numbers(result: Scores, width: int | None) -> None:
    from sightline.metrics import info

    for key, value in result["corpus"].items():
        echo(info(key).show(value, decimals=width))


def _write_items(path: Path, result: Scores) -> None:
    import csv

    from sightline.errors import DataError

    try:
        # Ids may hold what UTF-8 cannot write (lone surrogates).
        with path.open("w", newline="", encoding="utf-8", errors="backslashreplace") as file:
            writer = csv.writer(file)
            writer.writerow(["id", *result["corpus"]])
            for item, scores in result["per_item"].items():
                writer.writerow([item, *scores.values()])
    except OSError as error:
        raise DataError(f"{path}: cannot be written: {error.strerror}") from None


def _print_table(title: str, result: Scores, comparisons: Comparisons, width: int | None) -> None:
    """The scores; with other systems a table for each."""
    from rich.console import Console

    console = Console()
    if not comparisons:
        console.print(_table(title, result, None, width))
    for path, comparison in comparisons.items():
        against = title if len(comparisons) == 1 else f"{title}, against {path}"
        console.print(_table(against, result, comparison, width))
    for signature in dict.fromkeys(result["signatures"].values()):
        console.print(signature, style="dim", markup=False, highlight=False, soft_wrap=True)


def _table(title: str, result: Scores, comparison: Comparison | None, width: int | None) -> Any:
    from rich.table import Table
    from rich.text import Text

    from sightline.metrics import info

    table = Table(title=Text(title), title_justify="left", title_style="bold")
    headings = ["metric", "score", *(["95 % interval"] if result["intervals"] else [])]
    if comparison:
        headings = ["metric", "score", "other", "difference", "95 % interval", "p"]
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "metric" else "right", no_wrap=True)
    for key, value in result["corpus"].items():
        about = info(key)
        cells = [about.label, about.show(value, decimals=width)]
        if comparison:
            p = comparison["p"][key]
            cells.append(about.show(comparison["second"][key], decimals=width))
            cells.append(about.show(comparison["difference"][key], sign=True, decimals=width))
            bounds = comparison["intervals"][key]
            cells.append(" to ".join(about.show(b, sign=True, decimals=width) for b in bounds))
            cells.append(f"{p:.3f}" if p else "< 0.002")  # what a thousand resamples can resolve
        elif result["intervals"]:
            bounds = result["intervals"][key]
            cells.append(" to ".join(about.show(bound, decimals=width) for bound in bounds))
        table.add_row(*cells)
    return table
