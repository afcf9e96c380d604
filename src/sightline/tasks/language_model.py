"""Language models (D §II): p(w_1 … w_T) by characters, words or BPE pieces of a text file."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from sightline import config, zoo
from sightline.config import (
    AttentionConfig,
    BatchingConfig,
    DecoderConfig,
    LossConfig,
    Positive,
    TrainingConfig,
)
from sightline.data import batching
from sightline.data.vocabulary import VOCAB, Vocabulary
from sightline.errors import ConfigError, DataError, UserError
from sightline.media.text import read_text
from sightline.search.steppers import Stepper
from sightline.tasks.text_writer import (
    EVALUATION_LENGTH,
    EVALUATION_STREAMS,
    LanguageModel,
    TextReader,
    Tokens,
)

if TYPE_CHECKING:
    import torch

    from sightline.nn.decoder import DecoderState
    from sightline.nn.losses import Loss
    from sightline.nn.model import Batch, EncoderDecoder


@dataclass(frozen=True)
class LanguageModelRecipe:
    """The keys of a language model's recipe."""

    text: str  # the file to learn from
    task: Literal["language_model"] = "language_model"
    description: str = ""
    held_out: float = 0.1  # this much of the end is kept for evaluation
    held_out_text: str | None = None  # or a file of its own
    unit: Literal["char", "word", "bpe"] = "char"
    vocabulary: Positive = 10_000  # at most this many tokens
    min_count: Positive = 1
    # or a translator's folder: the tokens of its target, cut as it cuts them, so that the two can
    # be fused; says `unit` and `vocabulary`
    like: str | None = None
    # stream: one long text, the state carried from batch to batch (truncated BPTT);
    # line: each line is a sequence of its own
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


class LanguageModelTask:
    """Trains a language model on the text that its recipe names."""

    metrics = ("loss", "bits", "perplexity")

    def __init__(self, recipe: LanguageModelRecipe) -> None:
        given = target_vocabulary(recipe) if recipe.like is not None else None
        train, held_out = split_text(recipe)
        self.vocab = given or Vocabulary.build(
            recipe.unit,
            train.split("\n") if recipe.unit == "bpe" else [train],
            recipe.vocabulary,
            recipe.min_count,
        )
        if given is not None:
            recipe = replace(recipe, unit=given.kind, vocabulary=len(given))
        self.recipe = recipe
        self.files = {VOCAB: self.vocab.to_json()}
        self.reader = TextReader(recipe, self.vocab)
        self.carries_state = recipe.sequence == "stream"
        self.held_out = held_out
        if self.carries_state:
            self.tokens = self.reader.stream(train)
            needed = recipe.streams * (recipe.length + 1)
            if len(self.tokens) < needed:
                raise DataError(
                    f"{recipe.text} has {len(self.tokens)} tokens to train on; streams × length "
                    f"asks for {needed}: lower `streams` or `length`"
                )
            content = self.tokens.tobytes()
        else:
            self.lines = self.reader.lines(train)
            self.lengths = [len(line) for line in self.lines]
            content = repr(self.lines).encode()
        self.fingerprint = hashlib.sha256(content).hexdigest()

    def build_model(self) -> EncoderDecoder:
        return build_model(self.recipe, self.vocab)

    def epoch(self, number: int) -> StreamEpoch | LineEpoch:
        recipe = self.recipe
        seed = recipe.training.seed
        if self.carries_state:
            starts, steps = batching.stream_starts(
                len(self.tokens), recipe.streams, recipe.length, seed, number
            )
            return StreamEpoch(self.tokens, starts, steps, recipe.length)
        draw = getattr(batching, recipe.batching.kind)
        return LineEpoch(self.lines, draw(self.lengths, recipe.batching.size, seed, number))

    def loss(
        self, model: EncoderDecoder, batch: Batch, state: DecoderState | None
    ) -> tuple[Loss, DecoderState | None]:
        return model.loss(batch, state)

    def evaluate(self, model: EncoderDecoder) -> dict[str, float]:
        return LanguageModel(self.recipe, self.vocab, TorchNetwork(model)).evaluate(self.held_out)

    def showcase(self, model: EncoderDecoder) -> str:
        recipe = self.recipe
        language_model = LanguageModel(recipe, self.vocab, TorchNetwork(model))
        try:
            drawn = language_model.sample(recipe.sample, length=recipe.sample_length)[0]
        except UserError:  # the recipe's prompt has characters that this text lacks
            drawn = language_model.sample("", length=recipe.sample_length)[0]
        return "\n".join("    │ " + line for line in drawn.text.strip("\n").split("\n"))


@dataclass(frozen=True)
class StreamEpoch:
    """Parallel readers of one long text, read as a ring."""

    tokens: Tokens
    starts: Tokens  # (streams,)
    steps: int
    length: int

    def __len__(self) -> int:
        return self.steps

    def __getitem__(self, position: int) -> Batch:
        import torch

        from sightline.nn.model import Batch

        offsets = self.starts[:, None] + position * self.length + np.arange(self.length + 1)
        block = self.tokens[offsets % len(self.tokens)]  # (streams, length + 1)
        first = int(self.starts[0]) + position * self.length
        return Batch(torch.from_numpy(block), name=f"the streams at token {first} and on")


