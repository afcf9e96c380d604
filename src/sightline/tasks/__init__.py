"""The tasks, by name. Each is a TaskSpec in a module of its own, imported when it is asked for."""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sightline import config
from sightline.errors import CheckpointError, ConfigError, UserError
from sightline.runtime.command import read_command

if TYPE_CHECKING:
    from sightline.runtime.describer import Describer
    from sightline.tasks.spec import TaskSpec
    from sightline.training.task import Recipe, TrainingTask

_TASKS = (
    "caption",
    "translate",
    "language_model",
    "classify",
    "parse",
    "point",
    "answer",
    "clip",
    "transcribe",
)
_MODULES = {name: f"sightline.tasks.{name}" for name in _TASKS}
_REGISTERED: dict[str, TaskSpec] = {}


def register(spec: TaskSpec) -> None:
    """Add a task that is defined outside Sightline."""
    _REGISTERED[spec.name] = spec


def unregister(name: str) -> None:
    del _REGISTERED[name]


def task_names() -> list[str]:
    return [*_MODULES, *_REGISTERED]


def spec_of(name: str) -> TaskSpec:
    if name in _REGISTERED:
        return _REGISTERED[name]
    if name not in _MODULES:
        raise ConfigError(f"there is no task {name!r}; the tasks are {', '.join(task_names())}")
    spec: TaskSpec = importlib.import_module(_MODULES[name]).SPEC
    return spec


def all_specs() -> list[TaskSpec]:
    return [spec_of(name) for name in task_names()]


def read_recipe(
    path: Path | str, overrides: Sequence[str] = (), say: Callable[[str], None] = lambda text: None
) -> Recipe:
    """A recipe file as its task's dataclass; what is chosen for keys that are `auto` is said."""
    task = config.top_level(path, "task")
    for override in overrides:
        if override.startswith("task="):
            task = override.removeprefix("task=")
    if task not in task_names():
        what = "needs a line `task: NAME`" if task is None else f"there is no task {task!r}"
        raise ConfigError(f"{path}: {what}; the tasks are {', '.join(task_names())}")
    spec = spec_of(task)
    overrides = [*overrides, *_of_other_data(path, spec, overrides)]

    def auto(given: dict[str, Any], keys: set[str]) -> dict[str, Any]:
        keys = keys - {"training.device"}  # where it is a value like others
        found = spec.auto(given) if spec.auto is not None and keys else ()
        choices = {each.key: each for each in found if each.key in keys}
        said = {override.partition("=")[0] for override in overrides}
        for each in [each for key, each in choices.items() if key not in said]:
            say(f"{each.key}: {each.shown or each.value} ({each.reason})")
        return {key: each.value for key, each in choices.items()}

    recipe: Recipe = config.parse_file(path, spec.recipe, overrides, auto)
    return recipe


def _of_other_data(path: Path | str, spec: TaskSpec, overrides: Sequence[str]) -> list[str]:
    """Overrides for a recipe that is given other data than it was written for: what it says of
    its benchmark, whose numbers are shown, would not be true."""
    given = dict(override.partition("=")[::2] for override in overrides)
    for key in {"manifest", "text"} & given.keys():
        written = config.top_level(path, key)
        if written is None or Path(written).name == Path(given[key]).name:
            continue
        known = {field.name for field in fields(spec.recipe)}
        name = given[key] if given[key][:1] in "[{" else Path(given[key]).name
        true = {"benchmark": "null"}
        if Path(path).name != "config.yaml":  # a trained model's, which is only evaluated on it
            true["description"] = f"{Path(path).stem}, trained on {name}"
        return [
            f"{key}={json.dumps(value) if key == 'description' else value}"
            for key, value in true.items()
            if key in known and key not in given
        ]
    return []


def found_from(recipe: Recipe, folder: Path) -> Recipe:
    """A run's recipe with its relative paths as they were where it was begun, if they are not
    here: a run can be evaluated and resumed from any folder."""
    command = read_command(folder)
    if command is None:
        return recipe
    begun = Path(command.folder)

    def found(section: Any, keys: list[str]) -> Any:
        value = getattr(section, keys[0], None)
        if value is None:
            return section
        if keys[1:]:
            return replace(section, **{keys[0]: found(value, keys[1:])})
        return replace(section, **{keys[0]: _there(value, begun)})

    for key in spec_of(recipe.task).local_paths:
        recipe = found(recipe, key.split("."))
    return recipe


def _there(place: Any, folder: Path) -> Any:
    """A path, or each of several data sets', in the folder if it is only there."""
    if isinstance(place, tuple):
        return tuple(_there(each, folder) for each in place)
    if isinstance(place, config.DataConfig):
        return replace(place, path=_there(place.path, folder))
    other = folder / place
    return str(other) if other.exists() and not Path(place).exists() else place


def build_task(recipe: Recipe) -> TrainingTask:
    """What trains a recipe; reads its manifest or text."""
    return spec_of(recipe.task).data(recipe)


def load_model(model: Path | str, overrides: Sequence[str] = (), device: str = "auto") -> Describer:
    """A trained model of any task: a run's folder, a checkpoint's, an export's, or a zoo name.

    `overrides` are `key=value` strings that win over its recipe, such as `search.beam=7`. `device`
    is where a run computes, as `training.device`; an export computes on the CPU.
    """
    from sightline.runtime.model_folder import find_model, is_export, read_export

    folder = find_model(model)
    export = read_export(folder) if is_export(folder) else None  # checked before anything is used
    try:
        recipe = read_recipe(folder / "config.yaml")
    except ConfigError as error:
        raise CheckpointError(
            f"{folder} is not a model that this Sightline can read: {error}"
        ) from None
    if overrides:
        recipe = read_recipe(folder / "config.yaml", overrides)
    if export is None:
        from sightline.training.load import load_run

        return load_run(folder, found_from(recipe, folder), spec_of(recipe.task), device)
    if device not in ("auto", "cpu"):
        raise UserError(
            f"device={device}: {folder} is an export, which runs on the CPU; give the run "
            "that it was made from"
        )
    from sightline.tasks.exported import load_export

    return load_export(export, recipe, spec_of(recipe.task))


def load_for(
    model: Path | str, task: str = "", overrides: Sequence[str] = (), device: str = "auto"
) -> Describer:
    """A model as `load_model` gives it, if it is for this task; any task if none is named."""
    loaded = load_model(model, overrides, device)
    if task and loaded.task != task:
        raise UserError(f"{model} is a model for {loaded.task}, not for {task}")
    return loaded
