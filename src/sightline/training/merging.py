"""The mean of several checkpoints of one run, as a model folder of its own."""

from __future__ import annotations

import shutil
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

from sightline.errors import CheckpointError
from sightline.training.checkpoint import OPTIMISER, TRAINING, WEIGHTS, load_tensors


def average_checkpoints(run: Path | str, out: Path | str, newest: int = 5) -> list[Path]:
    """Write the mean weights of a run's newest checkpoints to `out`; gives those it took."""
    run, out = Path(run), Path(out)
    found = sorted(run.glob("checkpoints/step-*"))[-newest:]
    if not found:
        raise CheckpointError(f"{run} holds no checkpoints; give the folder of a run")
    if out.exists():
        raise CheckpointError(f"{out} is already there; name another folder")
    total: dict[str, Tensor] = {}
    for folder in found:
        tensors = load_tensors(folder / WEIGHTS)
        if total and {k: v.shape for k, v in tensors.items()} != {
            k: v.shape for k, v in total.items()
        }:
            raise CheckpointError(f"{folder} is of another model than {found[0]}")
        for name, tensor in tensors.items():
            # in double precision: sums of many checkpoints lose nothing
            total[name] = total.get(name, torch.zeros((), dtype=torch.float64)) + tensor.double()
    kinds = {name: tensor.dtype for name, tensor in load_tensors(found[-1] / WEIGHTS).items()}
    mean = {name: (sums / len(found)).to(kinds[name]) for name, sums in total.items()}
    partial = out.with_name(f".partial-{out.name}")
    try:
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        for path in found[-1].iterdir():
            if path.name not in (WEIGHTS, OPTIMISER, TRAINING):
                shutil.copy(path, partial / path.name)
        save_file(mean, partial / WEIGHTS)
        partial.replace(out)
    except OSError as error:
        shutil.rmtree(partial, ignore_errors=True)
        raise CheckpointError(f"cannot write {out}: {error.strerror}") from None
    return found