@dataclass(frozen=True)
class LineEpoch:
    """Lines in minibatches."""

    lines: list[list[int]]
    batches: batching.Batches

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, position: int) -> Batch:
        from sightline.nn.model import Batch, pad

        members = self.batches[position]
        shown = ", ".join(str(i + 1) for i in members[:8])
        name = f"lines {shown}{' …' if len(members) > 8 else ''} (counting those with text)"
        return Batch(pad([self.lines[i] for i in members]), name=name)


def build_model(recipe: LanguageModelRecipe, vocab: Vocabulary) -> EncoderDecoder:
    from sightline.nn.decoder import Decoder
    from sightline.nn.model import EncoderDecoder

    return EncoderDecoder(None, Decoder(recipe.model, len(vocab)), recipe.loss)


def target_vocabulary(recipe: LanguageModelRecipe) -> Vocabulary:
    """The tokens that the translator which this model is `like` writes."""
    if recipe.sequence != "line":
        raise ConfigError(
            "a language model like a translator's target is one of sentences; set sequence=line"
        )
    folder = zoo.find(recipe.like or "")
    task = config.top_level(folder / "config.yaml", "task")
    if task != "translate":
        raise ConfigError(
            f"like={recipe.like} is a model of the task {task}; give one of the task translate"
        )
    return Vocabulary.load(folder / VOCAB)


def split_text(recipe: LanguageModelRecipe) -> tuple[str, str]:
    """The text to train on and the held-out one."""
    text = read_text(recipe.text)
    if recipe.held_out_text is not None:
        return text, read_text(recipe.held_out_text)
    if not 0 < recipe.held_out < 1:
        raise UserError(f"held_out={recipe.held_out}: give a part between 0 and 1")
    cut = int(len(text) * (1 - recipe.held_out))
    if not text[:cut].strip() or not text[cut:].strip():
        raise DataError(f"{recipe.text} is too short to keep {recipe.held_out:.0%} of it aside")
    return text[:cut], text[cut:]


def load_language_model(
    folder: Path, recipe: LanguageModelRecipe, device: torch.device
) -> LanguageModel:
    """The language model that a checkpoint holds."""
    from sightline.training import checkpoint

    vocab = Vocabulary.load(folder / VOCAB)
    model = build_model(recipe, vocab)
    checkpoint.load_weights(model, folder)
    return LanguageModel(recipe, vocab, TorchNetwork(model.to(device).eval()))


@dataclass(frozen=True)
class TorchNetwork:
    """A language model in PyTorch."""

    model: EncoderDecoder

    def stepper(self, begin: int, end: int | None, banned: Sequence[int]) -> Stepper:
        from sightline.nn.stepper import TorchStepper

        return TorchStepper(self.model, begin, end, banned)

    def stream_nats(self, tokens: Tokens, begin: int) -> tuple[float, int]:
        return _stream_nats(self.model, tokens, begin)

    def line_nats(self, lines: list[list[int]]) -> tuple[float, int]:
        return _line_nats(self.model, lines)


def _stream_nats(model: EncoderDecoder, tokens: Tokens, begin: int) -> tuple[float, int]:
    """Summed nats of a text, read in parts side by side, each after the context before it."""
    import torch

    from sightline.nn.model import Batch

    length, device = EVALUATION_LENGTH, next(model.parameters()).device
    parts = max(1, min(EVALUATION_STREAMS, len(tokens) // (2 * length)))
    share = -(-len(tokens) // parts)  # rounded up: the last part is padded, and padding not scored
    before, after = np.full(length + 1, begin), np.zeros(parts * share - len(tokens), np.int64)
    padded = np.concatenate([before, tokens, after])
    nats, count, state = 0.0, 0, None
    with torch.inference_mode():
        model.eval()
        for at in range(0, length + share, length):
            steps = np.arange(at, min(at + length, length + share) + 1)
            block = torch.from_numpy(padded[np.arange(parts)[:, None] * share + steps])
            loss, state = model.loss(Batch(block.to(device)), state)
            if at == 0:  # the first part has no text before it: begin it from zero
                for tensor in state.recurrent:
                    tensor[:, 0] = 0
            else:
                nats, count = nats + loss.nats, count + loss.tokens
    return nats, count


def _line_nats(model: EncoderDecoder, lines: list[list[int]]) -> tuple[float, int]:
    import torch

    nats, count = 0.0, 0
    device = next(model.parameters()).device
    epoch = LineEpoch(lines, batching.token_budget([len(line) for line in lines], 8192, 0, 0))
    with torch.inference_mode():
        model.eval()
        for position in range(len(epoch)):
            loss, _ = model.loss(epoch[position].to(device))
            nats, count = nats + loss.nats, count + loss.tokens
    return nats, count
