"""`sightline serve` as a process: it starts, ends without losing a request, and tells mistakes."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import httpx
import pytest
from live_server import picture_bytes, post, wait_for


@contextmanager
def process(environment, *arguments, **variables):
    """The command on a free port; `.url` of it, and its log once it has ended."""
    command = [sys.executable, "-m", "sightline.cli", "serve", "--port", "0", *map(str, arguments)]
    server = subprocess.Popen(
        command, env={**environment, **variables}, stderr=subprocess.PIPE, text=True
    )
    lines = []
    started = threading.Event()

    def read():
        for line in server.stderr:
            lines.append(line)
            started.set()

    reader = threading.Thread(target=read)
    reader.start()
    server.lines = lines
    try:
        assert started.wait(120)
        server.url = re.search(r"at (http://\S+)/", lines[0])[1]
        wait_for(lambda: _answers(server.url), 60)
        yield server
    finally:
        if server.poll() is None:
            server.kill()
        server.wait(30)
        reader.join(10)
        server.stderr.close()


def _answers(url):
    try:
        return httpx.get(url + "/readyz", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def test_sigterm_under_load_loses_no_accepted_request(shapes, cli_environment):
    """Clients ask without a pause. Whatever was sent on an open connection is answered."""
    folder, _, _ = shapes
    picture = picture_bytes()
    outcomes = {"answered": 0, "refused": 0, "lost": []}
    lock, stop = threading.Lock(), threading.Event()

    def ask(url):
        while not stop.is_set():
            try:
                with httpx.Client(base_url=url, timeout=60) as client:
                    while not stop.is_set():
                        response = post(client, picture)
                        with lock:
                            outcomes["answered"] += response.status_code == 200
                            if response.status_code not in (200, 503):
                                outcomes["lost"].append(response.text)
            except httpx.ConnectError:  # it no longer listens: nothing was accepted
                with lock:
                    outcomes["refused"] += 1
                return
            except httpx.TransportError as error:
                with lock:
                    outcomes["lost"].append(repr(error))

    with process(cli_environment, "--model", folder / "run") as server:
        clients = [threading.Thread(target=ask, args=(server.url,)) for _ in range(12)]
        for client in clients:
            client.start()
        wait_for(lambda: outcomes["answered"] > 24, 60)
        server.send_signal(signal.SIGTERM)
        for client in clients:
            client.join(60)
        stop.set()
        assert server.wait(60) == 0
    assert outcomes["lost"] == []
    assert outcomes["refused"] == 12
    events = [json.loads(line)["event"] for line in server.lines[1:]]
    assert "draining" in events


def test_a_stream_that_has_begun_is_finished(shapes, cli_environment):
    folder, _, _ = shapes
    with process(cli_environment, "--model", folder / "run") as server:
        host, port = server.url.removeprefix("http://").split(":")
        connection = http.client.HTTPConnection(host, int(port), timeout=60)
        request = httpx.Request(
            "POST", server.url, files={"file": ("a", picture_bytes())}, data={"stream": "true"}
        )
        connection.request("POST", "/v1/describe", request.read(), dict(request.headers))
        time.sleep(0.01)
        server.send_signal(signal.SIGTERM)
        assert b"event: done" in connection.getresponse().read()
        connection.close()
        assert server.wait(60) == 0


def test_mistakes_are_told_in_one_line(run_cli, toy):
    for arguments, message in (
        (["--model", "nowhere"], "no model at nowhere"),
        (["--model", toy, "--api-key-env", "SIGHTLINE_NO_SUCH"], "SIGHTLINE_NO_SUCH is not set"),
        (["--model", toy, "--host", "256.1.2.3"], "cannot listen on 256.1.2.3"),
    ):
        done = run_cli("serve", "--port", "0", *arguments)
        assert done.returncode == 2
        assert message in done.stderr
        assert len(done.stderr.splitlines()) == 1


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_the_key_comes_from_the_environment(shapes, cli_environment):
    folder, _, _ = shapes
    with process(
        cli_environment, "--model", folder / "run", "--api-key-env", "KEY", KEY="abc"
    ) as server:
        assert httpx.get(server.url + "/v1/models").status_code == 401
        assert httpx.get(server.url + "/v1/models", headers={"X-API-Key": "abc"}).status_code == 200
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0
