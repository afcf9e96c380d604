"""Training tokens per second with 30,000 target words: the full softmax and the sampled one.

    python -m benchmarks.sampled_softmax [recipe] [repeats]

Whole training steps (loss, gradient, clipping, optimiser) of a translator of the recipe's sizes
(multi30k-en-de by default; wmt-en-fr is the papers'), on made-up sentences whose words are as
frequent as words are. The kinds take turns in one run, each with the best time of `repeats`, so
that the ratio holds on a busy machine too.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from typing import cast

import torch

from benchmarks import machine
from sightline.commands.recipes import SHIPPED
from sightline.data.vocabulary import BEGIN, END, SPECIALS
from sightline.nn.decoder import Decoder
from sightline.nn.encoders.text import TextEncoder
from sightline.nn.heads import draw_log_uniform
from sightline.nn.kernels.malloc import keep_freed_memory
from sightline.nn.model import Batch, EncoderDecoder
from sightline.nn.objectives import Likelihood
from sightline.tasks import read_recipe
from sightline.tasks.translate.recipe import TranslateRecipe
from sightline.training.optimisers import build_optimiser, clip_gradient
from sightline.types import Inputs, Stream

V = 30_000
LENGTH = 14  # tokens of a sentence of Multi30k, on either side
NEGATIVES = [0, 2000, 8000]  # 0: the full softmax


def zipf(rows: int) -> torch.Tensor:
    """Sentences of words drawn with probability about 1 / rank."""
    uniform = torch.rand(rows, LENGTH - 1, dtype=torch.float64)
    words = ((V - len(SPECIALS)) ** uniform).long() - 1 + len(SPECIALS)
    return torch.cat([words, torch.full((rows, 1), END)], 1)


def training_step(
    recipe: TranslateRecipe, negatives: int, batch: Batch
) -> tuple[Callable[[], None], int]:
    """One step of a model of its own, and its number of weights."""
    encoder = TextEncoder(recipe.encoder, V)
    config = replace(recipe.model, sampled_softmax=negatives)
    decoder = Decoder(config, V, encoder.dimension)
    model = EncoderDecoder(encoder, decoder, Likelihood()).train()
    settings = recipe.training.optimiser
    optimiser = build_optimiser(settings, model)

    def step() -> None:
        optimiser.zero_grad(set_to_none=True)
        model.loss(batch)[0].total.backward()
        clip_gradient(model.parameters(), settings.clip_norm)
        optimiser.step()

    return step, sum(p.numel() for p in model.parameters())


def main() -> None:
    name = sys.argv[1] if len(sys.argv) > 1 else "multi30k-en-de"
    repeats = int(sys.argv[2]) if len(sys.argv) > 2 else 5
    recipe = cast(TranslateRecipe, read_recipe(SHIPPED / f"{name}.yaml"))
    keep_freed_memory()
    torch.manual_seed(0)
    rows = recipe.batching.size // (2 * LENGTH)
    targets = torch.cat([torch.full((rows, 1), BEGIN), zipf(rows)], 1)
    batch = Batch(targets, Inputs(rows, {"tokens": Stream(zipf(rows))}))
    steps = {negatives: training_step(recipe, negatives, batch) for negatives in NEGATIVES}
    best = dict.fromkeys(NEGATIVES, float("inf"))
    for round_ in range(repeats + 1):  # the first one only warms up
        for negatives, (step, _) in steps.items():
            began = time.perf_counter()
            step()
            if round_:
                best[negatives] = min(best[negatives], time.perf_counter() - began)

    print(machine.describe())
    print(f"{name}: {steps[0][1] / 1e6:.1f} M weights, {V} words, {rows} pairs × {LENGTH} tokens,")
    print(
        f"{targets.unique().numel()} distinct targets; torch: {torch.get_num_threads()} threads\n"
    )
    print(f"{'softmax':<28} {'candidates':>10} {'s / step':>9} {'tokens/s':>9}  × full")
    for negatives in NEGATIVES:
        label, size = "full", V
        if negatives:
            label = f"sampled, {negatives} draws"
            drawn = draw_log_uniform(V, negatives, targets.device)[0]
            size = torch.cat([drawn, targets[:, 1:].flatten()]).unique().numel()
        speed = rows * LENGTH / best[negatives]
        ratio = best[0] / best[negatives]
        print(f"{label:<28} {size:>10} {best[negatives]:9.3f} {speed:9.0f}  {ratio:5.2f}")


if __name__ == "__main__":
    main()
