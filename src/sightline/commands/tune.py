"""`sightline tune`: other values of some keys of a recipe, tried until they are good."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.errors import UserError
from sightline.tasks.command_line import Quiet, echo, note

if TYPE_CHECKING:
    from sightline.training.tuning import Tuning


def tune(
    recipe: Annotated[
        Path, typer.Argument(help="A recipe: a YAML file, or a name from `recipes`.")
    ],
    overrides: Annotated[
        list[str] | None,
        typer.Argument(help="key.sub=value, the same in every trial, such as manifest=FILE."),
    ] = None,
    space: Annotated[
        Path | None,
        typer.Option(help="What is searched: a YAML file of keys with ranges or choices."),
    ] = None,
    trials: Annotated[int, typer.Option(min=1, help="So many in all, by all workers.")] = 20,
    out: Annotated[
        Path | None,
        typer.Option(
            "--output", "--out", "-o", help="The study's folder; runs/tune-NAME if not given."
        ),
    ] = None,
    dashboard: Annotated[
        bool, typer.Option(help="Show the study in a browser (needs optuna-dashboard).")
    ] = False,
    quiet: Quiet = False,
) -> None:
    """Search a recipe's settings with Optuna; start it several times, and the workers share."""
    from rich.console import Console

    from sightline import config
    from sightline.commands.recipes import find_recipe
    from sightline.config.space import default_space, read_space
    from sightline.tasks import build_task, read_recipe

    path = find_recipe(recipe)
    folder = out or Path("runs") / f"tune-{path.stem}"
    if dashboard:
        _dashboard(folder)
        return
    # a trial's folder holds what a trial needs to go on, and no more
    given = ["training.keep=1", "training.tensorboard=false", *(overrides or ())]

    def read(more: Any) -> Any:
        return read_recipe(path, [*given, *more])

    settings = read(())
    if space is None:
        searched = default_space(settings)
    else:
        searched = read_space(space, type(settings), read)
    build_task(settings)  # before torch is imported: a bad file is reported at once
    from sightline.training.tuning import Searched, Tuning

    about = Searched(config.to_yaml(settings), searched, settings.training.select)
    console = Console(stderr=True, quiet=quiet)
    tuning = Tuning(folder, about, lambda more: build_task(read(more)), console)
    reason = tuning.work(trials)
    _report(tuning)
    if reason == "interrupted":
        echo("interrupted; the same command goes on where it was", err=True)
        raise typer.Exit(130)


def _report(tuning: Tuning) -> None:
    """The best recipe, and pictures of the study."""
    from sightline.figures.study import history, importance
    from sightline.metrics import info
    from sightline.training.tuning import importances

    best = tuning.write_best()
    if best is None or best.value is None:
        return
    about, folder = info(tuning.searched.select), tuning.folder
    done = [trial for trial in tuning.study.get_trials(deepcopy=False) if trial.values]
    values = [(trial.number, trial.values[0] * about.scale) for trial in done]
    history(values, about.label, higher=tuning.higher).save(folder / "history.svg")
    shares = importances(tuning.study)
    if shares:
        importance(shares).save(folder / "importance.svg")
    note(f"best of {len(done)}: trial {best.number}, {about.label} {about.show(best.value)}")
    note(f"train it with: sightline train {folder / 'best.yaml'}")


def _dashboard(folder: Path) -> None:
    if not (folder / "journal.log").exists():
        raise UserError(f"{folder} holds no study yet; run `sightline tune` first")
    try:
        from optuna_dashboard import run_server
    except ImportError:
        raise UserError("--dashboard needs another package: pip install optuna-dashboard") from None
    from sightline.training.tuning import storage_of

    run_server(storage_of(folder))
