"""A toy task for the training loop: write a string of symbols backwards."""

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
        lengths = (rng.integers(4, 13) for _ in range(recipe.examples + 200))
        texts = ["".join(rng.choice(list(SYMBOLS), size=length)) for length in lengths]
        self.train, self.held_out = texts[: recipe.examples], texts[recipe.examples :]
        self.fingerprint = hashlib.sha256(repr(self.train).encode()).hexdigest()

    def prepare(self):
        pass

    def build_model(self):
        encoder = TextEncoder(self.recipe.encoder, len(self.vocab))
        decoder = Decoder(self.recipe.model, len(self.vocab), encoder.dimension)
        share = self.recipe.training.scheduled_sampling
        return EncoderDecoder(encoder, decoder, Likelihood(self.recipe.loss, share))

    def inputs(self, texts):
        tokens = Stream.ragged([np.array(self.vocab.encode(text), np.int64) for text in texts])
        return Inputs(len(texts), {"tokens": tokens}).map(torch.from_numpy)

    def batch(self, texts):
        targets = [[BEGIN, *self.vocab.encode(text[::-1]), END] for text in texts]
        return Batch(pad(targets), self.inputs(texts), name=f"{texts[0]} and others")

    def epoch(self, number):
        batches = batching.same_length([len(text) for text in self.train], 64, 1, number)
        return [self.batch([self.train[i] for i in rows]) for rows in batches]

    def evaluate(self, model):
        options = search.BeamOptions(size=3, max_length=15)
        context = TorchEncoder(model).encode(self.inputs(self.held_out))
        results = search.finish(search.beam(TorchStepper(model), context, options))
        written = [self.vocab.decode(hypotheses[0].tokens) for hypotheses in results]
        right = [w == text[::-1] for w, text in zip(written, self.held_out, strict=True)]
        loss, _ = model.loss(self.batch(self.held_out))  # the loop computes no gradients here
        return {"loss": loss.nats / loss.tokens, "exact": float(np.mean(right))}

    def samples(self, model):
        return []
