"""`sightline evaluate`: a model's metrics on held-out data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from sightline.tasks.caption import Captioner
    from sightline.tasks.language_model import LanguageModel


def evaluate(
    model: Annotated[str, typer.Argument(help="A run's folder, a checkpoint, or a zoo name.")],
    data: Annotated[
        Path | None,
        typer.Option(help="A text or a manifest; if not given, the one it was trained with."),
    ] = None,
    split: Annotated[str, typer.Option(help="Captions: which part of the manifest.")] = "test",
    beam: Annotated[int | None, typer.Option(min=1, help="Captions: the beam's size.")] = None,
    report: Annotated[
        Path | None, typer.Option(help="Captions: also write a page (.html) to look through.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
) -> None:
    """Print a model's metrics on data that it was not trained on."""
    from sightline.commands import load_for

    loaded = load_for(model, "language_model", "caption")
    if loaded.recipe.task == "caption":
        log = Path(model) / "log.jsonl"
        _captions(loaded, data, split, beam, report, log, as_json)
    else:
        _language_model(loaded, data, as_json)


def _language_model(model: LanguageModel, data: Path | None, as_json: bool) -> None:
    import json

    from sightline.errors import DataError
    from sightline.media.text import read_text
    from sightline.tasks.language_model import split_text

    recipe = model.recipe
    try:
        content = split_text(recipe)[1] if data is None else read_text(data)
    except DataError as error:
        hint = "; --data FILE scores another" if data is None else ""
        raise DataError(f"{error}{hint}") from None
    metrics = model.evaluate(content)
    if as_json:
        typer.echo(json.dumps(metrics))
        return
    unit = {"char": "character", "word": "word", "bpe": "piece"}[recipe.unit]
    what = f"held-out part of {recipe.text}" if data is None else str(data)
    typer.echo(f"{what}: {metrics['loss']:.4f} nats per {unit}")
    typer.echo(f"{metrics['bits']:.4f} bits per {unit}, perplexity {metrics['perplexity']:.3f}")


def _captions(
    model: Captioner,
    data: Path | None,
    split: str,
    beam: int | None,
    report: Path | None,
    log: Path,
    as_json: bool,
) -> None:
    import json

    from sightline.data.manifest import read_manifest
    from sightline.errors import DataError
    from sightline.metrics import score

    path = data or Path(model.recipe.manifest)
    examples = [e for e in read_manifest(path, medium="image") if e.split == split]
    if not examples:
        raise DataError(f"{path} has no item of split {split!r}")
    described = model.describe_examples(examples, beam=beam)
    hypotheses = {e.id: d.text for e, d in zip(examples, described, strict=True)}
    references = {e.id: e.targets for e in examples}
    metrics = ["bleu", "bleu_nobp", "meteor", "rouge_l", "cider"]
    scores = score(hypotheses, references, metrics)
    if as_json:
        kept = {key: scores[key] for key in ("corpus", "signatures", "intervals")}
        typer.echo(json.dumps({**kept, "captions": hypotheses}, ensure_ascii=False))
    else:
        _table(model, scores, f"{len(examples)} pictures of {path}, {split}")
    if report is not None:
        _report(report, model, examples, described, scores, log)


def _report(
    path: Path, model: Captioner, examples: Any, described: Any, scores: Any, log: Path
) -> None:
    from sightline.report import ReportItem, write_report
    from sightline.tasks.caption import PUBLISHED
    from sightline.training.journal import read_log

    items = [
        ReportItem(e.id, e.media, e.targets, d, scores["per_item"][e.id])
        for e, d in zip(examples, described, strict=True)
    ]
    write_report(
        path,
        items,
        title=f"Captions: {model.recipe.description or model.recipe.manifest}",
        metrics=scores,
        curves=read_log(log) if log.is_file() else (),  # a run has its log, a zoo model none
        paper=PUBLISHED.get(model.recipe.benchmark or ""),
        image_spec=model.encoder.spec,
    )
    typer.echo(f"wrote {path}", err=True)


def _table(model: Captioner, scores: Any, title: str) -> None:
    """Our scores, and beside them the published ones of the same benchmark (hundredths)."""
    from rich.console import Console
    from rich.table import Table

    from sightline.tasks.caption import PUBLISHED

    published = PUBLISHED.get(model.recipe.benchmark or "", {})
    table = Table(title=title)
    table.add_column("hundredths")
    for name in ("this model", "95 %", *published):
        table.add_column(name, justify="right")
    names = [f"bleu_{n}{end}" for end in ("", "_nobp") for n in (1, 2, 3, 4)]
    for name in (*names, "meteor", "rouge_l", "cider"):
        low, high = scores["intervals"][name]
        paper = [values.get(name) for values in published.values()]
        table.add_row(
            name.replace("_nobp", ", no brevity penalty"),
            f"{100 * scores['corpus'][name]:.2f}",
            f"{100 * low:.1f} to {100 * high:.1f}",
            *("" if value is None else f"{value:.2f}" for value in paper),
        )
    Console().print(table)
