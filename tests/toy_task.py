"""A toy task for the training loop: write a string of symbols backwards (or copy it)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import numpy as np
import torch

from sightline import search
from sightline.config import (
    AttentionConfig,
    DecoderConfig,
    LossConfig,
    OptimiserConfig,
    RecurrentConfig,
    TrainingConfig,
)
from sightline.data import batching
from sightline.data.vocabulary import BEGIN, END, SPECIALS, Vocabulary
from sightline.nn.decoder import Decoder
from sightline.nn.encoders.text import TextEncoder
from sightline.nn.model import Batch, EncoderDecoder, pad
from sightline.nn.objectives import Likelihood
from sightline.nn.stepper import TorchEncoder, TorchStepper
from sightline.types import Inputs, Stream

SYMBOLS = "abcdefghij"


@dataclass(frozen=True)
class ToyRecipe:
    reverse: bool = True
    shortest: int = 4
    longest: int = 12
    examples: int = 4000
    encoder: RecurrentConfig = field(
        default_factory=lambda: RecurrentConfig(embedding=24, hidden=32)
    )
    model: DecoderConfig = field(
        default_factory=lambda: DecoderConfig(
            cell="gru", embedding=24, hidden=48, attention=AttentionConfig(size=48)
        )
    )
    loss: LossConfig = field(default_factory=LossConfig)
    training: TrainingConfig = field(
        default_factory=lambda: TrainingConfig(
            steps=400,
            evaluate_every=400,
            select="exact",
            tensorboard=False,
            optimiser=OptimiserConfig(learning_rate=5e-3),
        )
    )


class ToyTask:
    carries_state = False
    metrics = ("loss", "exact")

    def __init__(self, recipe: ToyRecipe) -> None:
        self.recipe = recipe
        self.vocab = Vocabulary("char", (*SPECIALS, *SYMBOLS))
        self.files = {"vocab.json": self.vocab.to_json()}
        rng = np.random.default_rng(0)
        self.train = [self._draw(rng) for _ in range(recipe.examples)]
        self.held_out = [self._draw(rng) for _ in range(200)]
        self.fingerprint = hashlib.sha256(repr(self.train).encode()).hexdigest()

    def _draw(self, rng):
        length = rng.integers(self.recipe.shortest, self.recipe.longest + 1)
        return "".join(rng.choice(list(SYMBOLS), size=length))

    def answer(self, text):
        return text[::-1] if self.recipe.reverse else text

    def prepare(self):
        pass

    def build_model(self) -> EncoderDecoder:
        encoder = TextEncoder(self.recipe.encoder, len(self.vocab))
        decoder = Decoder(self.recipe.model, len(self.vocab), encoder.dimension)
        share = self.recipe.training.scheduled_sampling
        return EncoderDecoder(encoder, decoder, Likelihood(self.recipe.loss, share))

    def inputs(self, texts):
        tokens = Stream.ragged([np.array(self.vocab.encode(text), np.int64) for text in texts])
        return Inputs(len(texts), {"tokens": tokens}).map(torch.from_numpy)

    def epoch(self, number):
        task = self

        class Epoch:
            batches = batching.same_length([len(t) for t in task.train], 64, 1, number)

            def __len__(self):
                return len(self.batches)

            def __getitem__(self, position):
                texts = [task.train[i] for i in self.batches[position]]
                targets = [[BEGIN, *task.vocab.encode(task.answer(t)), END] for t in texts]
                return Batch(pad(targets), task.inputs(texts), name=f"{texts[0]} and others")

        return Epoch()

    def evaluate(self, model):
        stepper = TorchStepper(model)
        options = search.BeamOptions(size=3, max_length=self.recipe.longest + 3)
        context = TorchEncoder(model).encode(self.inputs(self.held_out))
        results = search.finish(search.beam(stepper, context, options))
        written = [self.vocab.decode(hypotheses[0].tokens) for hypotheses in results]
        right = [w == self.answer(t) for w, t in zip(written, self.held_out, strict=True)]
        with torch.no_grad():
            targets = [[BEGIN, *self.vocab.encode(self.answer(t)), END] for t in self.held_out]
            loss, _ = model.loss(Batch(pad(targets), self.inputs(self.held_out)))
        return {"loss": loss.nats / loss.tokens, "exact": float(np.mean(right))}

    def samples(self, model):
        return ""
