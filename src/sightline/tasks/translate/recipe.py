"""The keys of a translator's recipe."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sightline.config import (
    BatchingConfig,
    DecoderConfig,
    LossConfig,
    Positive,
    RecurrentConfig,
    SearchConfig,
    TrainingConfig,
    VocabularyConfig,
)


@dataclass(frozen=True)
class FusionConfig:
    """Deep fusion (Gulcehre et al. 2015): only the output layer and the gate learn."""

    translator: str  # a run of this task with the same `encoder` and `model`
    language_model: str  # a run of the task language_model that is `like` the translator


@dataclass(frozen=True)
class TranslateRecipe:
    """The keys of a translator's recipe."""

    manifest: str  # JSONL with `source` and `targets`, as `sightline prepare parallel` makes it
    task: Literal["translate"] = "translate"
    description: str = ""
    source: VocabularyConfig = field(default_factory=VocabularyConfig)
    target: VocabularyConfig = field(default_factory=VocabularyConfig)
    # Tokens: training pairs with more on either side are left out, longer sources are
    # translated in parts
    longest: Positive = 100
    batching: BatchingConfig = field(  # by the tokens of both sides
        default_factory=lambda: BatchingConfig(kind="token_budget", size=4000)
    )
    encoder: RecurrentConfig = field(default_factory=RecurrentConfig)
    model: DecoderConfig = field(default_factory=lambda: DecoderConfig(gate=False))
    loss: LossConfig = field(default_factory=LossConfig)
    search: SearchConfig = field(
        default_factory=lambda: SearchConfig(max_length=250, length_penalty=1.0)
    )
    # Two trained models combined; the vocabularies are the translator's
    fusion: FusionConfig | None = None
    training: TrainingConfig = field(default_factory=TrainingConfig)
