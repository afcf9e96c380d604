"""Whether several processes train what one does, and what is left of a run that is killed.

    python -m benchmarks.distributed [--steps 50] [--kills 10] [--out FOLDER]

Captioning with soft and with hard attention, self-critical training and translation, for 50 steps
on 1, 2 and 4 processes of this machine. `apart` is ‖w_N − w_1‖ / ‖w_1 − w_0‖ of all weights, where
w_0 began: which share of what was learnt differs. Then translation with dropout on two processes,
of which a random one is killed (SIGKILL) at a random moment, and resumed with 2, 1 or 4.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from safetensors.torch import load_file

from benchmarks import machine, processes
from benchmarks.data import data_path
from sightline.config import (
    AttentionConfig,
    BatchingConfig,
    DecoderConfig,
    HardConfig,
    ImageEncoderConfig,
    LossConfig,
    OptimiserConfig,
    RecurrentConfig,
    SearchConfig,
    TrainingConfig,
    VocabularyConfig,
)
from sightline.data.converters.published import flickr8k
from sightline.data.manifest import Example, write_manifest
from sightline.media.text import read_lines
from sightline.tasks import build_task
from sightline.tasks.caption.recipe import CaptionRecipe
from sightline.tasks.translate.recipe import TranslateRecipe
from sightline.training.checkpoint import Run
from sightline.training.loop import train

PHOTOS, PAIRS, DEV = 120, 2000, 10


def trainings(out: Path, steps: int) -> dict[str, Any]:
    """Recipes of the usual parts, small, on real data."""
    every = flickr8k(data_path("flickr8k")).examples
    photos = [e for e in every if e.split == "train"][:PHOTOS]
    photos += [e for e in every if e.split == "dev"][:DEV]
    write_manifest(out / "photos.jsonl", photos)
    pairs = []
    for name, split, count in (("train", "train", PAIRS), ("val", "dev", DEV)):
        sides = (read_lines(data_path("multi30k", f"{name}.{side}.gz")) for side in ("en", "de"))
        some = list(zip(*sides, strict=True))[:count]
        pairs += [
            Example(id=f"{name}-{i}", source=source, targets=(target,), split=split)
            for i, (source, target) in enumerate(some)
        ]
    write_manifest(out / "pairs.jsonl", pairs)
    training = TrainingConfig(
        steps=steps,
        evaluate_every=steps,
        save_every=max(1, steps // 10),
        tensorboard=False,
        optimiser=OptimiserConfig(learning_rate=1e-3),
    )
    captioner = CaptionRecipe(
        manifest=str(out / "photos.jsonl"),
        features=str(out / "features"),
        encoder=ImageEncoderConfig("efficientnet_lite2", size=96),
        batching=BatchingConfig(size=15),
        model=DecoderConfig(embedding=64, hidden=96, attention=AttentionConfig(size=64)),
        search=SearchConfig(max_length=15, beam=2),
        training=training,
    )
    hard = AttentionConfig(size=64, hard=True)
    language = VocabularyConfig("bpe", 1000)
    translator = TranslateRecipe(
        manifest=str(out / "pairs.jsonl"),
        source=language,
        target=language,
        batching=BatchingConfig("token_budget", 600),
        encoder=RecurrentConfig(embedding=64, hidden=64),
        model=DecoderConfig(
            embedding=64, hidden=96, gate=False, attention=AttentionConfig(size=64)
        ),
        search=SearchConfig(max_length=30, beam=2),
        training=training,
    )
    return {
        "captioning, soft attention": captioner,
        "captioning, hard attention": replace(
            captioner,
            model=replace(captioner.model, attention=hard),
            loss=LossConfig(hard=HardConfig()),
        ),
        # SGD: Adam makes whole steps of gradients that are only rounding, and one draw that falls
        # on the other side of a boundary changes all that is written after it
        "captioning, self-critical": replace(
            captioner,
            self_critical=5,
            training=replace(training, optimiser=OptimiserConfig("sgd", learning_rate=1.0)),
        ),
        "translation": translator,
    }


def go(task: Any, out: Path, resume: bool = False) -> None:
    train(task, out, resume=resume, console=Console(quiet=True))


def flat(task_or_run: Any) -> torch.Tensor:
    """All weights that learn: of a run, or those that a task begins with."""
    if isinstance(task_or_run, Path):
        newest = Run(task_or_run).newest()
        assert newest is not None
        tensors = load_file(newest / "weights.safetensors")
    else:
        torch.manual_seed(task_or_run.recipe.training.seed)
        tensors = task_or_run.build_model().state_dict()
    return torch.cat([tensors[name].double().flatten() for name in sorted(tensors)])


def compare(out: Path, steps: int, only: str = "") -> None:
    print(f"\nafter {steps} steps, apart from one process:")
    for name, recipe in trainings(out, steps).items():
        if only not in name:
            continue
        task = build_task(recipe)
        first, found = flat(task), {}
        for count in (1, 2, 4):
            folder = out / f"{name}-{count}"
            shutil.rmtree(folder, ignore_errors=True)
            began = time.perf_counter()
            processes.run(count, go, task, folder)
            found[count] = flat(folder)
            seconds = time.perf_counter() - began
            if count == 1:
                print(f"{name}: one process in {seconds:.1f} s", flush=True)
                continue
            apart = float((found[count] - found[1]).norm() / (found[1] - first).norm())
            most = float((found[count] - found[1]).abs().max())
            print(f"  {count}: apart {apart:.1e}, at most {most:.1e}; {seconds:.1f} s", flush=True)


def kill(out: Path, steps: int, kills: int, seed: int) -> None:
    recipe = trainings(out, steps)["translation"]
    training = replace(recipe.training, accumulate=4, save_every=max(1, steps // 25), keep=1)
    recipe = replace(recipe, model=replace(recipe.model, dropout=0.2), training=training)
    task = build_task(recipe)
    first, chance = flat(task), random.Random(seed)
    shutil.rmtree(out / "whole", ignore_errors=True)
    began = time.perf_counter()
    processes.run(2, go, task, out / "whole")
    seconds, whole = time.perf_counter() - began, flat(out / "whole")
    print(f"\ntwo processes, never interrupted: {seconds:.1f} s; killed at a random moment:")
    for number in range(kills):
        then, folder = (2, 2, 1, 4)[number % 4], out / "killed"
        shutil.rmtree(folder, ignore_errors=True)
        workers = processes.start(2, go, task, folder)
        at = chance.randrange(steps - 5)  # other jobs make a moment's place in the run uncertain
        while reached_step(folder) < at:
            time.sleep(0.002)
        time.sleep(chance.uniform(0, 1.5 * seconds / steps))
        victim = chance.randrange(2)
        os.kill(workers[victim].pid, signal.SIGKILL)
        for worker in workers:
            worker.join(120)
        newest = Run(folder).newest()
        reached = "no checkpoint" if newest is None else newest.name
        processes.run(then, go, task, folder, newest is not None)
        last = flat(folder)
        apart = float((last - whole).norm() / (whole - first).norm())
        same = "the same bits" if torch.equal(last, whole) else f"apart {apart:.1e}"
        codes = [worker.exitcode for worker in workers]
        print(
            f"  {number + 1}: process {victim} at {reached} (exit codes {codes}), resumed with "
            f"{then}: {same}",
            flush=True,
        )


def reached_step(run: Path) -> int:
    newest = Run(run).newest()
    return 0 if newest is None else int(newest.name.removeprefix("step-"))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.distributed")
    parser.add_argument("--steps", type=int, default=50)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    parser.add_argument("--only", default="", help="trainings with this in their name")
    parser.add_argument("--out", type=Path, default=Path("runs/distributed"))
    given = parser.parse_args()
    given.out.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    print(machine.describe())
    compare(given.out, given.steps, given.only)
    if given.kills:
        kill(given.out, given.steps, given.kills, given.seed)


if __name__ == "__main__":
    main()
