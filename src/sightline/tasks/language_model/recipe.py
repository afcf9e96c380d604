"""The keys of a language model's recipe."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sightline import config


@dataclass(frozen=True)
class LanguageModelRecipe:
    """The keys of a language model's recipe."""

    text: str  # the file to learn from
    task: Literal["language_model"] = "language_model"
    description: str = ""
    held_out: float = 0.1  # this share of the end is kept for evaluation
    held_out_text: str | None = None  # or a separate file
    unit: Literal["char", "word", "bpe"] = "char"
    vocabulary: config.Positive = 10_000  # at most this many tokens
    min_count: config.Positive = 1
    # or a translator's folder: the tokens of its target, cut as it cuts them, so that the two can
    # be fused; sets `unit` and `vocabulary`
    like: str | None = None
    # stream: one long text, the state carried from batch to batch (truncated BPTT);
    # line: each line is one sequence
    sequence: Literal["stream", "line"] = "stream"
    streams: config.Positive = 64  # stream: parallel readers of the text
    length: config.Positive = 128  # stream: tokens per step, where the gradient is cut
    batching: config.BatchingConfig = field(default_factory=config.BatchingConfig)  # line
    model: config.DecoderConfig = field(
        default_factory=lambda: config.DecoderConfig(
            attention=config.AttentionConfig(kind="none"), context=(), output="plain"
        )
    )
    loss: config.LossConfig = field(default_factory=config.LossConfig)
    training: config.TrainingConfig = field(default_factory=config.TrainingConfig)
    sample: str = "\n"  # samples shown in training begin with this
    sample_length: config.Positive = 200
