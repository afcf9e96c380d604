"""What "bit for bit" depends on besides recipe and data: versions, threads, processor, compiler."""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy
import torch

from sightline import __version__
from sightline.nn.kernels.additive import compiled
from sightline.training import distributed


def describe_machine(device: torch.device) -> dict[str, str]:
    """Stored with every checkpoint and compared on resume."""
    gpu = torch.cuda.get_device_name(device) if device.type == "cuda" else ""
    return {
        "sightline": __version__,
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "device": gpu or device.type,
        "threads": str(torch.get_num_threads()),
        "processes": str(distributed.size()),
        "processor": _processor(),
        "CPU kernels": torch.backends.cpu.get_cpu_capability(),
        "attention kernel's compiler": _compiler(),
    }


def differences(before: Mapping[str, Any], now: Mapping[str, str]) -> list[str]:
    """`threads: 4, was 1`, for what both recorded."""
    return [
        f"{key}: {value}, was {before[key]}"
        for key, value in now.items()
        if key in before and before[key] != value
    ]


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


def _compiler() -> str:
    if compiled(torch.float32) is None:
        return "none"
    command = [os.environ.get("CC", "cc"), "--version"]
    try:
        text = subprocess.run(command, capture_output=True, text=True, timeout=10).stdout
    except (OSError, subprocess.SubprocessError):
        return "unknown"
    return text.partition("\n")[0]
