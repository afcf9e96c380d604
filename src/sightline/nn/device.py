"""Which device a model computes on: `training.device` of a recipe, `--device` of a command."""

from __future__ import annotations

import torch

from sightline.errors import UserError


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
