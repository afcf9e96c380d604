"""`sightline train`: a recipe, overrides, and a run's folder."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.data.progress import be_quiet, is_quiet
from sightline.tasks.command_line import Quiet, echo, note

if TYPE_CHECKING:
    from sightline.training.task import Recipe


def train(
    recipe: Annotated[
        Path, typer.Argument(help="A recipe: a YAML file, or a name from `recipes`.")
    ],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(help="key.sub=value, such as text=FILE or model.hidden=256."),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "--out",
            "-o",
            help="The run's folder; runs/NAME of the recipe if not given.",
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option(help="Resume the run in that folder, with its overrides.")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Train a model from a recipe; Ctrl-C saves, --resume continues exactly."""
    from rich.console import Console

    from sightline.commands.recipes import find_recipe
    from sightline.runtime.command import Command, read_command
    from sightline.tasks import build_task, found_from, read_recipe, spec_of

    path = find_recipe(recipe)
    folder = out or Path("runs") / path.stem
    before = read_command(folder) if resume else None
    given = [*(before.overrides if before else ()), *(overrides or ())]
    chosen: list[str] = []  # where the recipe says `auto`
    settings = read_recipe(path, given, say=chosen.append)
    if os.environ.get("RANK", "0") == "0":  # of several processes one speaks
        for line in chosen:
            note(line)
    if resume:
        settings = found_from(settings, folder)
    task = build_task(settings)  # before torch is imported: a bad file is reported at once
    from sightline.training import distributed
    from sightline.training.checkpoint import Run
    from sightline.training.loop import train as run_training

    with distributed.joined():
        quiet = quiet or not distributed.is_first()
        be_quiet(is_quiet() or quiet)
        with distributed.first_alone():
            thawed = _thawed(settings, folder)
        if thawed:
            task = build_task(thawed)
        if distributed.was_restarted() and Run(folder).newest() is not None:
            resume = True
        outcome = run_training(
            task,
            folder,
            resume=distributed.from_first(resume),
            console=Console(stderr=True, quiet=quiet),
            local_paths=spec_of(settings.task).local_paths,
            command=Command.here(given),
        )
        speaks = distributed.is_first()
    if not speaks:
        raise typer.Exit(130 if outcome.reason == "interrupted" else 0)
    best, newest = outcome.run.best(), outcome.run.newest()
    kept = f"; best: {best}" if best else ""
    note(f"{outcome.reason} at step {outcome.progress.step}{kept}")
    if outcome.reason == "interrupted":
        echo(f"saved {newest}; resume with the same command and --resume", err=True)
        raise typer.Exit(130)


def _thawed(recipe: Recipe, folder: Path) -> Any:
    """The recipe with an export that it starts from, such as one of the zoo's, written to the run's
    folder as a model that can be trained; None if it starts from no export."""
    from dataclasses import replace

    from sightline.runtime.model_folder import find_model, is_export
    from sightline.training.checkpoint import Run

    source = None if recipe.training.initial is None else find_model(recipe.training.initial)
    if source is None or not is_export(source):
        return None
    out = folder / "initial"
    if Run(folder).newest() is None or not out.is_dir():  # else a run that is there has begun so
        from sightline.export.thaw import thaw

        thaw(source, out)
    changed: Any = recipe
    return replace(changed, training=replace(recipe.training, initial=str(out)))
