"""The keys of a classifier's recipe."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sightline import config


def _model() -> config.DecoderConfig:
    return config.DecoderConfig(head="class", gate=False, output="plain")


@dataclass(frozen=True)
class ClassifyRecipe:
    """The keys of a classifier's recipe."""

    # JSONL with `source` and one target, its class; or several
    manifest: config.Manifest
    task: Literal["classify"] = "classify"
    description: str = ""
    # The published numbers that `evaluate` prints next to its own
    benchmark: Literal["trec", "polarity", "subjectivity"] | None = None
    vocabulary: config.VocabularyConfig = field(
        default_factory=lambda: config.VocabularyConfig(kind="word", size=30_000)
    )
    lower: bool = True  # read capital letters as small ones
    longest: config.Positive = 400  # tokens that are read of a text; what follows is left out
    trust: config.TrustConfig = field(default_factory=config.TrustConfig)
    batching: config.BatchingConfig = field(
        default_factory=lambda: config.BatchingConfig(kind="similar_length", size=50)
    )
    # What the class is read from: attention over the words (`model.attention`), their mean
    # (`model.attention: {kind: none}`), or the last state (also `encoder.summary: true`)
    encoder: config.RecurrentConfig = field(default_factory=config.RecurrentConfig)
    model: config.DecoderConfig = field(default_factory=_model)
    loss: config.LossConfig = field(default_factory=config.LossConfig)
    search: config.SearchConfig = field(default_factory=config.SearchConfig)
    training: config.TrainingConfig = field(default_factory=config.TrainingConfig)
