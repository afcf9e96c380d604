"""`sightline evaluate`: a model's metrics on held-out data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.tasks.command_line import (
    Beam,
    Device,
    Output,
    Quiet,
    echo_json,
    note,
    writing_to,
)

if TYPE_CHECKING:
    from sightline.runtime.describer import Describer
    from sightline.tasks.evaluation import Evaluation
    from sightline.tasks.spec import TaskSpec


def evaluate(
    model: Annotated[str, typer.Argument(help="A run's folder, a checkpoint, or a zoo name.")],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(help="key=value: wins over the model's own, like search.length_penalty=1."),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(help="A text or a manifest; by default the one it was trained with."),
    ] = None,
    split: Annotated[str, typer.Option(help="Which part of the manifest.")] = "test",
    beam: Beam = None,
    report: Annotated[
        Path | None, typer.Option(help="Also write a page (.html) to look through.")
    ] = None,
    output: Output = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    device: Device = "auto",
    quiet: Quiet = False,
) -> None:
    """Print a model's metrics on data that it was not trained on."""
    from sightline.tasks import load_for, spec_of

    loaded = load_for(model, overrides=overrides or (), device=device)
    spec = spec_of(loaded.task)
    result = spec.evaluate(loaded, data, split, beam)
    for said in result.scores.get("notes", ()):
        note(f"note: {said}")
    published = _paper(spec, loaded, data)
    with writing_to(output):
        if as_json:
            kept = ("corpus", "signatures", "intervals")
            shown = {key: value for key, value in result.scores.items() if key in kept}
            texts = {"texts": result.texts} if result.examples else {}
            echo_json({**shown, **texts})
        else:
            _table(result, published)
    if report is not None:
        about = loaded.recipe.description or loaded.recipe.manifest
        title = f"{spec.name.capitalize()}: {about}{_elsewhere(loaded, data)}"
        _report(report, title, published, result, Path(model) / "log.jsonl")


def _elsewhere(model: Describer, data: Path | None) -> str:
    """That it is evaluated on other data than its recipe names."""
    own = getattr(model.recipe, "manifest", None) or getattr(model.recipe, "text", None)
    same = data is None or (isinstance(own, str) and Path(own).name == data.name)
    return "" if same else f", on {data}"


def _paper(spec: TaskSpec, model: Describer, data: Path | None) -> Any:
    """The published numbers of the benchmark that the recipe names, if this is its data."""
    benchmark = getattr(model.recipe, "benchmark", None)
    if _elsewhere(model, data) and isinstance(getattr(model.recipe, "manifest", None), str):
        return {}
    return spec.published.get(benchmark or "", {})


def _report(path: Path, title: str, published: Any, result: Evaluation, log: Path) -> None:
    from sightline.errors import UserError
    from sightline.report import ReportItem, write_report
    from sightline.training.journal import read_log

    if not result.examples:
        raise UserError("there are no items to write a report of")
    items = [
        ReportItem(e.id, e.media or str(e.source), e.targets, d, result.scores["per_item"][e.id])
        for e, d in zip(result.examples, result.descriptions, strict=True)
    ]
    write_report(
        path,
        items,
        title=title,
        metrics=result.scores,
        curves=read_log(log) if log.is_file() else (),  # a run has its log, a zoo model none
        paper=published,
    )
    note(f"wrote {path}")


def _table(result: Evaluation, published: Any) -> None:
    """Our scores; below them the published ones of the same benchmark, a row for each system."""
    from rich.console import Console
    from rich.table import Table

    from sightline.metrics import info

    corpus = result.scores["corpus"]
    intervals = result.scores.get("intervals", {})
    table = Table(title=result.title)
    for name in ("", "this model", *(["95 %"] if intervals else [])):
        table.add_column(name, justify="right" if name else "left")
    for key, value in corpus.items():
        score = info(key)
        row = [score.label, f"{score.scale * value:.2f}" if intervals else f"{value:.4f}"]
        if intervals:
            low, high = intervals[key]
            row.append(f"{score.scale * low:.1f} to {score.scale * high:.1f}")
        table.add_row(*row)
    console = Console()
    console.print(table)
    shared = [key for key in corpus if any(key in values for values in published.values())]
    if shared:
        others = Table(title="Published")
        others.add_column("")
        for key in shared:
            others.add_column(info(key).label, justify="right")
        ours = {key: info(key).scale * corpus[key] for key in shared}
        for system, values in {"this model": ours, **published}.items():
            numbers = (values.get(key) for key in shared)
            others.add_row(system, *("" if n is None else f"{n:.2f}" for n in numbers))
        console.print(others)
    for signature in dict.fromkeys(result.scores.get("signatures", {}).values()):
        console.print(signature, style="dim", highlight=False)
