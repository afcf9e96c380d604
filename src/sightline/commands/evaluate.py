"""`sightline evaluate`: a model's metrics on held-out data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.commands import Device

if TYPE_CHECKING:
    from sightline.data.manifest import Example
    from sightline.tasks.captioner import Captioner
    from sightline.tasks.language_model import LanguageModel
    from sightline.types import Description


def evaluate(
    model: Annotated[str, typer.Argument(help="A run's folder, a checkpoint, or a zoo name.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(help="key=value: wins over the model's own, like search.length_penalty=1."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="A text or a manifest; if not given, the one it was trained with."),
    ] = None,
    split: Annotated[str, typer.Option(help="Which part of the manifest.")] = "test",
    beam: Annotated[int | None, typer.Option(min=1, help="The beam's size.")] = None,
    report: Annotated[
        Path | None, typer.Option(help="Captions: also write a page (.html) to look through.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    device: Device = "auto",
) -> None:
    """Print a model's metrics on data that it was not trained on."""
    from sightline.data.manifest import read_split
    from sightline.tasks import load_for

    tasks = ("language_model", "caption", "translate")
    loaded = load_for(model, *tasks, overrides=overrides or (), device=device)
    if loaded.recipe.task == "language_model":
        _language_model(loaded, data, as_json)
        return
    examples = read_split(data or loaded.recipe.manifest, split, loaded.recipe.task)
    if loaded.recipe.task == "caption":
        described = loaded.describe_examples(examples, beam=beam)
        metrics = ["bleu", "bleu_nobp", "meteor", "rouge_l", "cider"]
    else:
        described = loaded.translate([example.source for example in examples], beam=beam)
        metrics = ["sacrebleu", "chrf"]
    scores = _score(examples, described, metrics, as_json)
    if not as_json:
        _table(loaded, scores, f"{len(examples)} items of the {split} split")
    if report is not None and loaded.recipe.task == "caption":
        _report(report, loaded, examples, described, scores, Path(model) / "log.jsonl")


def _score(
    examples: list[Example], described: list[Description], metrics: list[str], as_json: bool
) -> Any:
    import json

    from sightline.metrics import score

    hypotheses = {e.id: d.text for e, d in zip(examples, described, strict=True)}
    scores = score(hypotheses, {e.id: e.targets for e in examples}, metrics)
    if as_json:
        kept = {key: scores[key] for key in ("corpus", "signatures", "intervals")}
        typer.echo(json.dumps({**kept, "texts": hypotheses}, ensure_ascii=False))
    return scores


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
    )
    typer.echo(f"wrote {path}", err=True)


def _table(model: Any, scores: Any, title: str) -> None:
    """Our scores, and beside them the published ones of the same benchmark (hundredths)."""
    from rich.console import Console
    from rich.table import Table

    from sightline.tasks.caption import PUBLISHED

    published = PUBLISHED.get(getattr(model.recipe, "benchmark", None) or "", {})
    table = Table(title=title)
    table.add_column("hundredths")
    for name in ("this model", "95 %", *published):
        table.add_column(name, justify="right")
    for name, value in scores["corpus"].items():
        scale = 1 if name in ("sacrebleu", "chrf") else 100  # sacrebleu's are hundredths already
        low, high = scores["intervals"][name]
        paper = [values.get(name) for values in published.values()]
        table.add_row(
            name.replace("_nobp", ", no brevity penalty"),
            f"{scale * value:.2f}",
            f"{scale * low:.1f} to {scale * high:.1f}",
            *("" if number is None else f"{number:.2f}" for number in paper),
        )
    console = Console()
    console.print(table)
    for signature in dict.fromkeys(scores["signatures"].values()):
        console.print(signature, style="dim", highlight=False)
