"""The keys of a language model's recipe."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from sightline.config import (
    AttentionConfig,
    BatchingConfig,
    DecoderConfig,
    LossConfig,
    Positive,
    TrainingConfig,
)


@dataclass(frozen=True)
class LanguageModelRecipe:
    """The keys of a language model's recipe."""

    text: str  # the file to learn from
    task: Literal["language_model"] = "language_model"
    description: str = ""
    held_out: float = 0.1  # this share of the end is kept for evaluation
    held_out_text: str | None = None  # or a separate file
    unit: Literal["char", "word", "bpe"] = "char"
    vocabulary: Positive = 10_000  # at most this many tokens
    min_count: Positive = 1
    # or a translator's folder: the tokens of its target, cut as it cuts them, so that the two can
    # be fused; sets `unit` and `vocabulary`
    like: str | None = None
    # stream: one long text, the state carried from batch to batch (truncated BPTT);
    # line: each line is one sequence
    sequence: Literal["stream", "line"] = "stream"
    streams: Positive = 64  # stream: parallel readers of the text
    length: Positive = 128  # stream: tokens per step, where the gradient is cut
    batching: BatchingConfig = field(default_factory=BatchingConfig)  # line
    model: DecoderConfig = field(
        default_factory=lambda: DecoderConfig(
            attention=AttentionConfig(kind="none"), context=(), output="plain"
        )
    )
    loss: LossConfig = field(default_factory=LossConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)
    sample: str = "\n"  # samples shown in training begin with this
    sample_length: Positive = 200
