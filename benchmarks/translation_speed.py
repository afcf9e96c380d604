"""Source sentences per second at beam 5, against its matrix products at this machine's peak.

    python -m benchmarks.translation_speed [MODEL FILE] [repeats]

MODEL is a run or an export, FILE has one source sentence a line. Without them: an untrained model
of the sizes of multi30k-en-de on made-up sentences of Multi30k's lengths, whose outputs are cut
where Multi30k's end on average. Translating is whole: tokens, search in batches of sentences of
about one length, and text with its attention. Translating and the peak are measured in turns.
"""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray

import sightline
from benchmarks import machine
from sightline.commands.recipes import SHIPPED
from sightline.data.sentences import Sentences
from sightline.data.vocabulary import SPECIALS, Vocabulary
from sightline.media.text import read_lines
from sightline.nn.recurrent import GATES
from sightline.runtime.describer import Describer
from sightline.search.steppers import State, StepResult, Wrapper
from sightline.tasks import read_recipe, spec_of
from sightline.tasks.translate.model import build_model
from sightline.tasks.translate.parts import SentenceReader, TranslationCodec
from sightline.tasks.translate.recipe import TranslateRecipe
from sightline.training.load import describer_of
from sightline.types import ContextSet, Inputs

BEAM = 5
SENTENCES = 512
WRITTEN = 16  # tokens, of an untrained model's outputs


class Counted(Wrapper):
    """The encoder and the stepper of a translator, counting what goes through them."""

    def __init__(self, translator: Describer) -> None:
        super().__init__(translator.stepper)
        self.encoder = translator.encoder
        self.positions = 0  # source tokens read, the padding included
        self.rows = 0  # tokens fed
        self.looks = 0  # positions looked at, over all rows
        self.width = 0

    def encode(self, inputs: Inputs) -> ContextSet:
        assert self.encoder is not None
        self.positions += inputs["tokens"].values.size
        return self.encoder.encode(inputs)

    def start(self, context: ContextSet) -> State:
        self.width = context.mask.shape[1]
        return super().start(context)

    def step(self, state: State, tokens: NDArray[np.int64]) -> StepResult:
        self.rows, self.looks = self.rows + len(tokens), self.looks + len(tokens) * self.width
        return super().step(state, tokens)


def products(recipe: TranslateRecipe, vocab_size: int, counted: Counted) -> dict[str, float]:
    """FLOPs of the matrix products, as the equations have them."""
    read, model = recipe.encoder, recipe.model
    ways = 2 if read.bidirectional else 1
    size = ways * read.hidden  # D
    below = [read.embedding] + [size] * (read.layers - 1)
    cells = sum(ways * GATES[read.cell] * read.hidden * (x + read.hidden) for x in below)
    hidden, embedding, look = model.hidden, model.embedding, model.attention
    fed = embedding + (size if look.kind != "none" else 0)
    fed += embedding if "every" in model.context else 0
    inputs = [fed] + [hidden] * (model.layers - 1)
    steps = sum(GATES[model.cell] * hidden * (x + hidden) for x in inputs)
    counts = {
        "encoder": cells * counted.positions,
        "decoder's cell": steps * counted.rows,
        "output layer": (embedding if model.output == "deep" else hidden)
        * vocab_size
        * counted.rows,
    }
    if model.output == "deep":
        counts["deep output"] = hidden * embedding * counted.rows
    if look.kind != "none":
        counts["attention"] = (
            size * look.size * counted.positions
            + hidden * look.size * counted.rows
            + (look.size + size) * counted.looks
        )
        if model.output == "deep":
            counts["deep output"] += size * embedding * counted.rows
    return {name: 2.0 * count for name, count in counts.items()}


def untrained() -> tuple[Describer, list[str]]:
    """A model of the recipe's sizes, and sentences for it."""
    torch.manual_seed(0)
    recipe = cast(TranslateRecipe, read_recipe(SHIPPED / "multi30k-en-de.yaml"))
    recipe = replace(recipe, search=replace(recipe.search, max_length=WRITTEN))
    words = [f"w{number}" for number in range(recipe.target.size - len(SPECIALS))]
    vocab = Vocabulary("word", [*SPECIALS, *words])
    side = Sentences(vocab)
    model = build_model(recipe, vocab, vocab).eval()
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.normal(14, 4, SENTENCES).astype(int), 4, 40)
    texts = [" ".join(rng.choice(words, length)) for length in lengths]
    reader = SentenceReader(side, recipe.longest)
    codec = TranslationCodec(side, recipe, True, {})
    return describer_of(spec_of(recipe.task), recipe, reader, codec, model), texts


def main() -> None:
    arguments: list[Any] = sys.argv[1:]
    given = len(arguments) >= 2
    repeats = int(arguments.pop()) if len(arguments) in (1, 3) else 3
    if given:
        translator, texts = sightline.load(arguments[0]), read_lines(Path(arguments[1]))
    else:
        translator, texts = untrained()
    counted = Counted(translator)
    counting = replace(translator, stepper=counted, encoder=counted)
    described = counting.describe(texts, beam=BEAM)  # warms up and counts
    flops = products(translator.recipe, counted.vocab_size, counted)
    tokens = sum(len(each.tokens) for each in described)
    square = torch.randn(2048, 2048)
    best = peak = float("inf")
    for _ in range(repeats):
        for _ in range(3):
            began = time.perf_counter()
            square @ square
            peak = min(peak, time.perf_counter() - began)
        began = time.perf_counter()
        translator.describe(texts, beam=BEAM)
        best = min(best, time.perf_counter() - began)
    speed = 2 * 2048**3 / peak  # FLOP per second
    floor = sum(flops.values()) / speed

    print(machine.describe())
    print(f"torch: {torch.get_num_threads()} threads, peak {speed / 1e9:.0f} GFLOP/s")
    what = arguments[0] if given else f"untrained, outputs of at most {WRITTEN} tokens"
    print(f"{what}: {len(texts)} sentences, {tokens} tokens written, {counted.rows} rows stepped\n")
    print(f"{len(texts) / best:.0f} sentences per second at beam {BEAM}")
    print(f"{best:.2f} s, {best / floor:.2f} × its matrix products at the peak ({floor:.2f} s):")
    for name, count in sorted(flops.items(), key=lambda each: -each[1]):
        print(f"  {name:<16} {count / 1e9:8.1f} GFLOP  {count / sum(flops.values()):5.1%}")


if __name__ == "__main__":
    main()
