"""Fitting a model's confidence: its descriptions of held-out data, and which of them are right."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from sightline.data.manifest import read_data
from sightline.errors import DataError
from sightline.metrics import score
from sightline.metrics.base import Floats
from sightline.metrics.calibration import calibration_error, discrimination, logistic
from sightline.runtime.confidence import FEATURES, Confidence, features
from sightline.tasks import spec_of

if TYPE_CHECKING:
    from sightline.runtime.describer import Describer
    from sightline.types import Description


@dataclass(frozen=True)
class Judged:
    """Descriptions of one data set, and whether each is right."""

    name: str
    descriptions: Sequence[Description]
    right: Floats  # (N,): 1 or 0

    def confidences(self, model: Confidence) -> Floats:
        return np.array([model.of(description) for description in self.descriptions])

    def summary(self, model: Confidence) -> str:
        confidences = self.confidences(model)
        return (
            f"{self.name}: {len(self.right):,} items, {self.right.mean():.1%} right, mean "
            f"confidence {confidences.mean():.1%}, calibration error "
            f"{calibration_error(confidences, self.right):.3f}, a right one above a wrong one "
            f"{discrimination(confidences, self.right):.1%}"
        )


def judge(describer: Describer, data: Path, split: str) -> Judged | None:
    """By the task's bar, `TaskSpec.right`; None where the split has no references."""
    spec = spec_of(describer.task)
    assert spec.right is not None
    metric, least = spec.right
    examples = [e for e in read_data(data, medium=spec.medium) if e.split == split and e.targets]
    if not examples:
        return None
    sources = [example.media or str(example.source) for example in examples]
    descriptions = describer.describe(sources, progress=True)
    texts = {e.id: d.text for e, d in zip(examples, descriptions, strict=True)}
    references = {example.id: example.targets for example in examples}
    scores = score(texts, references, (metric,), intervals=False)["per_item"]
    right = np.array([scores[example.id][metric] >= least for example in examples], float)
    return Judged(f"{data.stem} {split}", descriptions, right)


def fit(sets: Sequence[Judged]) -> Confidence:
    if not sets:
        raise DataError("no item of that split has references; give --data or --split")
    rows = np.array([features(d) for each in sets for d in each.descriptions])
    bias, weights = logistic(rows, np.concatenate([each.right for each in sets]))
    return Confidence(bias, dict(zip(FEATURES, weights.tolist(), strict=True)))
