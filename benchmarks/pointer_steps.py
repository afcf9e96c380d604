"""Processor time of a pointer network's training step, by its parts, all measured in turns.

python -m benchmarks.pointer_steps [repeats]

64 hulls of 27 points; forward, backward and the optimiser's step; the best of `repeats`.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from torch import Tensor

from benchmarks import machine
from sightline.commands.recipes import find_recipe
from sightline.nn.kernels import fused
from sightline.nn.kernels.additive import CompiledScorer, Scorer, scorer
from sightline.nn.kernels.malloc import keep_freed_memory
from sightline.tasks import build_task, read_recipe
from sightline.training.optimisers import build_optimiser

ROWS, POINTS, REPEATS = 64, 27, 10
LSTM = ("encoder.bidirectional=true", "model.hidden=256", "model.attention.size=128")
GLIMPSE = ("model.attention.kind=content",)
KINDS: dict[str, tuple[str, tuple[str, ...]]] = {
    "LSTM encoder, attention before each step too": ("hull-recurrent", (*LSTM, *GLIMPSE)),
    "LSTM encoder, only the pointer": ("hull-recurrent", LSTM),
    "LSTM encoder, decoder of half the size": ("hull-sorted", ()),
    "set encoder": ("hull", ()),
}


def step_of(name: str, overrides: tuple[str, ...]) -> Callable[[], None]:
    sizes = [f"sizes=[{POINTS},{POINTS}]", f"batch={ROWS}"]
    recipe = read_recipe(find_recipe(Path(name)), [*sizes, *overrides])
    task = build_task(recipe)
    batch = task.epoch(0)[0]
    model: Any = task.build_model()
    optimiser = build_optimiser(recipe.training.optimiser, model)

    def step() -> None:
        loss, _ = model.loss(batch, None)
        optimiser.zero_grad(set_to_none=True)
        loss.total.backward()
        optimiser.step()

    return step


def by_tiles(keys: Tensor, score: Tensor, each: int, many: bool) -> Scorer | CompiledScorer:
    """As it was: the scores of a pointer without the kernel for many queries to each key."""
    return scorer(keys, score, each, many=False)


def seconds(step: Callable[[], None]) -> float:
    began = time.process_time()
    step()
    return time.process_time() - began


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else REPEATS
    keep_freed_memory()
    print(machine.describe())
    steps = {name: step_of(*kind) for name, kind in KINDS.items()}
    slow = patch.object(fused, "scorer", by_tiles)
    best: dict[tuple[str, str], float] = {}
    for repeat in range(repeats + 1):
        for name, step in steps.items():
            with slow:
                before = seconds(step)
            for kind, value in (("by tiles", before), ("compiled", seconds(step))):
                if repeat:  # the first has things to set up
                    best[name, kind] = min(value, best.get((name, kind), value))
    first = max(best.values())
    for (name, kind), value in best.items():
        print(f"{name}, scores {kind}: {1000 * value:.0f} ms ({first / value:.1f} ×)")


if __name__ == "__main__":
    main()
