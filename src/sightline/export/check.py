"""Is an export as good as its model? Both are run on held-out data and compared."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sightline.data.manifest import read_split
from sightline.errors import UserError
from sightline.media.text import read_text

# What an export may lose, in hundredths (of a language model: nats per token), by its weights.
MOST_LOST = {
    "int16": {"cider": 0.05, "bleu_4": 0.05, "sacrebleu": 0.05, "nats": 0.001},
    "int8": {"cider": 0.3, "bleu_4": 0.2, "sacrebleu": 0.2, "nats": 0.01},
}
LEAST_SAME = {"int16": 0.995, "int8": 0.0}  # share of inputs with the same best hypothesis
METRICS = {"caption": ("cider", "bleu"), "translate": ("sacrebleu",)}


@dataclass(frozen=True)
class Comparison:
    """A model and its export on the same inputs."""

    items: int
    same: float  # the share of inputs that both describe in the same words
    scores: dict[str, tuple[float, float]]  # metric → the model's, the export's

    def __str__(self) -> str:
        scores = ", ".join(f"{name} {a:.3f} → {b:.3f}" for name, (a, b) in self.scores.items())
        return f"{self.items} items, {self.same:.1%} described the same; {scores}"

    def require(self, weights: str) -> None:
        """A UserError if the export lost more than it may."""
        lost = {name: abs(a - b) if weights == "int16" else a - b for name, (a, b) in self._pairs()}
        broken = [name for name, loss in lost.items() if loss > MOST_LOST[weights][name]]
        if broken or self.same < LEAST_SAME[weights]:
            what = ", ".join(broken) or "too few descriptions stayed the same"
            raise UserError(f"the {weights} export is not good enough ({what}): {self}")

    def _pairs(self) -> list[tuple[str, tuple[float, float]]]:
        """As gains: more nats are a loss."""
        return [
            (name, (-a, -b) if name == "nats" else (a, b)) for name, (a, b) in self.scores.items()
        ]


def compare(model: Any, export: Any, data: Path, split: str) -> Comparison:
    """On a manifest's split, or on a text for a language model."""
    if model.recipe.task == "language_model":
        text = read_text(data)
        scores = {"nats": (model.evaluate(text)["loss"], export.evaluate(text)["loss"])}
        return Comparison(len(text), 1.0, scores)
    examples = read_split(data, split, model.recipe.task)
    texts = [_texts(each, examples) for each in (model, export)]
    same = sum(a == b for a, b in zip(*texts, strict=True)) / len(examples)
    before, after = (_scores(each, examples, model.recipe.task) for each in texts)
    return Comparison(len(examples), same, {name: (before[name], after[name]) for name in before})


def _texts(model: Any, examples: list[Any]) -> list[str]:
    if model.recipe.task == "caption":
        found = model.describe_examples(examples)
    else:
        found = model.translate([str(example.source) for example in examples])
    return [description.text for description in found]


def _scores(texts: list[str], examples: list[Any], task: str) -> dict[str, float]:
    from sightline.metrics import score

    hypotheses = {e.id: text for e, text in zip(examples, texts, strict=True)}
    references = {e.id: e.targets for e in examples}
    found = score(hypotheses, references, METRICS[task], intervals=False)["corpus"]
    hundredths = 100 if task == "caption" else 1  # sacrebleu's numbers are in hundredths
    return {name: hundredths * found[name] for name in MOST_LOST["int8"] if name in found}
