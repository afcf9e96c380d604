"""`sightline serve` as a process: it starts, stops without losing requests, reports mistakes."""

import http.client
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from live_server import PATIENCE, picture_bytes, post, wait_for


@contextmanager
def process(environment, *arguments, files=None, **variables):
    """The command on a free port; `.url` of it, and its log once it has ended.

    `files`: so many may be open in it, as after `ulimit -n`.
    """
    command = [sys.executable, "-m", "sightline.cli", "serve", "--port", "0", *map(str, arguments)]
    if files is not None:
        command = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *command]
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
        assert started.wait(PATIENCE)
        server.url = re.search(r"at (http://\S+)/", lines[0])[1]
        wait_for(lambda: _answers(server.url))
        yield server
    finally:
        if server.poll() is None:
            server.kill()
        server.wait(PATIENCE)
        reader.join(PATIENCE)
        server.stderr.close()


def _answers(url):
    try:
        return httpx.get(url + "/readyz", timeout=5).status_code == 200
    except httpx.TransportError:
        return False


def ask_until_the_connection_closes(url, client, seen):
    """Requests without a pause on one connection, like a proxy's; statuses by request id."""
    form = httpx.Request("POST", url, files={"file": ("p.png", picture_bytes())})
    body, headers = form.read(), dict(form.headers)
    connection = http.client.HTTPConnection(form.url.host, form.url.port, timeout=PATIENCE)
    for number in itertools.count():
        name = headers["X-Request-ID"] = f"client-{client}-{number}"
        connection.request("POST", "/v1/describe", body, headers)
        with connection.getresponse() as response:
            response.read()
            seen[name] = response.status
        if response.headers["connection"] == "close":
            return


def test_sigterm_under_load_loses_no_request(shapes, cli_environment):
    """Clients that stop using a connection when they are asked to (RFC 9112, 9.6) see no error."""
    folder, _, _ = shapes
    with process(cli_environment, "--model", folder / "run") as server:
        seen = {}
        with ThreadPoolExecutor(12) as pool:
            clients = [
                pool.submit(ask_until_the_connection_closes, server.url, number, seen)
                for number in range(12)
            ]
            wait_for(lambda: len(seen) > 36)
            server.send_signal(signal.SIGTERM)
            for client in clients:
                client.result(PATIENCE)
        assert server.wait(PATIENCE) == 0
    log = [json.loads(line) for line in server.lines[1:]]
    assert "draining" in [line["event"] for line in log]
    requests = [line for line in log if line.get("route") == "/v1/describe"]
    assert {line["request_id"]: line["status"] for line in requests} == seen
    assert set(seen.values()) == {200}


def children(pid):
    """The processes that one started."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parent = int(path.read_text().rpartition(")")[2].split()[1])
            found += [int(path.parent.name)] if parent == pid else []
    return found


@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes as Linux does")
def test_it_lives_when_no_file_can_be_opened(cli_environment):
    """`ulimit -n 64`, and 200 connections that stay open; then its decoders die."""
    with process(cli_environment, "--model", "default", files=64) as server:
        host, port = server.url.removeprefix("http://").split(":")
        files = Path(f"/proc/{server.pid}/fd")
        kept = httpx.Limits(keepalive_expiry=None)  # one connection, accepted before the others
        with httpx.Client(base_url=server.url, timeout=PATIENCE, limits=kept) as client:
            assert post(client, picture_bytes()).status_code == 200
            flood = [socket.create_connection((host, int(port))) for _ in range(200)]
            wait_for(lambda: len(list(files.iterdir())) == 64)
            assert post(client, picture_bytes()).status_code == 200
            decoders = [each for child in children(server.pid) for each in children(child)]
            assert len(decoders) == 2
            for decoder in decoders:
                os.kill(decoder, signal.SIGKILL)
            for _ in range(4):
                assert post(client, picture_bytes()).status_code in (200, 400, 503)
            time.sleep(2)  # before, 6 MB a second were written
            for one in flood:
                one.close()
            wait_for(lambda: client.get("/readyz").status_code == 200)
            assert post(client, picture_bytes()).status_code == 200
        server.send_signal(signal.SIGTERM)
        assert server.wait(PATIENCE) == 0
    assert sum(map(len, server.lines)) < 50_000


def test_mistakes_are_reported_in_one_line(run_cli, toy):
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
        with httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
            assert client.get("/v1/models").status_code == 401
            assert client.get("/v1/models", headers={"X-API-Key": "abc"}).status_code == 200
        server.send_signal(signal.SIGINT)
        assert server.wait(PATIENCE) == 0
