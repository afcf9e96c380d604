"""Training on many processes, which `torchrun` starts: who we are, and what we tell each other.

Everything here is also true of one process that nobody started: it is the first of one, what is
gathered is its own, and nothing is sent. Numbers go through gloo, gradients on GPUs through NCCL.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from sightline.errors import TrainingError

T = TypeVar("T")
Item = TypeVar("Item")
LONG = timedelta(days=2)  # to wait for the first process to prepare the data
_patient: list[Any] = []  # the group whose members wait that long


@contextmanager
def joined() -> Iterator[None]:
    """Within this block the processes of one training know each other."""
    if int(os.environ.get("WORLD_SIZE", "1")) == 1 or dist.is_initialized():
        yield
        return
    gpu = torch.cuda.is_available()
    if gpu:
        torch.cuda.set_device(local_rank() % torch.cuda.device_count())
    try:
        dist.init_process_group("cpu:gloo,cuda:nccl" if gpu else "gloo")
        _patient.append(dist.new_group(backend="gloo", timeout=LONG))
    except (RuntimeError, ValueError) as error:
        raise TrainingError(f"the processes could not find each other: {_line(error)}") from None
    try:
        yield
    finally:
        _patient.clear()
        dist.destroy_process_group()


def rank() -> int:
    return dist.get_rank() if dist.is_initialized() else 0


def size() -> int:
    return dist.get_world_size() if dist.is_initialized() else 1


def local_rank() -> int:
    """Which process of this machine we are."""
    return int(os.environ.get("LOCAL_RANK", "0"))


def is_first() -> bool:
    """Whether we write, and say, what is written and said once."""
    return rank() == 0


def was_restarted() -> bool:
    """Whether torchrun has started all processes again (--max-restarts), since one had ended."""
    return int(os.environ.get("TORCHELASTIC_RESTART_COUNT", "0")) > 0


def device_name(name: str) -> str:
    """`training.device` for this process: of several GPUs each takes its own."""
    if size() == 1 or name not in ("auto", "cuda") or not torch.cuda.is_available():
        return name
    return f"cuda:{local_rank() % torch.cuda.device_count()}"


def gathered(mine: T) -> list[T]:
    """What each process gives, by rank."""
    if size() == 1:
        return [mine]
    every: list[Any] = [None] * size()
    with _talking():
        dist.all_gather_object(every, mine)
    return every


def from_first(value: T) -> T:
    """What the first process gives, for all; the others' is not looked at."""
    if size() == 1:
        return value
    box = [value if is_first() else None]
    with _talking():
        dist.broadcast_object_list(box, src=0)
    return box[0]  # type: ignore[return-value]


@contextmanager
def first_alone() -> Iterator[None]:
    """The first process goes through this block before the others: it fills caches, they read."""
    if size() > 1 and not is_first():
        _wait()
    yield
    if size() > 1 and is_first():
        _wait()


def _wait() -> None:
    with _talking():
        dist.barrier(group=_patient[0])


def shared_out(
    items: Sequence[Item], work: Callable[[list[Item]], Mapping[Any, T]]
) -> dict[Any, T]:
    """`work` on every item, each done by one process; all get every result."""
    done = gathered(dict(work(list(items[rank() :: size()]))))
    return {key: value for each in done for key, value in each.items()}


def sum_gradients(parameters: Sequence[Tensor], learned: Sequence[bool], over: float) -> None:
    """Add up the processes' gradients in place, and divide them by `over`.

    `learned` says which parameters have a gradient in any process; the others keep none.
    """
    those = [p for p, has in zip(parameters, learned, strict=True) if has]
    for parameter in those:
        if parameter.grad is None:
            parameter.grad = torch.zeros_like(parameter)
    gradients = [p.grad for p in those if p.grad is not None]
    if size() > 1 and gradients:
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        with _talking():
            dist.all_reduce(flat)
        sizes = [gradient.numel() for gradient in gradients]
        for gradient, summed in zip(gradients, flat.split(sizes), strict=True):
            gradient.copy_(summed.view_as(gradient))
    if over != 1.0 and gradients:
        torch._foreach_div_(gradients, over)


@contextmanager
def _talking() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:  # gloo's and NCCL's
        raise TrainingError(
            f"another process of this training is gone ({_line(error)}); start all of them again "
            "with --resume to continue from the last checkpoint"
        ) from None


def _line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
