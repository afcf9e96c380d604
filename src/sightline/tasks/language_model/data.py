"""What a language model is trained on: a text, as parallel streams or line by line."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from sightline import config
from sightline.data import batching
from sightline.data.vocabulary import VOCAB, Vocabulary
from sightline.errors import ConfigError, DataError, UserError
from sightline.runtime.describer import Describer
from sightline.runtime.model_folder import find_model
from sightline.tasks.language_model.parts import (
    EVALUATION_LENGTH,
    EVALUATION_STREAMS,
    PromptReader,
    TextCodec,
    Tokens,
    held_out,
    scores,
)
from sightline.tasks.language_model.recipe import LanguageModelRecipe
from sightline.types import Inputs

if TYPE_CHECKING:
    from sightline.nn.model import Batch, EncoderDecoder


class TextData:
    """Trains a language model on the text that its recipe names."""

    metrics = ("loss", "bits", "perplexity")

    def __init__(self, recipe: LanguageModelRecipe) -> None:
        given = target_vocabulary(recipe) if recipe.like is not None else None
        train, self.held_out = held_out(recipe)
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
        self.codec = TextCodec(recipe, self.vocab)
        self.carries_state = recipe.sequence == "stream"
        if self.carries_state:
            self.tokens = self.codec.stream(train)
            needed = recipe.streams * (recipe.length + 1)
            if len(self.tokens) < needed:
                raise DataError(
                    f"{recipe.text} has {len(self.tokens)} tokens to train on; streams × length "
                    f"asks for {needed}: lower `streams` or `length`"
                )
            content = self.tokens.tobytes()
        else:
            self.lines = self.codec.lines(train)
            self.lengths = [len(line) for line in self.lines]
            content = repr(self.lines).encode()
        self.fingerprint = hashlib.sha256(content).hexdigest()

    def prepare(self) -> None:
        """Nothing: a text is read as it is."""

    def build_model(self) -> EncoderDecoder:
        from sightline.tasks.language_model.model import build_model

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

    def evaluate(self, model: EncoderDecoder) -> dict[str, float]:
        if self.carries_state:
            nats, count = _stream_nats(model, self.codec.stream(self.held_out), self.codec.begin)
        else:
            nats, count = _line_nats(model, self.codec.lines(self.held_out))
        return scores(nats / max(1, count))

    def samples(self, model: EncoderDecoder) -> str:
        describer, length = self._describer(model), self.recipe.sample_length
        try:
            drawn = describer.describe(self.recipe.sample, length=length)
        except UserError:  # the recipe's prompt has characters that this text lacks
            drawn = describer.describe("", length=length)
        return "\n".join("    │ " + line for line in drawn.text.strip("\n").split("\n"))

    def _describer(self, model: EncoderDecoder) -> Describer:
        from sightline.tasks import spec_of
        from sightline.training.load import describer_of

        spec = spec_of(self.recipe.task)
        return describer_of(spec, self.recipe, PromptReader(self.codec), self.codec, model)


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
        name = f"the streams from token {first}"
        return Batch(torch.from_numpy(block), Inputs(len(block)), name)


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
        return Batch(pad([self.lines[i] for i in members]), Inputs(len(members)), name)


def target_vocabulary(recipe: LanguageModelRecipe) -> Vocabulary:
    """The tokens that the translator which this model is `like` writes."""
    if recipe.sequence != "line":
        raise ConfigError(
            "a language model like a translator's target is one of sentences; set sequence=line"
        )
    folder = find_model(recipe.like or "")
    task = config.top_level(folder / "config.yaml", "task")
    if task != "translate":
        raise ConfigError(
            f"like={recipe.like} is a model of the task {task}; give one of the task translate"
        )
    return Vocabulary.load(folder / VOCAB)


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
            loss, state = model.loss(Batch(block, Inputs(parts)).to(device), state)
            assert state is not None
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
