"""Checkpoints: a directory of data only, written under a temporary name and renamed.

    runs/NAME/
      checkpoints/step-00001000/   config.yaml vocab.json weights.safetensors
                                   training.json optimiser.safetensors
      best                         the name of the best checkpoint
      log.jsonl  tensorboard/

No pickled classes: tensors are safetensors, everything else is YAML or JSON.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from sightline.errors import CheckpointError, TrainingError
from sightline.runtime.model_folder import best_checkpoint, plain_folder, printable, reason

FORMAT = 1  # raised when an older Sightline could not read what a newer one writes
CONFIG, WEIGHTS = "config.yaml", "weights.safetensors"
TRAINING, OPTIMISER = "training.json", "optimiser.safetensors"


@dataclass(frozen=True)
class Checkpoint:
    """What is written: files as text, tensors by name, and the loop's own numbers."""

    step: int
    texts: Mapping[str, str]  # file name → content (config.yaml, vocab.json)
    weights: Mapping[str, Tensor]
    training: Mapping[str, Any]  # JSON
    tensors: Mapping[str, Tensor]  # optimiser state, random state, carried state


class Run:
    """A run's folder."""

    def __init__(self, folder: Path | str) -> None:
        self.folder = Path(folder)
        self.checkpoints = self.folder / "checkpoints"
        self.log = self.folder / "log.jsonl"

    def create(self) -> None:
        try:
            self.checkpoints.mkdir(parents=True, exist_ok=True)
            probe = self.checkpoints / ".probe"
            probe.write_text("")
            probe.unlink()
        except OSError as error:
            reason = f"{error.strerror}: {error.filename}"
            raise TrainingError(f"cannot write to {self.folder} ({reason}); give --out") from None

    def newest(self) -> Path | None:
        return max(self.checkpoints.glob("step-*"), default=None)

    def best(self) -> Path | None:
        path = best_checkpoint(self.folder)
        return path if path is not None and path.is_dir() else None

    def save(self, checkpoint: Checkpoint, *, is_best: bool, keep: int) -> Path:
        """Write a checkpoint; on any failure the ones before it are untouched."""
        final = self.checkpoints / f"step-{checkpoint.step:08d}"
        if final.is_dir():  # the same step of the same run: nothing new to write
            return final
        partial = self.checkpoints / f".partial-{final.name}"
        try:
            shutil.rmtree(partial, ignore_errors=True)
            partial.mkdir()
            _write(partial, checkpoint)
            os.replace(partial, final)
            if is_best:
                mark = self.folder / ".best"
                mark.write_text(final.name + "\n", encoding="utf-8")
                os.replace(mark, self.folder / "best")
        except (OSError, SafetensorError) as error:
            shutil.rmtree(partial, ignore_errors=True)
            last = self.newest()
            kept = f"; the last good checkpoint is {last}" if last else ""
            raise TrainingError(f"could not write {final}: {error}{kept}") from None
        self._discard(keep)
        return final

    def _discard(self, keep: int) -> None:
        for path in sorted(self.checkpoints.glob("step-*"))[: -max(1, keep)]:
            if path != self.best():
                shutil.rmtree(path, ignore_errors=True)


def _write(folder: Path, checkpoint: Checkpoint) -> None:
    for name, text in checkpoint.texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    save_file(_savable(checkpoint.weights), folder / WEIGHTS)
    save_file(_savable(checkpoint.tensors), folder / OPTIMISER)
    training = {"format": FORMAT, "step": checkpoint.step, **checkpoint.training}
    (folder / TRAINING).write_text(json.dumps(training, indent=1), encoding="utf-8")
    for path in folder.iterdir():  # on disk before the rename makes them a checkpoint
        with path.open("rb") as file:
            os.fsync(file.fileno())


def _savable(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}


# ---------------------------------------------------------------------------------- reading


def load_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (SafetensorError, OSError) as error:
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> CheckpointError:
    if isinstance(error, FileNotFoundError):
        return CheckpointError(f"{path} is missing; the checkpoint is not whole")
    return CheckpointError(
        f"{path} is damaged or cut short ({reason(error)}); use another checkpoint of the run"
    )


