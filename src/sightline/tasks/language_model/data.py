"""What a language model is trained on: a text, as parallel streams or line by line."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from sightline import config
from sightline.data import batching
from sightline.data.vocabulary import VOCAB, Vocabulary
from sightline.errors import ConfigError, DataError, UserError
from sightline.runtime.model_folder import find_model
from sightline.tasks.data import Minibatches, TaskData, nats_per_token, some_names
from sightline.tasks.language_model import parts
from sightline.tasks.language_model.parts import PromptReader, TextCodec, Tokens, held_out, scores
from sightline.tasks.language_model.recipe import LanguageModelRecipe
from sightline.types import Inputs

if TYPE_CHECKING:
    from sightline.nn.model import Batch, EncoderDecoder


class TextData(TaskData):
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
        self.reader = PromptReader(self.codec)
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
            content = repr(self.lines).encode()
        self.fingerprint = hashlib.sha256(content).hexdigest()

    def build_model(self) -> EncoderDecoder:
        from sightline.tasks.language_model.model import build_model

        return build_model(self.recipe, self.vocab)

    def epoch(self, number: int) -> Minibatches:
        recipe = self.recipe
        if not self.carries_state:
            return Minibatches(self.drawn([len(line) for line in self.lines], number), self._batch)
        tokens, length = self.tokens, recipe.length
        starts, steps = batching.stream_starts(
            len(tokens), recipe.streams, length, recipe.training.seed, number
        )

        def block(at: int, position: int) -> Batch:
            """Parallel readers of one long text, read as a ring."""
            offsets = starts[:, None] + at + np.arange(length + 1)
            name = f"the streams from token {int(starts[0]) + at}"
            return _batch(tokens[offsets % len(tokens)], name)  # (streams, length + 1)

        return Minibatches(range(0, steps * length, length), block)

    def _batch(self, members: Sequence[int], position: int) -> Batch:
        shown = some_names([i + 1 for i in members], 8)
        lines = [self.lines[i] for i in members]
        return _batch(lines, f"lines {shown} (counting those with text)")

    def evaluate(self, model: EncoderDecoder) -> dict[str, float]:
        if self.carries_state:
            nats, count = _stream_nats(model, self.codec.stream(self.held_out), self.codec.begin)
            return scores(nats / max(1, count))
        lines = self.codec.lines(self.held_out)
        batches = batching.token_budget([len(line) for line in lines], 8192, 0, 0)
        return scores(nats_per_token(model, (_batch([lines[i] for i in b]) for b in batches)))

    @property
    def sizes(self) -> dict[str, int]:
        read = len(self.tokens) if self.carries_state else sum(map(len, self.lines))
        return {"tokens of text": read, **super().sizes}

    def samples(self, model: EncoderDecoder) -> Sequence[str]:
        describer, length = self.describer(model), self.recipe.sample_length
        try:
            drawn = describer.describe(self.recipe.sample, length=length)
        except UserError:  # the recipe's prompt has characters that this text lacks
            drawn = describer.describe("", length=length)
        return ["\n".join("    │ " + line for line in drawn.text.strip("\n").split("\n"))]


def _batch(tokens: Tokens | list[list[int]], name: str = "") -> Batch:
    import torch

    from sightline.nn.model import Batch, pad

    targets = pad(tokens) if isinstance(tokens, list) else torch.from_numpy(tokens)
    return Batch(targets, Inputs(len(tokens)), name)


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

    length, device = parts.EVALUATION_LENGTH, next(model.parameters()).device
    rows = max(1, min(parts.EVALUATION_STREAMS, len(tokens) // (2 * length)))
    share = -(-len(tokens) // rows)  # rounded up: the last part is padded, and padding not scored
    before, after = np.full(length + 1, begin), np.zeros(rows * share - len(tokens), np.int64)
    padded = np.concatenate([before, tokens, after])
    nats, count, state = 0.0, 0, None
    with torch.inference_mode():
        model.eval()
        for at in range(0, length + share, length):
            steps = np.arange(at, min(at + length, length + share) + 1)
            block = _batch(padded[np.arange(rows)[:, None] * share + steps])
            loss, state = model.loss(block.to(device), state)
            assert state is not None
            if at == 0:  # the first part has no text before it: begin it from zero
                for tensor in state.recurrent:
                    tensor[:, 0] = 0
            else:
                nats, count = nats + loss.nats, count + loss.tokens
    return nats, count
