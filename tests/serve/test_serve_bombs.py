"""Three times the load that the service can take, with two scan bombs a second among it."""

import os
import signal
import threading
import time
from pathlib import Path

import httpx
import numpy as np
import pytest
from live_server import PATIENCE, picture_bytes
from test_serve_attack import scan_bomb
from test_serve_process import process

SECONDS = float(os.environ.get("SIGHTLINE_OVERLOAD_SECONDS", "60"))
CLIENTS = 3 * 16  # three times a full batch, each without a pause


def load(url, seconds, bomb=None):
    """Seconds of the good requests that were answered, all statuses, and those of the bombs."""
    end = time.monotonic() + seconds
    times, statuses, bombs = [], [], []

    def good(number):
        picture = picture_bytes(seed=number)
        with httpx.Client(base_url=url, timeout=PATIENCE) as client:
            while time.monotonic() < end:
                began = time.monotonic()
                answer = client.post("/v1/describe", files={"file": ("p.png", picture)})
                statuses.append(answer.status_code)
                if answer.status_code == 200:
                    times.append(time.monotonic() - began)
                else:
                    time.sleep(0.2)

    def bad():
        with httpx.Client(base_url=url, timeout=PATIENCE) as client:
            while time.monotonic() < end:
                answer = client.post("/v1/describe", files={"file": ("b.jpg", bomb)})
                bombs.append(answer.status_code)
                time.sleep(0.5)

    threads = [threading.Thread(target=good, args=(number,)) for number in range(CLIENTS)]
    threads += [threading.Thread(target=bad)] if bomb else []
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return times, statuses, bombs


def memory(pid):
    """Peak resident megabytes of a process and its descendants."""
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = dict(
                line.split(":", 1) for line in (folder / "status").read_text().splitlines()
            )
        except OSError:
            continue
        if str(pid) in (folder.name, status["PPid"].strip()) and "VmHWM" in status:
            total += int(status["VmHWM"].split()[0]) // 1000
    return total


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="measures as Linux does")
def test_bombs_under_overload_hurt_nobody(shapes, cli_environment):
    folder, _, _ = shapes
    with process(cli_environment, "--model", folder / "run") as server:
        load(server.url, 3)
        clean, statuses, _ = load(server.url, SECONDS)
        before = memory(server.pid)
        bombed, others, bombs = load(server.url, SECONDS, scan_bomb())
        after = memory(server.pid)
        began = time.monotonic()
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 0
        ending = time.monotonic() - began
    p99 = [float(np.percentile(each, 99)) for each in (clean, bombed)]
    print(f"p99 {p99}, answered {len(clean)} and {len(bombed)}, {len(bombs)} bombs, MB {before} "
          f"and {after}, end {ending:.1f} s")  # fmt: skip
    assert {*statuses, *others} <= {200, 503}
    assert set(bombs) <= {400, 503}
    assert p99[1] <= 2 * p99[0]
    assert after <= before + 2 * 250
    assert ending < 10
