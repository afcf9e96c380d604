"""The keys of a question answerer's recipe."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sightline import config


@dataclass(frozen=True)
class AnswerRecipe:
    """The keys of a question answerer's recipe."""

    # JSONL with `source`, the facts and then the question, a sentence each, and `targets`, the
    # answer, as `sightline prepare babi` makes it; or several
    manifest: config.Manifest
    task: Literal["answer"] = "answer"
    description: str = ""
    held_out: config.Share = 0.1  # of the training questions, if the manifest has no dev split
    batching: config.BatchingConfig = field(
        default_factory=lambda: config.BatchingConfig(kind="similar_length", size=32)
    )
    model: config.MemoryConfig = field(default_factory=config.MemoryConfig)
    loss: config.LossConfig = field(default_factory=config.LossConfig)
    search: config.SearchConfig = field(
        default_factory=lambda: config.SearchConfig(beam=3, max_length=1)
    )
    training: config.TrainingConfig = field(
        default_factory=lambda: config.TrainingConfig(select="loss")
    )
