"""Which device a model computes on, and how exactly: `training.device` and `.precision`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

import torch

from sightline.errors import UserError

Precision = Literal["float32", "bfloat16"]


def pick_device(name: str, key: str) -> torch.device:
    """The device of that name, tried out; auto is a GPU where there is one. Errors name `key`."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        if device.type not in ("cpu", "cuda", "mps"):
            raise RuntimeError("it computes nothing; give auto, cpu, cuda, cuda:1 or mps")
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).splitlines()[0]
        raise UserError(f"{key}={name} cannot be used here: {reason}") from None
    return device


@contextmanager
def products_in(precision: Precision) -> Iterator[None]:
    """Matrix products and convolutions round their factors to bfloat16, or do not.

    Sums, weights and everything else stay in float32. Processors with bfloat16 instructions take
    less than half the time; others compute in float32 as before.
    """
    before = torch.get_float32_matmul_precision(), torch.backends.mkldnn.conv.fp32_precision  # type: ignore[attr-defined]
    if precision == "bfloat16":
        torch.set_float32_matmul_precision("medium")
        torch.backends.mkldnn.conv.fp32_precision = "bf16"  # type: ignore[attr-defined]
    try:
        yield
    finally:
        torch.set_float32_matmul_precision(before[0])
        torch.backends.mkldnn.conv.fp32_precision = before[1]  # type: ignore[attr-defined]
