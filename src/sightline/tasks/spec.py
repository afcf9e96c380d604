"""TaskSpec: one object per task that names its parts.

Training, evaluate, export, its check, serve, report, page and command line loop over specs: a new
task is a file with a spec, and no other file changes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sightline.data.manifest import Medium
    from sightline.nn.model import EncoderDecoder
    from sightline.runtime.codec import Codec
    from sightline.runtime.describer import Reader
    from sightline.tasks.evaluation import Evaluation
    from sightline.tasks.route import Route
    from sightline.training.task import TrainingTask

Published = Mapping[str, Mapping[str, Mapping[str, float]]]  # benchmark → row → score → shown value


def lazy(place: str) -> Callable[..., Any]:
    """The function `module:name`, imported when it is called: a spec costs nothing to import."""

    def call(*arguments: Any, **options: Any) -> Any:
        return find(place)(*arguments, **options)

    return call


def find(place: str) -> Any:
    """What is at `module:name`."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


@dataclass(frozen=True)
class Choice:
    """What a recipe's key becomes where it is `auto`, and why."""

    key: str
    value: Any
    reason: str
    shown: str = ""  # in place of the value


_EVALUATE = lazy("sightline.tasks.evaluation:evaluate_manifest")


@dataclass(frozen=True)
class TaskSpec:
    """The parts of a task."""

    name: str  # as recipes write it: `task: NAME`
    recipe: type[Any]  # the dataclass of its recipes
    data: Callable[[Any], TrainingTask]  # recipe → what the loop trains; reads small files only
    # folder, recipe → the model that a checkpoint's weights go into
    model: Callable[[Path, Any], EncoderDecoder]
    # folder, recipe, what `about` said → the reader of sources; both without PyTorch
    reader: Callable[[Path, Any, Mapping[str, Any]], Reader]
    codec: Callable[[Path, Any], Codec]
    metrics: tuple[str, ...]  # that `evaluate` prints, as `metrics.score` names them
    # a description is right if this score of it is at least so high: what a confidence is about
    right: tuple[str, float] | None = None
    # a target as descriptions write it, to compare with
    reference: Callable[[str], str] = lambda target: target
    medium: Medium = "source"  # the manifest's key that holds what is read
    # encoder → what its reader has to know, recorded in exports: preprocessing, the grid's shape
    about: Callable[[Any], dict[str, Any]] = lambda encoder: {}
    defaults: Mapping[str, Any] = field(default_factory=dict)  # `Options` of its searches
    # model, data, split, beam → scores
    evaluate: Callable[..., Evaluation] = _EVALUATE
    published: Published = field(default_factory=dict)
    # what a recipe says → values for its keys that are `auto`, from the size of its data
    auto: Callable[[Mapping[str, Any]], Sequence[Choice]] | None = None
    # an export's recipe → that of the same model with all of its weights its own, to train on
    thawed: Callable[[Any], Any] = lambda recipe: recipe
    local_paths: tuple[str, ...] = ()  # recipe keys that name places on the training machine
    files: tuple[str, ...] = ()  # of a model's folder that an export keeps, besides vocabularies
    commands: Mapping[str, str] = field(default_factory=dict)  # name → "module:function"
    # recipe → sources that `sightline demo` describes: texts, points, files of `samples/`
    samples: Callable[[Any], Sequence[Any]] | None = None
    demo: Callable[[str, Path], None] | None = None  # model, folder: in place of describing those
    route: Callable[[], Route] | None = None  # None: the task is served by the general route
    panel: Path | None = None  # the folder of the page's panel for it: panel.html, panel.js …
