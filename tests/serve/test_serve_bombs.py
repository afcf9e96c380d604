"""Three times the load that the service sustains, with two scan bombs a second among it."""

import asyncio
import os
import signal
import time
from pathlib import Path

import pytest
from benchmarks.load import attacked, closed_loop, faults, resident_megabytes
from live_server import PATIENCE
from test_serve_process import process

SECONDS = float(os.environ.get("SIGHTLINE_OVERLOAD_SECONDS", "60"))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="measures as Linux does")
def test_bombs_under_overload_hurt_nobody(shapes, cli_environment):
    """With a small model; `python -m benchmarks.load default --bombs 2`: with a large one."""
    folder, _, _ = shapes
    with process(cli_environment, "--model", folder / "run") as server:
        port = int(server.url.rpartition(":")[2])
        rate = asyncio.run(closed_loop(port, 32, 10)).rate
        before = resident_megabytes(server.pid)
        clean, good, bad, memory = asyncio.run(attacked(port, server.pid, 3 * rate, SECONDS, 2))
        began = time.monotonic()
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 0
        ending = time.monotonic() - began
    print(clean, good, bad, memory, ending, sep="\n")
    assert sum(bad.statuses.values()) == int(2 * SECONDS)
    assert faults(clean, good, bad, max(memory) - before, ending) == []
