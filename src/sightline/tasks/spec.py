"""TaskSpec: one object per task that names its parts.

Training, evaluate, export, its check, serve, report, page and command line loop over specs: a new
task is a file with a spec, and no other file changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sightline.data.manifest import Example, Medium, read_split
from sightline.runtime.codec import Codec
from sightline.runtime.describer import Describer, Options, Reader
from sightline.training.task import TrainingTask
from sightline.types import Description

if TYPE_CHECKING:
    from sightline.nn.model import EncoderDecoder
    from sightline.tasks.route import Route

Published = Mapping[str, Mapping[str, Mapping[str, float]]]  # benchmark → row → score → shown value


@dataclass(frozen=True)
class Evaluation:
    """A model's scores on held-out data, and what they were computed from."""

    title: str
    scores: Mapping[str, Any]  # as `metrics.score` gives them: corpus, intervals, signatures …
    examples: Sequence[Example] = ()
    descriptions: Sequence[Description] = ()

    @property
    def texts(self) -> dict[str, str]:
        pairs = zip(self.examples, self.descriptions, strict=True)
        return {example.id: description.text for example, description in pairs}


def evaluate_manifest(
    describer: Describer, data: Path | None, split: str, beam: int | None, intervals: bool = True
) -> Evaluation:
    """Describe a manifest's examples, and score the texts against its references."""
    from sightline.metrics import score
    from sightline.tasks import spec_of

    spec = spec_of(describer.task)
    examples = read_split(data or describer.recipe.manifest, split, spec.medium)
    sources = [example.media or example.source for example in examples]
    descriptions = describer.describe(sources, beam=beam, progress=True)
    texts = {e.id: d.text for e, d in zip(examples, descriptions, strict=True)}
    references = {example.id: example.targets for example in examples}
    scores = score(texts, references, spec.metrics, intervals=intervals)
    title = f"{len(examples)} items of the {split} split"
    return Evaluation(title, scores, examples, descriptions)


@dataclass(frozen=True)
class TaskSpec:
    """The parts of a task. Functions import what they need when they are called."""

    name: str  # as recipes write it: `task: NAME`
    recipe: type[Any]  # the dataclass of its recipes
    data: Callable[[Any], TrainingTask]  # recipe → what the loop trains; reads small files only
    # folder, recipe → the model that a checkpoint's weights go into
    model: Callable[[Path, Any], EncoderDecoder]
    # folder, recipe, what `about` said → the reader of sources; both without PyTorch
    reader: Callable[[Path, Any, Mapping[str, Any]], Reader]
    codec: Callable[[Path, Any], Codec]
    metrics: tuple[str, ...]  # that `evaluate` prints, as `metrics.score` names them
    medium: Medium = "source"  # the manifest's key that holds what is read
    # encoder → what its reader has to know, recorded in exports: preprocessing, the grid's shape
    about: Callable[[Any], dict[str, Any]] = lambda encoder: {}
    defaults: Options = field(default_factory=Options)  # of its searches
    evaluate: Callable[..., Evaluation] = evaluate_manifest
    published: Published = field(default_factory=dict)
    local_paths: tuple[str, ...] = ()  # recipe keys that name places on the training machine
    files: tuple[str, ...] = ()  # of a model's folder that an export keeps, besides vocabularies
    commands: Mapping[str, str] = field(default_factory=dict)  # name → "module:function"
    route: Callable[[], Route] | None = None  # None: the task is served by the general route
    panel: Path | None = None  # the folder of the page's panel for it: panel.html, panel.js …
