"""Is an export as good as its model? Both are evaluated on held-out data and compared."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from sightline.errors import UserError
from sightline.metrics import info
from sightline.runtime.describer import Describer
from sightline.tasks import spec_of

LEAST_SAME = {"int16": 0.995, "int8": 0.0}  # share of inputs with the same best hypothesis


@dataclass(frozen=True)
class Comparison:
    """A model and its export on the same inputs."""

    items: int
    same: float  # the share of inputs that both describe in the same words
    scores: dict[str, tuple[float, float]]  # score → the model's, the export's, as displayed

    def __str__(self) -> str:
        scores = ", ".join(f"{name} {a:.3f} → {b:.3f}" for name, (a, b) in self.scores.items())
        return f"{self.items} items, {self.same:.1%} described the same; {scores}"

    def require(self, weights: str) -> None:
        """A UserError if the export lost more than the scores' tolerances allow."""
        broken = [name for name, pair in self.scores.items() if _too_far(name, *pair, weights)]
        if broken or self.same < LEAST_SAME[weights]:
            what = ", ".join(broken) or "too few descriptions stayed the same"
            raise UserError(f"the {weights} export is not good enough ({what}): {self}")


def _too_far(name: str, model: float, export: float, weights: str) -> bool:
    """Whether a score changed (int16) or became worse (int8) by more than its tolerance."""
    score = info(name)
    assert score.tolerance is not None
    loss = model - export if score.higher_is_better else export - model
    return (abs(loss) if weights == "int16" else loss) > score.tolerance[weights]


def compare(model: Describer, export: Describer, data: Path, split: str) -> Comparison:
    """On a manifest's split, or on a text for a language model."""
    evaluate = spec_of(model.task).evaluate
    first, second = (evaluate(each, data, split, None, intervals=False) for each in (model, export))
    pairs = list(zip(first.texts.values(), second.texts.values(), strict=True))
    same = sum(a == b for a, b in pairs) / len(pairs) if pairs else 1.0
    before, after = first.scores["corpus"], second.scores["corpus"]
    scales = {name: info(name).scale for name in before if info(name).tolerance is not None}
    scores = {name: (by * before[name], by * after[name]) for name, by in scales.items()}
    return Comparison(len(pairs), same, scores)
