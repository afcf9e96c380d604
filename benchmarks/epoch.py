"""An epoch of the recipe that ships, against the same epoch by the straightforward loop.

    python -m benchmarks.epoch [batches]

The sizes are those of recipes/flickr8k-lite.yaml: 16 pictures in a batch, the five captions of each
together, 9 × 9 places of 1,280 numbers; captions are random words, as many as Flickr8k's have.
Measured is the decoder on vectors that are given: forward pass, loss with penalty and smoothing,
backward pass. Reading the vectors, the encoder's upper half and the optimiser are left out: they
are the same whatever the decoder does. The straightforward loop has a row with a copy of the
vectors for each caption, reads all rows to the end of the longest and leaves gradients to autograd.
Every tenth or so of an epoch's batches is taken; all things are measured in turns.
"""

from __future__ import annotations

import sys

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks import machine
from benchmarks.training_step import Work, best_of, straightforward
from sightline.commands.recipes import SHIPPED
from sightline.data.batching import similar_length
from sightline.data.vocabulary import BEGIN, END, PAD
from sightline.nn.decoder import Decoder
from sightline.nn.kernels.malloc import keep_freed_memory
from sightline.nn.losses import doubly_stochastic, sequence_loss
from sightline.nn.model import pad
from sightline.tasks import read_recipe
from sightline.types import ContextSet

PICTURES, CAPTIONS = 6000, 5
PLACES, DEPTH, VOCABULARY = 81, 1280, 2924
LENGTH, SPREAD = 10.8, 3.7  # words of Flickr8k's captions: mean, standard deviation
RECIPE = read_recipe(SHIPPED / "flickr8k-lite.yaml")
BATCH = RECIPE.batching.size
TURNS = 2


def batches(count: int) -> tuple[list[Tensor], int]:
    """Token batches (N, T + 1) of an epoch, `count` of them, and how many it has in all."""
    rng = np.random.default_rng(0)
    lengths = rng.normal(LENGTH, SPREAD, (PICTURES, CAPTIONS)).round().clip(3, 30).astype(int)
    drawn = similar_length(lengths.max(1).tolist(), BATCH, 0, 0)
    full = [batch for batch in drawn if len(batch) == BATCH]
    chosen = full[:: max(1, len(full) // count)][:count]  # their order is random
    return [pad([words(rng, n) for n in lengths[batch].flat]) for batch in chosen], len(drawn)


def words(rng: np.random.Generator, count: int) -> list[int]:
    return [BEGIN, *rng.integers(4, VOCABULARY, count).tolist(), END]


def ours(decoder: Decoder, tokens: Tensor, values: Tensor) -> None:
    decoder.zero_grad()
    context = ContextSet(values, torch.ones(values.shape[:2], dtype=torch.bool))
    state = decoder.start(context, per_example=len(tokens) // len(values))
    decoded = decoder(tokens[:, :-1], state)
    sequence_loss(decoder, decoded, tokens[:, 1:], RECIPE.loss)[1].total.backward()


def plain(decoder: Decoder, tokens: Tensor, values: Tensor, once: bool) -> None:
    decoder.zero_grad()
    copies = values.repeat_interleave(len(tokens) // len(values), 0)
    targets = tokens[:, 1:]
    logits, weights = straightforward(decoder, tokens[:, :-1], copies, once)
    loss = F.cross_entropy(
        logits.flatten(0, 1),
        targets.flatten(),
        ignore_index=PAD,
        label_smoothing=RECIPE.loss.label_smoothing,
    )
    penalty = doubly_stochastic(weights, targets != PAD).sum() / (targets != PAD).sum()
    (loss + RECIPE.loss.doubly_stochastic * penalty).backward()


def main() -> None:
    taken, number = batches(int(sys.argv[1]) if len(sys.argv) > 1 else 36)
    keep_freed_memory()
    torch.manual_seed(0)
    decoder = Decoder(RECIPE.model, VOCABULARY, DEPTH).train()
    values = torch.randn(BATCH, PLACES, DEPTH).relu()
    ways = {
        "ours": lambda tokens: ours(decoder, tokens, values),
        "straightforward, keys once": lambda tokens: plain(decoder, tokens, values, True),
        "straightforward, keys at every step": lambda tokens: plain(decoder, tokens, values, False),
    }
    totals = dict.fromkeys(ways, 0.0)
    for tokens in taken:
        work: Work = {name: lambda way=way, x=tokens: way(x) for name, way in ways.items()}  # type: ignore[misc]
        for name, milliseconds in best_of(work, TURNS).items():
            totals[name] += milliseconds
    read = sum(int((tokens[:, 1:] != PAD).sum()) for tokens in taken)
    steps = sum(tokens[:, 1:].numel() for tokens in taken)

    print(machine.describe())
    print(f"{BATCH} pictures × {CAPTIONS} captions, {PLACES} places of {DEPTH}; decoder alone;")
    print(f"{len(taken)} of {number} batches; {read / steps:.0%} of their places hold words\n")
    print(f"{'the decoder in an epoch':<38} {'s':>7}  × ours")
    for name, total in totals.items():
        seconds = total / 1e3 / len(taken) * number
        print(f"{name:<38} {seconds:7.0f}  {total / totals['ours']:5.1f}")


if __name__ == "__main__":
    main()
