"""A model on held-out data: its descriptions and their scores."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from sightline.data.manifest import Example, read_split
from sightline.data.progress import counted
from sightline.metrics import bootstrap, score
from sightline.metrics.perplexity import Perplexity
from sightline.runtime.describer import Describer
from sightline.tasks import spec_of
from sightline.tasks.command_line import counted_nouns
from sightline.tasks.encoded import encoded
from sightline.tasks.likelihood import likelihoods
from sightline.types import Description

BLOCK = 32  # files whose vectors are held at a time


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
    of_texts = [name for name in spec.metrics if name not in Perplexity.info]
    wanted = intervals and len(of_texts) < len(spec.metrics)
    texts = [example.targets for example in examples] if wanted else None
    descriptions, likely = _described(describer, sources, texts, beam)
    count = counted_nouns(len(examples), "item")
    found = Evaluation(f"{count} of the {split} split", {}, examples, descriptions)
    references = {e.id: tuple(map(spec.reference, e.targets)) for e in examples}
    scores = score(found.texts, references, of_texts, intervals=intervals, lenient=True)
    if wanted:
        _add_perplexity(scores, likely, [example.id for example in examples])
    return replace(found, scores=scores)


def _described(
    describer: Describer,
    sources: Sequence[Any],
    texts: Sequence[Sequence[str]] | None,
    beam: int | None,
) -> tuple[list[Description], list[list[float]]]:
    """Descriptions, and the log-probabilities of given texts; a file is read and encoded once."""
    if texts is None or describer.reader.takes != "file" or describer.encoder is None:
        found = describer.describe(sources, beam=beam, progress=True)
        return found, likelihoods(describer, sources, texts, progress=True) if texts else []

    def block(at: int) -> list[tuple[Description, list[float]]]:
        once = encoded(describer, sources[at : at + BLOCK])
        numbers: Any = range(len(sources[at : at + BLOCK]))
        likely = likelihoods(once, numbers, texts[at : at + BLOCK])
        return list(zip(once.describe(numbers, beam=beam), likely, strict=True))

    pairs = (pair for at in range(0, len(sources), BLOCK) for pair in block(at))
    described, likely = zip(*counted(pairs, len(sources), "describing"), strict=True)
    return list(described), list(likely)


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
