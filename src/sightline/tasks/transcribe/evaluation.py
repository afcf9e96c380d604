"""A speech recogniser on held-out recordings: phone or word error rates."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.data.manifest import read_split
from sightline.data.phones import timit_39
from sightline.metrics import score
from sightline.tasks.command_line import counted_nouns
from sightline.tasks.evaluation import Evaluation
from sightline.tasks.transcribe.recipe import TranscribeRecipe

if TYPE_CHECKING:
    from sightline.runtime.describer import Describer


def metrics_of(recipe: TranscribeRecipe) -> tuple[str, ...]:
    return ("per",) if recipe.units == "phone" else ("wer",)


def folded(text: str, recipe: TranscribeRecipe) -> str:
    """What is scored of a text: TIMIT's phones in their 39 classes, others as they are."""
    return " ".join(timit_39(text.split())) if recipe.fold == "timit" else text


def evaluate_speech(
    describer: Describer, data: Path | None, split: str, beam: int | None, intervals: bool = True
) -> Evaluation:
    """Transcribe a manifest's recordings, and score what was written."""
    recipe: TranscribeRecipe = describer.recipe
    examples = read_split(data or recipe.manifest, split, "audio")
    sources = [str(example.media) for example in examples]
    found = describer.describe(sources, beam=beam, progress=True)
    descriptions = [replace(each, text=folded(each.text, recipe)) for each in found]
    result = Evaluation(
        f"{counted_nouns(len(examples), 'recording')} of {split}", {}, examples, descriptions
    )
    references = {e.id: [folded(text, recipe) for text in e.targets] for e in examples}
    scores = score(result.texts, references, metrics_of(recipe), intervals=intervals)
    return replace(result, scores=scores)
