"""Checkpoints: a directory of data only, written under a temporary name and renamed.

    runs/NAME/
      checkpoints/step-00001000/   config.yaml vocab.json weights.safetensors
                                   training.json optimiser.safetensors
      best                         the name of the best checkpoint
      log.jsonl  tensorboard/  .lock

No pickled classes: tensors are safetensors, everything else is YAML or JSON. training.json has the
CRC-32 of every file and of itself; checkpoints written before it did are read without the check.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from torch.optim import Optimizer

from sightline.data.durable import (
    checksum,
    file_checksum,
    locked,
    replace_file,
    replacing,
    sync_folder,
    write_file,
)
from sightline.data.vocabulary import SPECIALS
from sightline.errors import DISTRIBUTION, CheckpointError, TrainingError
from sightline.runtime.model_folder import best_checkpoint, plain_folder, printable, reason

FORMAT = 1  # raised when an older Sightline could not read what a newer one writes
CONFIG, WEIGHTS = "config.yaml", "weights.safetensors"
NEW_ROWS = 0.1  # of their random values, for rows that the first model lacks
TRAINING, OPTIMISER = "training.json", "optimiser.safetensors"


@dataclass(frozen=True)
class Checkpoint:
    """What is written: files as text, tensors by name, and the loop's own numbers."""

    step: int
    texts: Mapping[str, str]  # file name → content (config.yaml, vocab.json)
    weights: Mapping[str, Tensor]
    training: Mapping[str, Any]  # JSON
    tensors: Mapping[str, Tensor]  # optimiser state, random state, carried state


class DamageError(CheckpointError):
    """A checkpoint that is not what was saved; the one before it may be."""


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

    @contextmanager
    def lock(self) -> Iterator[None]:
        """No other training writes here meanwhile."""
        with ExitStack() as stack:
            try:
                stack.enter_context(locked(self.folder / ".lock"))
            except BlockingIOError:
                message = f"another training is writing to {self.folder}; wait for it or give --out"
                raise TrainingError(message) from None
            except OSError as error:
                raise TrainingError(f"cannot write to {self.folder} ({error})") from None
            yield

    def newest(self) -> Path | None:
        return max(self.checkpoints.glob("step-*"), default=None)

    def newest_good(self) -> tuple[Path, list[tuple[Path, DamageError]]]:
        """The newest checkpoint that is what was saved, and the newer ones that are not."""
        damaged: list[tuple[Path, DamageError]] = []
        try:
            paths = sorted(self.checkpoints.glob("step-*"), reverse=True)
        except OSError as error:
            raise CheckpointError(f"cannot read {self.checkpoints} ({error.strerror})") from None
        for path in paths:
            try:
                verify(path)
            except DamageError as error:
                damaged.append((path, error))
            else:
                return path, damaged
        if damaged:
            raise damaged[0][1]
        raise CheckpointError(f"{self.folder} holds no checkpoint")

    def fall_back(self, resumed: Path, damaged: Sequence[Path], best_step: int | None) -> None:
        """Rename damaged checkpoints, so that they do not count, and leave a `best` that is one.

        The mark may also be missing because a crash came between a checkpoint and its mark.
        """
        try:
            if best_step is not None:
                best = self.checkpoints / f"step-{best_step:08d}"
                marked = self.best()
                if best in damaged or not best.is_dir():
                    best = resumed if marked is None or marked in damaged else marked
                if best != marked:
                    self.mark_best(best)
            for path in damaged:
                aside = path.with_name(f"damaged-{path.name}")
                shutil.rmtree(aside, ignore_errors=True)
                os.replace(path, aside)
            sync_folder(self.checkpoints)
        except OSError as error:
            raise TrainingError(f"could not write to {self.folder}: {error}") from None

    def best(self) -> Path | None:
        path = best_checkpoint(self.folder)
        if path is None or path.parent != self.checkpoints:  # no file, or an empty one
            return None
        return path if path.is_dir() else None

    def mark_best(self, checkpoint: Path) -> None:
        replace_file(self.folder / "best", f"{checkpoint.name}\n".encode())

    def save(self, checkpoint: Checkpoint, *, is_best: bool, keep: int) -> Path:
        """Write a checkpoint; on any failure the ones before it are untouched."""
        final = self.checkpoints / f"step-{checkpoint.step:08d}"
        try:
            if not final.is_dir():  # else the same step of the same run: nothing new to write
                self._sweep()
                with replacing(final) as partial:
                    partial.mkdir()
                    _write(partial, checkpoint)
            if is_best:
                self.mark_best(final)
        except (OSError, SafetensorError) as error:
            raise TrainingError(f"could not write {final}: {error}{self._kept()}") from None
        with suppress(OSError):  # what cannot be removed stays
            self._discard(keep)
        return final

    def _kept(self) -> str:
        with suppress(OSError):
            if last := self.newest():
                return f"; the last good checkpoint is {last}"
        return ""

    def _discard(self, keep: int) -> None:
        # an unreadable `best` raises: without its name the best checkpoint could be removed
        mark = self.folder / "best"
        best = mark.read_text(encoding="utf-8").strip() if mark.exists() else ""
        for path in sorted(self.checkpoints.glob("step-*"))[: -max(1, keep)]:
            if path.name != best:
                os.replace(path, path.with_name(f".old-{path.name}"))  # whole or not there
        self._sweep()

    def _sweep(self) -> None:
        """Remove what a crash left half written or half removed."""
        for pattern in (".partial-*", ".old-*"):
            for path in self.checkpoints.glob(pattern):
                shutil.rmtree(path, ignore_errors=True)


