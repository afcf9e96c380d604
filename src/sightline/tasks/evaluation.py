"""A model on held-out data: its descriptions and their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sightline.data.manifest import Example, read_split
from sightline.metrics import score
from sightline.runtime.describer import Describer
from sightline.tasks import spec_of
from sightline.types import Description


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
    spec = spec_of(describer.task)
    examples = read_split(data or describer.recipe.manifest, split, spec.medium)
    sources = [example.media or str(example.source) for example in examples]
    descriptions = describer.describe(sources, beam=beam, progress=True)
    count = "1 item" if len(examples) == 1 else f"{len(examples):,} items"
    found = Evaluation(f"{count} of the {split} split", {}, examples, descriptions)
    references = {example.id: example.targets for example in examples}
    scores = score(found.texts, references, spec.metrics, intervals=intervals, lenient=True)
    return replace(found, scores=scores)
