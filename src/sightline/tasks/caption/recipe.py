"""The keys of a captioner's recipe."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sightline import config

INITIAL = "initial"  # encoder.weights: those of training.initial, kept in the model


@dataclass(frozen=True)
class RewardConfig:
    """What self-critical training raises: the sum of these scores by their weights."""

    cider: config.Weight = 1.0
    meteor: config.Weight = 0.0
    fluency: config.Weight = 0.0  # the share of four words in a row that some training caption has
    # Captions are drawn from p^(1/temperature): below 1, likelier ones
    temperature: config.AboveZero = 1.0


@dataclass(frozen=True)
class CaptionRecipe:
    """The keys of a captioner's recipe."""

    # JSONL, as `sightline prepare` makes it; several: [a.jsonl, {path: b.jsonl, weight: 0.5}]
    manifest: config.Manifest
    features: str = "features"  # where feature caches are kept
    task: Literal["caption"] = "caption"
    description: str = ""
    benchmark: Literal["flickr8k", "flickr30k", "coco"] | None = None  # shows the paper's numbers
    encoder: config.ImageEncoderConfig = field(default_factory=config.ImageEncoderConfig)
    vocabulary: config.Positive = 10_000
    min_count: config.Positive = 1
    # Begin with the words of `training.initial`: its vocabulary, then those that it lacks
    keep_words: bool = False
    longest: config.Positive = 40  # training captions of more words are left out
    references: config.Count = 0  # only so many captions of a training picture; 0: all
    trust: config.TrustConfig = field(default_factory=config.TrustConfig)
    batching: config.BatchingConfig = field(default_factory=config.BatchingConfig)
    # Minibatches of `batching.size` pictures with all their captions, which share their vectors
    captions_together: bool = False
    # Samples per picture of self-critical training, with batches of `batching.size` pictures; 0
    # trains with cross-entropy
    self_critical: config.Count = 0
    reward: RewardConfig = field(default_factory=RewardConfig)
    model: config.DecoderConfig = field(default_factory=config.DecoderConfig)
    loss: config.LossConfig = field(default_factory=config.LossConfig)
    search: config.SearchConfig = field(
        default_factory=lambda: config.SearchConfig(words_once=True)
    )
    training: config.TrainingConfig = field(default_factory=config.TrainingConfig)
