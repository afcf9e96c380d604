"""Thousands of damaged pictures and requests: answered or refused, never met by a bug."""

import socket

import httpx
import numpy as np
import pytest
from live_server import (
    PATIENT,
    code,
    in_threads,
    picture_bytes,
    post,
    running,
)

from mutation import mutated
from sightline.serve.limits import Limits


def bombard(server, count, seed):
    """Mutated pictures: the statuses that they are met with."""
    rng = np.random.default_rng(seed)
    whole = [picture_bytes(kind=kind) for kind in ("PNG", "JPEG", "GIF", "BMP", "TIFF", "WEBP")]
    statuses = []
    for number in range(count):
        response = post(server.client, mutated(rng, whole[number % len(whole)]), beam=1)
        statuses.append(response.status_code)
        if response.status_code != 200:
            assert "Traceback" not in response.text
            code(response)
    return statuses


def test_mutated_pictures_are_described_or_refused(server):
    statuses = bombard(server, 200, seed=1)
    assert set(statuses) <= {200, 400, 413, 415}
    assert statuses.count(400) > 40
    assert post(server.client, picture_bytes()).status_code == 200


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_two_thousand_mutated_pictures(server):
    assert set(bombard(server, 2000, seed=2)) <= {200, 400, 413, 415}


@pytest.fixture
def brisk_server(models):
    """Waits only a second for bodies that never end."""
    with running(models, Limits(upload_seconds=1, **PATIENT)) as server:
        yield server


def test_mutated_requests_are_refused(brisk_server):
    """Whole requests with bytes changed, on raw connections: headers, boundaries, lengths."""
    server = brisk_server
    rng = np.random.default_rng(3)
    request = httpx.Request(
        "POST", server.url + "/v1/describe", files={"file": ("a.png", picture_bytes())},
        data={"beam": "1", "focus": "0,0,1,1", "prefix": "a"},
    )  # fmt: skip
    head = "".join(f"{k}: {v}\r\n" for k, v in request.headers.items())
    whole = b"POST /v1/describe HTTP/1.1\r\n" + head.encode() + b"\r\n" + request.read()
    mutants = [mutated(rng, whole[:700]) + whole[700:] for _ in range(160)]

    def send(first):
        seen = []
        for data in mutants[first::16]:
            with socket.create_connection(("127.0.0.1", server.port), timeout=3) as client:
                try:
                    client.sendall(data)
                    answer = client.recv(4096)
                except (ConnectionError, TimeoutError):  # closed, or the head has no end
                    continue
            if answer:
                seen.append(int(answer.split(b" ", 2)[1]))
        return seen

    seen = [status for some in in_threads(16, send) for status in some]
    assert len(seen) > 60
    assert set(seen) <= {200, 400, 404, 405, 408, 413, 415, 422}
    assert post(server.client, picture_bytes()).status_code == 200
    assert "\nsightline_failures_total 0.0\n" in server.client.get("/metrics").text
