"""The keys of a translator's recipe."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sightline import config


@dataclass(frozen=True)
class FusionConfig:
    """Deep fusion (Gulcehre et al. 2015): only the output layer and the gate learn."""

    translator: str  # a run of this task with the same `encoder` and `model`
    language_model: str  # a run of the task language_model that is `like` the translator


@dataclass(frozen=True)
class TranslateRecipe:
    """The keys of a translator's recipe."""

    # JSONL with `source` and `targets`, as `sightline prepare parallel` makes it; or several
    manifest: config.Manifest
    task: Literal["translate"] = "translate"
    description: str = ""
    # the published numbers that `evaluate` prints
    benchmark: Literal["wmt14-en-fr", "wmt15-en-de", "wmt15-en-cs"] | None = None
    source: config.VocabularyConfig = field(default_factory=config.VocabularyConfig)
    target: config.VocabularyConfig = field(default_factory=config.VocabularyConfig)
    # Tokens: training pairs with more on either side are left out, longer sources are
    # translated in parts
    longest: config.Positive = 100
    trust: config.TrustConfig = field(default_factory=config.TrustConfig)
    batching: config.BatchingConfig = field(  # by the tokens of both sides
        default_factory=lambda: config.BatchingConfig(kind="token_budget", size=4000)
    )
    encoder: config.RecurrentConfig = field(default_factory=config.RecurrentConfig)
    model: config.DecoderConfig = field(default_factory=lambda: config.DecoderConfig(gate=False))
    loss: config.LossConfig = field(default_factory=config.LossConfig)
    search: config.SearchConfig = field(
        default_factory=lambda: config.SearchConfig(max_length=250, length_penalty=1.0)
    )
    # Two trained models combined; the vocabularies are the translator's
    fusion: FusionConfig | None = None
    training: config.TrainingConfig = field(default_factory=config.TrainingConfig)
