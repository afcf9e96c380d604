"""bAbI's tasks, one model each or one for all, the best of several restarts by training loss.

    python -m benchmarks.stories tasks_1-20_v1-2/en --out runs/babi [--tasks 1,2,3]
        [--joint] [--recipe babi-supports] [--restarts 10] [key=value …]

As Sukhbaatar et al. 2015 report: the error of each task, their mean, and how many are above 5 %.
A restart that is trained already is not trained again.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from benchmarks import machine
from sightline.commands.recipes import find_recipe
from sightline.data.converters.stories import babi
from sightline.data.manifest import Example, read_split, write_manifest
from sightline.runtime.model_folder import find_model
from sightline.tasks import build_task, load_model, read_recipe
from sightline.training.checkpoint import Run
from sightline.training.loop import train

FAILED = 5.0  # per cent


def trained(recipe: str, manifest: Path, out: Path, overrides: Sequence[str]) -> float:
    """Train a restart unless it is there; its loss on the training questions."""
    if not (out / "done").is_file():
        given = [f"manifest={manifest}", "training.tensorboard=false", *overrides]
        task = build_task(read_recipe(find_recipe(Path(recipe)), given))
        resume = Run(out).newest() is not None
        outcome = train(task, out, resume=resume, console=Console(quiet=True))
        loss = outcome.progress.metrics["training_loss"]
        (out / "done").write_text(str(loss))
    return float((out / "done").read_text())


def errors(run: Path, examples: Sequence[Example]) -> dict[int, float]:
    """Per cent of wrong answers by task."""
    found = load_model(find_model(run)).describe([str(e.source) for e in examples])
    wrong: defaultdict[int, list[bool]] = defaultdict(list)
    for example, description in zip(examples, found, strict=True):
        wrong[example.meta["task"]].append(description.text != example.targets[0].lower())
    return {task: 100 * sum(each) / len(each) for task, each in wrong.items()}


def best_of(given: argparse.Namespace, name: str, tasks: Sequence[int]) -> dict[int, float]:
    """Test errors of the restart that fits the training questions best, and of their mean."""
    manifest = given.out / f"{name}.jsonl"
    if not manifest.is_file():
        write_manifest(manifest, babi(given.folder, tasks).examples)
    recipe = given.recipe or ("babi-joint" if given.joint else "babi")
    losses = {}
    for seed in range(1, given.restarts + 1):
        run = given.out / f"{name}-{seed}"
        overrides = [*given.overrides, f"training.seed={seed}"]
        losses[run] = trained(recipe, manifest, run, overrides)
    best = min(losses, key=lambda run: losses[run])
    examples = read_split(manifest, "test", "source")
    known = {json.loads(line)["meta"]["task"] for line in manifest.open() if '"train"' in line}
    found = errors(best, [e for e in examples if e.meta["task"] in known])
    shown = ", ".join(f"qa{task} {error:.1f}" for task, error in sorted(found.items()))
    print(f"{name}: {shown} (loss {losses[best]:.4f}, {best.name} of {len(losses)})", flush=True)
    return found


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("folder", type=Path)
    options.add_argument("--out", type=Path, required=True)
    options.add_argument("--tasks", default="")
    options.add_argument("--joint", action="store_true")
    options.add_argument("--recipe", help="another than babi and babi-joint")
    options.add_argument("--restarts", type=int, default=1)
    options.add_argument("overrides", nargs="*")
    given = options.parse_intermixed_args()
    given.out.mkdir(parents=True, exist_ok=True)
    print(machine.describe())
    tasks = [int(each) for each in given.tasks.split(",") if each] or list(range(1, 21))
    found: dict[int, float] = {}
    if given.joint:
        found = best_of(given, "joint", tasks)
    else:
        for task in tasks:
            found |= best_of(given, f"qa{task}", [task])
    failed = sum(error > FAILED for error in found.values())
    mean = sum(found.values()) / len(found)
    print(f"mean error {mean:.1f} % of {len(found)} tasks, {failed} above {FAILED:.0f} %")


if __name__ == "__main__":
    main()
