"""An operator: the real service, asked over HTTP, and stopped."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import time
import urllib.request
from contextlib import suppress

import pytest

pytest.importorskip("fastapi", reason="the extra serve")


def test_the_service_starts_says_what_it_serves_and_stops(here, cli_environment):
    command = [sys.executable, "-m", "sightline", "serve", "--model", "default", "--port", "0"]
    with subprocess.Popen(
        command, cwd=here, env=cli_environment, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        first = process.stderr.readline()
        address = re.search(r"Serving default at (http://\S+)/", first)
        assert address, first
        _ready(address[1])
        with urllib.request.urlopen(f"{address[1]}/v1/models", timeout=60) as answer:
            assert "default" in json.dumps(json.load(answer))
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def _ready(address: str) -> None:
    """Wait, as a load balancer does."""
    for _ in range(240):
        with suppress(OSError), urllib.request.urlopen(f"{address}/readyz", timeout=60) as answer:
            assert answer.status == 200
            return
        time.sleep(0.25)
    pytest.fail("the service does not become ready")


def test_what_cannot_be_served_is_one_line(typed, here):
    done = typed("sightline serve --model nothing --port 0", code=2)
    assert done.err.count("\n") == 1
    assert "nothing" in done.err
