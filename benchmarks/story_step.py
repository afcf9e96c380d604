"""A training step of a memory network: processor time a question, by batch size.

    OMP_NUM_THREADS=1 python -m benchmarks.story_step babi.jsonl [--steps 30]

Recipe `babi-joint`: a batch prepared, its loss and gradient, and the optimiser's step; with each
sentence of a batch read once, as in training, and with every sentence read where it stands.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor

from benchmarks import machine
from sightline.commands.recipes import find_recipe
from sightline.nn import memory
from sightline.tasks import build_task, read_recipe
from sightline.training.optimisers import build_optimiser, clip_gradient


def every_row(sentences: Tensor) -> tuple[Tensor, Tensor]:
    return sentences, torch.arange(len(sentences))


def measured(manifest: Path, size: int, steps: int) -> tuple[float, float]:
    """Microseconds a question: to prepare it, and to learn from it."""
    given = [f"manifest={manifest}", f"batching.size={size}"]
    task = build_task(read_recipe(find_recipe(Path("babi-joint")), given))
    torch.manual_seed(0)
    model: Any = task.build_model()
    model.train()
    optimiser = build_optimiser(task.recipe.training.optimiser, model)
    epoch, prepared, learned, questions = task.epoch(0), 0.0, 0.0, 0
    for position in range(steps + 2):  # the first two have things to set up
        began = time.process_time()
        batch = epoch[position]
        ready = time.process_time()
        loss, _ = model.loss(batch)
        optimiser.zero_grad()
        loss.total.backward()
        clip_gradient(model.parameters(), 40)
        optimiser.step()
        if position >= 2:
            learned += time.process_time() - ready
            prepared += ready - began
            questions += len(batch.targets)
    return 1e6 * prepared / questions, 1e6 * learned / questions


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("manifest", type=Path)
    options.add_argument("--steps", type=int, default=30)
    given = options.parse_args()
    print(machine.describe())
    for size in (32, 64, 128):
        prepared, once = measured(given.manifest, size, given.steps)
        with patch.object(memory, "_distinct", every_row):
            _, each = measured(given.manifest, size, given.steps)
        print(
            f"batches of {size}: {prepared:.0f} µs to prepare a question, {once:.0f} to learn from "
            f"it, {each:.0f} with every sentence read where it stands ({each / once:.1f} times)",
            flush=True,
        )


if __name__ == "__main__":
    main()
