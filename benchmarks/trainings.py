"""Commands of an experiment, shown before they run; a training that was stopped is resumed."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.data import data_path
from sightline.tasks import read_recipe
from sightline.training.checkpoint import Run


def data_folder(name: str) -> Path:
    """A folder of the development data; ends the program where there is none."""
    folder = data_path(name)
    if not folder.is_dir():
        sys.exit(f"no data at {folder}; set SIGHTLINE_DATA")
    return folder


def sightline(*arguments: str | Path) -> None:
    """Show a `sightline` command and run it; the program ends where it fails."""
    words = list(map(str, arguments))
    print(f"\n$ sightline {shlex.join(words)}", flush=True)
    ended = subprocess.run([sys.executable, "-m", "sightline.cli", *words])
    if ended.returncode:
        sys.exit(ended.returncode)


def train(recipe: str, out: Path, overrides: Sequence[str]) -> None:
    """`sightline train` into a folder: from the start, from where it stopped, or not at all."""
    newest = Run(out).newest()
    if newest is None:
        sightline("train", recipe, *overrides, "--out", out)
    elif steps_of(newest) < read_recipe(newest / "config.yaml").training.steps:
        sightline("train", recipe, *overrides, "--out", out, "--resume")
    else:
        print(f"\n{out} is trained")


def steps_of(checkpoint: Path) -> int:
    return int(checkpoint.name.removeprefix("step-"))
