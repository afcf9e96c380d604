"""The work that all share, and how long each takes: CPU seconds of one thread."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

BEAM, WRITTEN, BATCH = 5, 16, 64  # tokens of an output: models are untrained, and would not end
EMBEDDING, ENCODER, DECODER, ATTENTION = 256, 256, 512, 256  # multi30k-en-de's sizes
RATE, CLIP = 1e-3, 1.0


def given() -> dict[str, Any]:
    """The work, from the file that the parent names."""
    work: dict[str, Any] = json.loads(Path(sys.argv[1]).read_text())
    return work


def answer(**found: Any) -> None:
    # not ru_maxrss, which begins with what the parent had
    status = Path("/proc/self/status").read_text()
    found["memory"] = int(status.partition("VmHWM:")[2].split()[0]) / 1024
    print(json.dumps(found))


def seconds(act: Callable[[], Any]) -> float:
    began = time.process_time()
    act()
    return time.process_time() - began


def training_speed(step: Callable[[Any], None], batches: Sequence[Any], tokens: int) -> float:
    """Target tokens a second; the first two batches have things to set up."""
    for batch in batches[:2]:
        step(batch)
    spent = seconds(lambda: [step(batch) for batch in batches])
    return tokens / spent


def in_batches(items: Sequence[Any]) -> list[Sequence[Any]]:
    """Neighbours in length."""
    ordered = sorted(items, key=len)
    return [ordered[i : i + BATCH] for i in range(0, len(ordered), BATCH)]


def padded(rows: Sequence[Sequence[int]], padding: int = 0) -> list[list[int]]:
    longest = max(map(len, rows))
    return [[*row, *[padding] * (longest - len(row))] for row in rows]