def load_training(folder: Path) -> dict[str, Any]:
    path = folder / TRAINING
    try:
        training: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        version = int(training["format"])
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing; the checkpoint is not whole") from None
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged ({error}); use another checkpoint") from None
    if version > FORMAT:
        raise CheckpointError(
            f"{folder} was written by a newer Sightline (format {version}, this one reads up to "
            f"{FORMAT}); upgrade with `pip install -U sightline`"
        )
    return training


def require_fit(build: Callable[[], nn.Module], folder: Path) -> None:
    """Compare the model that `build` makes with the weights' header, before any memory is taken.

    A recipe that came with the weights may say any size: the model is built on the meta device,
    where tensors have shapes and no storage.
    """
    path = plain_folder(folder) / WEIGHTS
    try:
        with torch.device("meta"):
            wanted = _shapes(build().state_dict())
    except (ArithmeticError, MemoryError, RuntimeError, TypeError, ValueError) as error:
        raise CheckpointError(
            f"{folder / CONFIG} describes no model that can be built ({reason(error)})"
        ) from None
    try:
        with safe_open(path, "pt") as file:
            given = {name: tuple(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
    except (SafetensorError, OSError) as error:
        raise _unreadable(path, error) from None
    _compare(wanted, given, path)


def load_weights(model: nn.Module, folder: Path, optional: tuple[str, ...] = ()) -> None:
    """Fill the model; a missing, unexpected or misshapen tensor is an error that names it.

    Tensors whose names begin with one of `optional` keep their values where the file has none,
    and are left out where the model has none of the kind.
    """
    plain_folder(folder)
    if (folder / TRAINING).exists():
        load_training(folder)  # refuses a newer format
    tensors = load_tensors(folder / WEIGHTS)
    wanted = model.state_dict()
    for kind in optional:
        if not any(name.startswith(kind) for name in wanted):
            tensors = {n: tensor for n, tensor in tensors.items() if not n.startswith(kind)}
    lacked = [name for name in wanted if name not in tensors and name.startswith(optional)]
    tensors |= {name: wanted[name] for name in lacked}
    _compare(_shapes(wanted), _shapes(tensors), folder / WEIGHTS)
    model.load_state_dict({k: v.to(wanted[k].dtype) for k, v in tensors.items()})


Shapes = dict[str, tuple[int, ...]]


def _shapes(tensors: Mapping[str, Tensor]) -> Shapes:
    return {name: tuple(tensor.shape) for name, tensor in tensors.items()}


def _compare(wanted: Shapes, given: Shapes, path: Path) -> None:
    problems = [f"{name} is missing" for name in wanted if name not in given]
    problems += [f"{printable(name)} is not in this model" for name in given if name not in wanted]
    problems += [
        f"{name} has shape {given[name]}, not {shape}"
        for name, shape in wanted.items()
        if name in given and given[name] != shape
    ]
    if problems:
        more = f" (and {len(problems) - 3} more)" if len(problems) > 3 else ""
        raise CheckpointError(
            f"{path} is of another model: {'; '.join(problems[:3])}{more}; "
            "use the config.yaml and vocab.json that were saved with it"
        )


# ----------------------------------------------------------------- optimiser state as tensors


def optimiser_tensors(optimiser: Optimizer) -> dict[str, Tensor]:
    """The optimiser's state, flat: `optimiser.PARAMETER.NAME` → tensor."""
    return {
        f"optimiser.{index}.{name}": torch.as_tensor(value)
        for index, values in optimiser.state_dict()["state"].items()
        for name, value in values.items()
        if value is not None
    }


def restore_optimiser(optimiser: Optimizer, tensors: Mapping[str, Tensor]) -> None:
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        if key.startswith("optimiser."):
            _, index, name = key.split(".", 2)
            state.setdefault(int(index), {})[name] = tensor
    optimiser.load_state_dict(
        {"state": state, "param_groups": optimiser.state_dict()["param_groups"]}
    )
