"""A study of twenty trials by two workers, one of which is killed and started again.

    python -m benchmarks.tuning [--trials 20] [--steps 60] [--out FOLDER]

Translation of Multi30k's first 4,000 pairs with a small model; which trials there are in the end,
and whether the best recipe, trained by itself, gives its trial's value.
"""

from __future__ import annotations

import argparse
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

from benchmarks import machine
from benchmarks.distributed import trainings
from sightline import config
from sightline.config import DecoderConfig, RecurrentConfig
from sightline.training.journal import read_log
from sightline.training.tuning import importances, open_study

SPACE = """\
training.optimiser.learning_rate: {low: 3e-4, high: 3e-2, log: true}
model.dropout: {low: 0, high: 0.5}
model.hidden: [64, 128, 192]
loss.label_smoothing: {low: 0, high: 0.2}
"""


def start(folder: Path, trials: int) -> subprocess.Popen[bytes]:
    """A worker, as anyone would start it."""
    command = [sys.executable, "-m", "sightline", "tune", folder / "recipe.yaml"]
    command += ["--space", folder / "space.yaml", "--trials", str(trials)]
    return subprocess.Popen([*map(str, command), "-o", str(folder / "study")])


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.tuning")
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--steps", type=int, default=60)
    parser.add_argument("--out", type=Path, default=Path("runs/tuning"))
    given = parser.parse_args()
    folder = given.out
    folder.mkdir(parents=True, exist_ok=True)
    for left in (folder / "study", folder / "again"):
        shutil.rmtree(left, ignore_errors=True)
    print(machine.describe())
    recipe = trainings(folder, given.steps)["translation"]
    every = max(1, given.steps // 3)
    training = replace(recipe.training, evaluate_every=every, save_every=max(1, every // 4))
    recipe = replace(
        recipe,
        encoder=RecurrentConfig(embedding=64, hidden=64),
        model=DecoderConfig(embedding=64, gate=False, attention=recipe.model.attention),
        training=training,
    )
    (folder / "recipe.yaml").write_text(config.to_yaml(recipe))
    (folder / "space.yaml").write_text(SPACE)
    workers = [start(folder, given.trials) for _ in range(2)]
    runs = folder / "study" / "trials"
    running: list[int] = []
    while len(running) < 2 or not all(list(runs.glob(f"{n:04d}/checkpoints/*")) for n in running):
        time.sleep(0.1)  # until both are in the middle of a trial
        if list(runs.glob("0004")):
            study = open_study(folder / "study", higher=False)
            trials = study.get_trials(deepcopy=False)
            running = [trial.number for trial in trials if trial.state.name == "RUNNING"]
    os.kill(workers[0].pid, signal.SIGKILL)
    workers[0].wait()
    print(f"a worker was killed while trials {running} ran; started again", flush=True)
    workers[0] = start(folder, given.trials)
    print("exit codes", [worker.wait() for worker in workers])
    study = open_study(folder / "study", higher=False)
    trials = study.get_trials(deepcopy=False)
    states = [trial.state.name.lower() for trial in trials]
    counts = {state: states.count(state) for state in sorted({*states})}
    print(f"trials {[trial.number for trial in trials]}: {counts}")
    for key, share in importances(study).items():
        print(f"  {key}: {share:.2f}")
    command = [sys.executable, "-m", "sightline", "train", str(folder / "study" / "best.yaml")]
    subprocess.run([*command, "-o", str(folder / "again"), "-q"], check=True)
    log = read_log(folder / "again" / "log.jsonl")
    again = min(event["loss"] for event in log if event["kind"] == "evaluation")
    print(f"best: trial {study.best_trial.number}, {study.best_value!r}; its recipe: {again!r}")


if __name__ == "__main__":
    main()
