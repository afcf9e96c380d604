"""`sightline score`: BLEU, METEOR, ROUGE-L and CIDEr, equal to the COCO caption evaluation's."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.tasks.command_line import echo, echo_json

if TYPE_CHECKING:
    from sightline.metrics import Comparison, Scores


def score(
    hypotheses: Annotated[
        Path,
        typer.Argument(help="Captions to score: COCO results (.json), .jsonl, or text by line."),
    ],
    references: Annotated[
        list[Path],
        typer.Argument(help="COCO annotations (.json), .jsonl, or text files by line (several)."),
    ],
    metrics: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated: bleu, bleu_4, bleu_nobp, meteor, rouge_l, cider, cider_plain, "
            "wer, per, sacrebleu, chrf.",
            show_default="bleu,meteor,rouge_l,cider",
        ),
    ] = None,
    compare: Annotated[
        Path | None, typer.Option(help="Another system's captions, to print the difference.")
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
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Score captions against references as the COCO evaluation does, without Java."""
    from sightline import metrics as scoring
    from sightline.metrics.files import read_hypotheses, read_references

    texts = read_hypotheses(hypotheses)
    known = read_references(references)
    if subset:
        known = {item: known[item] for item in texts if item in known}
    names = None if metrics is None else [name.strip() for name in metrics.split(",")]
    given = document_frequencies
    saved = None if given is None else scoring.DocumentFrequencies.load(given)
    result = scoring.score(texts, known, names, intervals=intervals, document_frequencies=saved)
    comparison = None
    if compare is not None:
        other = read_hypotheses(compare)
        comparison = scoring.compare(texts, other, known, names, document_frequencies=saved)
    if per_item is not None:
        _write_items(per_item, result)
    for note in result["notes"]:
        echo(f"sightline: {note}", err=True)
    if as_json:
        _print_json(result, comparison, compare)
    else:
        count = sum(len(texts) for texts in known.values())
        _print_table(f"{len(texts):,} items, {count:,} references", result, comparison)


def _print_json(result: Scores, comparison: Comparison | None, other: Path | None) -> None:
    content: dict[str, Any] = {key: result[key] for key in ("corpus", "signatures", "intervals")}
    if comparison is not None:
        kept = {key: comparison[key] for key in ("difference", "intervals", "p")}
        content["comparison"] = {"with": str(other), "corpus": comparison["second"], **kept}
    echo_json(content, indent=2)


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


def _print_table(title: str, result: Scores, comparison: Comparison | None) -> None:
    from rich.console import Console
    from rich.table import Table

    from sightline.metrics import info

    table = Table(title=title, title_justify="left", title_style="bold")
    headings = ["metric", "score", *(["95 % interval"] if result["intervals"] else [])]
    if comparison:
        headings = ["metric", "score", "other", "difference", "95 % interval", "p"]
    for heading in headings:
        table.add_column(heading, justify="left" if heading == "metric" else "right", no_wrap=True)
    for key, value in result["corpus"].items():
        about = info(key)
        cells = [about.label, about.show(value)]
        if comparison:
            p = comparison["p"][key]
            cells.append(about.show(comparison["second"][key]))
            cells.append(about.show(comparison["difference"][key], sign=True))
            bounds = (about.show(bound, sign=True) for bound in comparison["intervals"][key])
            cells.append(" to ".join(bounds))
            cells.append(f"{p:.3f}" if p else "< 0.002")  # what a thousand resamples can resolve
        elif result["intervals"]:
            cells.append(" to ".join(map(about.show, result["intervals"][key])))
        table.add_row(*cells)
    console = Console()
    console.print(table)
    for signature in dict.fromkeys(result["signatures"].values()):
        console.print(signature, style="dim", markup=False, highlight=False, soft_wrap=True)
