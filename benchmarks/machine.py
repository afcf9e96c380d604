"""What this machine is and can do: printed with every measurement, for ratios to mean something."""

from __future__ import annotations

import os
import platform
import time
from pathlib import Path

import numpy as np


def describe() -> str:
    """One line: processor, cores in use, matrix-product peak."""
    return f"{_processor()}, {_threads()} threads, peak {peak_gflops():.0f} GFLOP/s (float32)"


def peak_gflops(size: int = 2048, repeats: int = 8) -> float:
    """The best speed of a large float32 matrix product."""
    left = np.ones((size, size), dtype=np.float32)
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        left @ left
        best = min(best, time.perf_counter() - began)
    return 2 * size**3 / best / 1e9


def _processor() -> str:
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _threads() -> int:
    return int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))