def _write(folder: Path, checkpoint: Checkpoint) -> None:
    for name, text in checkpoint.texts.items():
        (folder / name).write_text(text, encoding="utf-8")
    save_file(savable(checkpoint.weights), folder / WEIGHTS)
    save_file(savable(checkpoint.tensors), folder / OPTIMISER)
    seal(folder, {"step": checkpoint.step, **checkpoint.training})


def seal(folder: Path, training: Mapping[str, Any]) -> None:
    """Write training.json with everybody's checksum; the whole folder is then on the disk."""
    sums = {path.name: file_checksum(path, sync=True) for path in sorted(folder.iterdir())}
    content = {"format": FORMAT, **training, "files": sums}
    content["checksum"] = checksum(_json(content))
    write_file(folder / TRAINING, _json(content))
    sync_folder(folder)


def _json(content: Mapping[str, Any]) -> bytes:
    return json.dumps(content, indent=1).encode()


def savable(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}


# ---------------------------------------------------------------------------------- reading


def verify(folder: Path, but: Sequence[str] = ()) -> None:
    """Raise DamageError unless every file, `but` these, is what was saved."""
    sums = load_training(folder).get("files")
    if sums is None:  # written before checksums were: at least whole
        for name in {WEIGHTS, OPTIMISER}.difference(but):
            _check_whole(folder / name)
        return
    for name, expected in sums.items():
        path = folder / name
        if name in but:
            continue
        try:
            if path.parent != folder or not path.is_file():
                raise DamageError(f"{path} is missing; the checkpoint is not whole")
            same = file_checksum(path) == expected
        except OSError as error:
            raise _unreadable(path, error) from None
        if not same:
            raise DamageError(
                f"{path} is damaged or was changed (its checksum differs); "
                "use another checkpoint of the run"
            )


def _check_whole(path: Path) -> None:
    try:
        with safe_open(path, "pt"):
            pass
    except (SafetensorError, FileNotFoundError) as error:
        raise DamageError(f"{path} is missing, damaged or cut short ({error})") from None
    except (OSError, RuntimeError) as error:  # torch maps the file
        raise _unreadable(path, error) from None


def _unreadable(path: Path, error: Exception) -> CheckpointError:
    # no DamageError: the file may be good, and the disk or its permissions at fault
    return CheckpointError(
        f"{path} cannot be read ({error}); "
        "if it stays so, move its checkpoint away to use the one before it"
    )


def load_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (SafetensorError, OSError, RuntimeError) as error:  # torch maps the file
        raise _damaged(path, error) from None


def _damaged(path: Path, error: Exception) -> CheckpointError:
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
        expected = training.pop("checksum", None)
        sums = training.get("files")
        same = expected == (None if sums is None else checksum(_json(training)))
        if not isinstance(sums, dict | None):
            raise TypeError("files")
    except FileNotFoundError:
        raise DamageError(f"{path} is missing; the checkpoint is not whole") from None
    except OSError as error:
        raise _unreadable(path, error) from None
    except (
        ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError,
    ) as error:  # fmt: skip
        raise DamageError(f"{path} is damaged ({error}); use another checkpoint") from None
    if version > FORMAT:
        raise CheckpointError(
            f"{folder} was written by a newer Sightline (format {version}, this one reads up to "
            f"{FORMAT}); upgrade with `pip install -U {DISTRIBUTION}`"
        )
    if not same:
        raise DamageError(f"{path} is damaged (its checksum differs); use another checkpoint")
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
        raise _damaged(path, error) from None
    _compare(wanted, given, path)


def load_weights(
    model: nn.Module, folder: Path, optional: tuple[str, ...] = (), grown: tuple[str, ...] = ()
) -> None:
    """Fill the model; a missing, unexpected or misshapen tensor is an error that names it.

    Tensors whose names begin with one of `optional` keep their values where the file has none,
    and are left out where the model has none of the kind. Those of `grown` may have more rows
    than the file's: the further ones begin near the mean of these.
    """
    plain_folder(folder)
    if (folder / TRAINING).exists():
        verify(folder, but=(CONFIG, OPTIMISER))  # a recipe may be edited, such as its paths
    tensors = load_tensors(folder / WEIGHTS)
    wanted = model.state_dict()
    for kind in optional:
        if not any(name.startswith(kind) for name in wanted):
            tensors = {n: tensor for n, tensor in tensors.items() if not n.startswith(kind)}
    lacked = [name for name in wanted if name not in tensors and name.startswith(optional)]
    tensors |= {name: wanted[name] for name in lacked}
    for name in [n for n in tensors if n in wanted and n.startswith(grown)]:
        tensors[name] = _grown(tensors[name], wanted[name])
    _compare(_shapes(wanted), _shapes(tensors), folder / WEIGHTS)
    model.load_state_dict({k: v.to(wanted[k].dtype) for k, v in tensors.items()})


def _grown(given: Tensor, wanted: Tensor) -> Tensor:
    """With as many rows as wanted: words that are new begin as a mean word, a little apart."""
    count = len(given)
    if given.shape[1:] != wanted.shape[1:] or len(wanted) <= count:
        return given
    mean = given[len(SPECIALS) :].mean(0)
    return torch.cat([given, mean + NEW_ROWS * wanted[count:].to(given)])


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
