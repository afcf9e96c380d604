"""How describing grows: with pictures, places, beam, vocabulary and caption length.

python -m benchmarks.growth

One untrained captioner's decoder of the shipped sizes, exported and searched on random vectors;
captions never end before they are cut, so that every search takes the same number of steps.
Each row doubles one size and keeps the others; the last column is what the doubling costs: 2 is
in proportion, 1 is nothing.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import torch

from benchmarks import machine
from sightline import search
from sightline.config import AttentionConfig, DecoderConfig
from sightline.data.vocabulary import BEGIN, END
from sightline.export.graphs import start_graph, step_graph
from sightline.nn.decoder import Decoder
from sightline.runtime.model_folder import START, STEP, Export
from sightline.runtime.onnx import OnnxStepper
from sightline.types import ContextSet

VECTOR = 1280  # numbers of an annotation vector
CONFIG = DecoderConfig(embedding=384, hidden=512, attention=AttentionConfig(size=384))


@dataclass(frozen=True)
class Sizes:
    """What one search is of."""

    pictures: int = 4  # searched together
    places: int = 81
    beam: int = 5
    vocabulary: int = 3000
    length: int = 10


DOUBLED = {
    "pictures": (1, 2, 4, 8, 16),
    "places": (49, 98, 196, 392),
    "beam": (1, 2, 4, 8, 16),
    "vocabulary": (1500, 3000, 6000, 12000, 24000),
    "length": (5, 10, 20, 40),
}


def main() -> None:
    print(machine.describe())
    for name, values in DOUBLED.items():
        others = {key: value for key, value in vars(Sizes()).items() if key != name}
        print(f"\n{name}, with " + ", ".join(f"{value} {key}" for key, value in others.items()))
        before = 0.0
        for value in values:
            now = seconds(replace(Sizes(), **{name: value}))
            ratio = f"× {now / before:.2f}" if before else ""
            print(f"  {value:>8}{1000 * now:>12.1f} ms{ratio:>12}", flush=True)
            before = now


def seconds(sizes: Sizes, repeats: int = 4) -> float:
    """The least that the search of a batch takes, its start included."""
    stepper = untrained(sizes.vocabulary)
    rng = np.random.default_rng(0)
    vectors = rng.random((sizes.pictures, sizes.places, VECTOR), np.float32)
    context = ContextSet(vectors, np.ones(vectors.shape[:2], dtype=bool))
    options = search.BeamOptions(max_length=sizes.length, size=sizes.beam)
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        search.finish(search.beam(stepper, context, options))
        times.append(time.perf_counter() - began)
    return min(times)


@cache
def untrained(vocabulary: int) -> OnnxStepper:
    """An exported decoder that never ends by itself."""
    torch.manual_seed(0)
    decoder = Decoder(CONFIG, vocabulary, VECTOR).eval()
    graphs = {STEP: step_graph(decoder, "int16"), START: start_graph(decoder, VECTOR, "int16")}
    content = {name: graph.SerializeToString() for name, graph in graphs.items()}
    return OnnxStepper(Export(Path(), {}, content), BEGIN, END).without([END])


if __name__ == "__main__":
    main()
