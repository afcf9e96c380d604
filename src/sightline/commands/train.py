"""`sightline train`: a recipe, overrides, and a run's folder."""

from pathlib import Path
from typing import Annotated

import typer

from sightline.tasks.command_line import echo


def train(
    recipe: Annotated[
        Path, typer.Argument(help="A recipe: a YAML file, or a name from `recipes`.")
    ],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(help="key.sub=value, such as text=FILE or model.hidden=256."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The run's folder; runs/NAME of the recipe if not given.")
    ] = None,
    resume: Annotated[bool, typer.Option(help="Resume the run in that folder.")] = False,
) -> None:
    """Train a model from a recipe; Ctrl-C saves, --resume continues exactly."""
    from sightline.commands.recipes import find_recipe
    from sightline.tasks import build_task, read_recipe, spec_of

    path = find_recipe(recipe)
    settings = read_recipe(path, overrides or [])
    try:
        task = build_task(settings)  # before torch is imported: a bad file is reported at once
        from sightline.training.loop import train as run_training
    except ModuleNotFoundError as error:
        from sightline.errors import UserError

        raise UserError(f"training needs {error.name}: pip install 'sightline[train]'") from None
    paths = spec_of(settings.task).local_paths
    outcome = run_training(task, out or Path("runs") / path.stem, resume=resume, local_paths=paths)
    best, newest = outcome.run.best(), outcome.run.newest()
    kept = f"; best: {best}" if best else ""
    echo(f"{outcome.reason} at step {outcome.progress.step}{kept}", err=True)
    if outcome.reason == "interrupted":
        echo(f"saved {newest}; resume with the same command and --resume", err=True)
        raise typer.Exit(130)
