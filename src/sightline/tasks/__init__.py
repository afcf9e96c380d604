"""The tasks: each names its data, encoder, vocabulary, metrics and samples, and nothing more."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from sightline import config
from sightline.errors import CheckpointError, ConfigError, UserError

if TYPE_CHECKING:
    from sightline.config import TrainingConfig
    from sightline.nn.decoder import DecoderState
    from sightline.nn.losses import Loss
    from sightline.nn.model import Batch, EncoderDecoder


class TaskNames(NamedTuple):
    """Where a task's parts are; its module is imported when it is used."""

    module: str
    recipe: str  # the dataclass of its recipes
    trainer: str  # the Task that the training loop runs
    loader: str  # a checkpoint's folder, its recipe and a device → what `sightline.load` gives

    def find(self, part: str) -> Any:
        return getattr(importlib.import_module(self.module), part)


TASKS = {
    "language_model": TaskNames(
        "sightline.tasks.language_model",
        recipe="LanguageModelRecipe",
        trainer="LanguageModelTask",
        loader="load_language_model",
    ),
    "caption": TaskNames(
        "sightline.tasks.caption",
        recipe="CaptionRecipe",
        trainer="CaptionTask",
        loader="load_captioner",
    ),
    "translate": TaskNames(
        "sightline.tasks.translate",
        recipe="TranslateRecipe",
        trainer="TranslateTask",
        loader="load_translator",
    ),
}


class Epoch(Protocol):
    """One pass over the training data, addressed by position so that a run can resume anywhere."""

    def __len__(self) -> int: ...

    def __getitem__(self, position: int, /) -> Batch: ...


class Recipe(Protocol):
    """What every task's recipe has; tasks add their own keys."""

    @property
    def task(self) -> str: ...

    @property
    def training(self) -> TrainingConfig: ...


class Task(Protocol):
    """What the training loop asks of a task."""

    recipe: Any  # the task's Recipe
    files: dict[str, str]  # what goes into checkpoints beside config and weights: vocabularies
    fingerprint: str  # of the training data; a resumed run must see the same
    metrics: tuple[str, ...]  # the names that `evaluate` gives, any of which can choose the best
    carries_state: bool  # the decoder's state goes on from batch to batch (truncated BPTT)

    def build_model(self) -> EncoderDecoder: ...

    def epoch(self, number: int) -> Epoch: ...

    def loss(
        self, model: EncoderDecoder, batch: Batch, state: DecoderState | None
    ) -> tuple[Loss, DecoderState | None]:
        """What is minimised; `state` is the one carried over, the second value the one to carry."""
        ...

    def evaluate(self, model: EncoderDecoder) -> dict[str, float]:
        """Held-out metrics by name; `loss` is nats per token."""
        ...

    def showcase(self, model: EncoderDecoder) -> str:
        """A few outputs to look at while training goes on; empty for none."""
        ...


def read_recipe(path: Path | str, overrides: Sequence[str] = ()) -> Recipe:
    """A recipe file as its task's dataclass."""
    task = config.top_level(path, "task")
    for override in overrides:
        if override.startswith("task="):
            task = override.removeprefix("task=")
    if task not in TASKS:
        what = "needs a line `task: NAME`" if task is None else f"there is no task {task!r}"
        raise ConfigError(f"{path}: {what}; the tasks are {', '.join(TASKS)}")
    names = TASKS[task]
    recipe: Recipe = config.parse_file(path, names.find(names.recipe), overrides)
    return recipe


def build_task(recipe: Recipe) -> Task:
    """The task that trains a recipe; reads its data."""
    names = TASKS[recipe.task]
    task: Task = names.find(names.trainer)(recipe)
    return task


def load_model(folder: Path | str, overrides: Sequence[str] = (), device: str = "auto") -> Any:
    """A trained model of any task: a run's folder, a checkpoint's, an export's, or a zoo name.

    `overrides` are `key=value` strings that win over its recipe, such as `search.beam=7`. `device`
    is where a run computes, as `training.device`; an export computes on the processor.
    """
    from sightline.runtime.model_folder import is_export, read_export
    from sightline.zoo import find

    path = find(folder)
    export = read_export(path) if is_export(path) else None  # checked before anything is used
    try:
        recipe = read_recipe(path / "config.yaml")
    except ConfigError as error:
        raise CheckpointError(
            f"{path} is not a model that this Sightline can read: {error}"
        ) from None
    recipe = read_recipe(path / "config.yaml", overrides) if overrides else recipe
    if export is not None:
        from sightline.runtime.load import load_exported

        if device not in ("auto", "cpu"):
            raise UserError(
                f"device={device}: {path} is an export, which runs on the processor; give the run "
                "that it was made from"
            )
        return load_exported(export, recipe)
    from sightline.nn.device import pick_device

    names = TASKS[recipe.task]
    return names.find(names.loader)(path, recipe, pick_device(device, "device"))


def load_for(
    model: Path | str, *tasks: str, overrides: Sequence[str] = (), device: str = "auto"
) -> Any:
    """A model as `load_model` gives it, if it is for one of these tasks."""
    try:
        loaded = load_model(model, overrides, device)
    except ModuleNotFoundError as error:
        raise UserError(f"{model} needs {error.name}: pip install 'sightline[train]'") from None
    if loaded.recipe.task not in tasks:
        raise UserError(
            f"{model} is a model for {loaded.recipe.task}, not for {' or '.join(tasks)}"
        )
    return loaded
