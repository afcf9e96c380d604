"""`sightline serve` as a process: it starts, ends without losing a request, and tells mistakes."""

import http.client
import itertools
import json
import os
import re
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field

import httpx
import pytest
from live_server import PATIENCE, picture_bytes, wait_for


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


@dataclass
class Seen:
    """What clients saw, by the ids of their requests."""

    connections: int = 0
    answers: dict[str, int] = field(default_factory=dict)  # the statuses
    closed: list[str] = field(default_factory=list)
    reset: list[str] = field(default_factory=list)


def ask_until_it_no_longer_listens(url, client, seen):
    """Requests without a pause, on connections that are kept as long as the server keeps them."""
    form = httpx.Request("POST", url, files={"file": ("p.png", picture_bytes())})
    body, headers = form.read(), dict(form.headers)
    connection = http.client.HTTPConnection(form.url.host, form.url.port, timeout=PATIENCE)
    for number in itertools.count():
        name = headers["X-Request-ID"] = f"client-{client}-{number}"
        if connection.sock is None:
            try:
                connection.connect()
            except ConnectionRefusedError:
                return
            seen.connections += 1
        try:
            connection.request("POST", "/v1/describe", body, headers)  # in one piece
            with connection.getresponse() as response:
                response.read()
                seen.answers[name] = response.status
        except http.client.RemoteDisconnected:
            seen.closed.append(name)
            connection.close()
        except ConnectionError:
            seen.reset.append(name)
            connection.close()


def test_sigterm_under_load_loses_no_accepted_request(shapes, cli_environment):
    """Clients ask without a pause. What has come before the service hangs up it answers.

    No server can answer what is sent on a connection that it has closed already (RFC 9112, 9.5),
    nor on one that the kernel made and it never accepted. So clients may see either, but the
    service has seen nothing of those requests: it has answered all that it has in its log, it has
    closed no connection with bytes on it, and as many are reset as it has not accepted.
    """
    folder, _, _ = shapes
    with process(cli_environment, "--model", folder / "run") as server:
        before = connections_until_now(server.url)
        seen = [Seen() for _ in range(12)]
        with ThreadPoolExecutor(12) as pool:
            clients = [
                pool.submit(ask_until_it_no_longer_listens, server.url, number, one)
                for number, one in enumerate(seen)
            ]
            wait_for(lambda: sum(len(one.answers) for one in seen) > 36)
            server.send_signal(signal.SIGTERM)
            for client in clients:
                client.result(PATIENCE)
        assert server.wait(PATIENCE) == 0
    log = [json.loads(line) for line in server.lines[1:]]
    assert "draining" in [line["event"] for line in log]
    requests = [line for line in log if line.get("route") == "/v1/describe"]
    answers = {name: status for one in seen for name, status in one.answers.items()}
    assert {line["request_id"]: line["status"] for line in requests} == answers
    assert set(answers.values()) <= {200, 503}
    (ended,) = (line for line in log if line["event"] == "ended")
    never_accepted = sum(one.connections for one in seen) - (ended["connections"] - before)
    assert sum(len(one.reset) for one in seen) == never_accepted
    assert ended["cut"] == 0


def connections_until_now(url):
    """That the service has accepted, with this one."""
    metrics = httpx.get(url + "/metrics", timeout=PATIENCE).text
    return int(re.search(r"^sightline_connections_total (\d+)$", metrics, re.M)[1])


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
        with httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
            assert client.get("/v1/models").status_code == 401
            assert client.get("/v1/models", headers={"X-API-Key": "abc"}).status_code == 200
        server.send_signal(signal.SIGINT)
        assert server.wait(PATIENCE) == 0
