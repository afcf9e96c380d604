"""The keys of a speech recogniser's recipe."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sightline import config


@dataclass(frozen=True)
class TranscribeRecipe:
    """The keys of a speech recogniser's recipe."""

    # JSONL with `audio`, a sound file, and `targets`, its phones or words, as `sightline prepare
    # speechocean762`, `spoken`, `kaldi`, `recordings`, `timit` and `csv` make it; or several
    manifest: config.Manifest
    task: Literal["transcribe"] = "transcribe"
    description: str = ""
    benchmark: str | None = None  # timit: the published rows that `evaluate` prints
    # What targets are cut into: phones and words are what white space separates
    units: Literal["phone", "word", "char", "bpe"] = "phone"
    size: config.Positive = 2000  # tokens at most
    min_count: config.Positive = 1  # tokens that occur less often are unknown
    fold: Literal["none", "timit"] = "none"  # timit: scores are of its 39 classes
    # Seconds: longer utterances are not trained on, longer recordings are cut at silences
    longest: config.AboveZero = 15.0
    cache: str = "features"  # the folder of the filter banks of what is trained on
    trust: config.TrustConfig = field(default_factory=config.TrustConfig)
    batching: config.BatchingConfig = field(  # by frames of 10 ms
        default_factory=lambda: config.BatchingConfig(kind="token_budget", size=6000)
    )
    augment: config.SoundAugmentConfig = field(default_factory=config.SoundAugmentConfig)
    encoder: config.SoundEncoderConfig = field(default_factory=config.SoundEncoderConfig)
    model: config.DecoderConfig = field(default_factory=lambda: config.DecoderConfig(gate=False))
    loss: config.LossConfig = field(default_factory=config.LossConfig)
    search: config.SearchConfig = field(default_factory=lambda: config.SearchConfig(max_length=500))
    training: config.TrainingConfig = field(
        default_factory=lambda: config.TrainingConfig(select="per")
    )
