"""A model on held-out data: its descriptions and their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sightline.data.manifest import Example, read_split
from sightline.metrics import bootstrap, score
from sightline.metrics.perplexity import Perplexity
from sightline.runtime.describer import Describer
from sightline.tasks import spec_of
from sightline.tasks.command_line import counted_nouns
from sightline.tasks.likelihood import likelihoods
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
    """Describe a manifest's examples, and score the texts against its references.

    With `intervals` also the perplexity of the references, where the task asks for it.
    """
    spec = spec_of(describer.task)
    examples = read_split(data or describer.recipe.manifest, split, spec.medium)
    sources = [example.media or str(example.source) for example in examples]
    descriptions = describer.describe(sources, beam=beam, progress=True)
    count = counted_nouns(len(examples), "item")
    found = Evaluation(f"{count} of the {split} split", {}, examples, descriptions)
    references = {e.id: tuple(map(spec.reference, e.targets)) for e in examples}
    of_texts = [name for name in spec.metrics if name not in Perplexity.info]
    scores = score(found.texts, references, of_texts, intervals=intervals, lenient=True)
    if intervals and len(of_texts) < len(spec.metrics):
        texts = [example.targets for example in examples]
        likely = likelihoods(describer, sources, texts, progress=True)
        _add_perplexity(scores, likely, [example.id for example in examples])
    return replace(found, scores=scores)


def _add_perplexity(scores: Any, likely: Sequence[Sequence[float]], ids: Sequence[str]) -> None:
    """Of all references together, and of those of each item."""
    metric = Perplexity()
    rows = metric.statistics(likely)
    (samples,) = bootstrap.resample([metric], [rows])
    scores["corpus"]["perplexity"] = float(metric.corpus_scores(rows)[0])
    scores["intervals"]["perplexity"] = bootstrap.interval(samples)[:, 0].tolist()
    scores["signatures"]["perplexity"] = f"{metric.signature}|of:all references"
    for name, value in zip(ids, metric.item_scores(rows)[:, 0].tolist(), strict=True):
        scores["per_item"][name]["perplexity"] = value
