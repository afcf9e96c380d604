"""The keys of a captioner's recipe."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sightline.config import (
    BatchingConfig,
    Count,
    DecoderConfig,
    ImageEncoderConfig,
    LossConfig,
    Positive,
    SearchConfig,
    TrainingConfig,
    Weight,
)


@dataclass(frozen=True)
class RewardConfig:
    """What self-critical training raises: the sum of these metrics by their weights."""

    cider: Weight = 1.0
    meteor: Weight = 0.0


@dataclass(frozen=True)
class CaptionRecipe:
    """The keys of a captioner's recipe."""

    manifest: str  # JSONL, as `sightline prepare` makes it
    features: str = "features"  # where feature caches are kept
    task: Literal["caption"] = "caption"
    description: str = ""
    benchmark: Literal["flickr8k", "flickr30k", "coco"] | None = None  # shows the paper's numbers
    encoder: ImageEncoderConfig = field(default_factory=ImageEncoderConfig)
    vocabulary: Positive = 10_000
    min_count: Positive = 1
    longest: Positive = 40  # training captions of more words are left out
    batching: BatchingConfig = field(default_factory=BatchingConfig)
    # Minibatches of `batching.size` pictures with all their captions, which share their vectors
    captions_together: bool = False
    # Samples per picture of self-critical training, with batches of `batching.size` pictures; 0
    # trains with cross-entropy
    self_critical: Count = 0
    reward: RewardConfig = field(default_factory=RewardConfig)
    model: DecoderConfig = field(default_factory=DecoderConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
