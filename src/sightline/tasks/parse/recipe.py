"""The keys of a parser's recipe."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sightline import config


@dataclass(frozen=True)
class ParseRecipe:
    """The keys of a parser's recipe."""

    # JSONL with `source`, a sentence cut into words, and `targets`, its tree in brackets, as
    # `sightline prepare treebank` makes it; or several
    manifest: config.Manifest
    task: Literal["parse"] = "parse"
    description: str = ""
    tags: bool = True  # write each word's tag; false: XX for every word (Vinyals et al. 2015)
    words: config.Positive = 20_000  # at most so many words are known
    min_count: config.Positive = 2  # those that occur less often are unknown
    longest: config.Positive = 250  # words: longer sentences are refused, and not trained on
    trust: config.TrustConfig = field(default_factory=config.TrustConfig)
    batching: config.BatchingConfig = field(  # by the tokens of both sides
        default_factory=lambda: config.BatchingConfig(kind="token_budget", size=4000)
    )
    encoder: config.RecurrentConfig = field(default_factory=config.RecurrentConfig)
    model: config.DecoderConfig = field(default_factory=lambda: config.DecoderConfig(gate=False))
    loss: config.LossConfig = field(default_factory=config.LossConfig)
    search: config.SearchConfig = field(
        default_factory=lambda: config.SearchConfig(max_length=5000)
    )
    training: config.TrainingConfig = field(
        default_factory=lambda: config.TrainingConfig(select="bracket_f1")
    )
