"""How the service stops: it drains, stops listening, and answers every request it has begun."""

import signal
import socket

import pytest
from live_server import PATIENCE, PATIENT, held, request_bytes, running, sent, wait_for

from sightline.serve.limits import Limits

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


def connected(server):
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)


def until_closed(client):
    """All that the server sends until it closes the connection."""
    with client, client.makefile("rb") as file:
        return file.read()


def stop(server):
    """Returns once it no longer listens."""
    server.handle_exit(signal.SIGTERM, None)
    wait_for(lambda: not listening(server))


def listening(server):
    try:
        connected(server).close()
    except ConnectionRefusedError:
        return False
    return True


def force(server):
    """A second Ctrl-C."""
    server.handle_exit(signal.SIGINT, None)
    wait_for(lambda: not server.thread.is_alive())


def test_while_it_drains_it_answers_but_is_not_ready():
    model, models = held()
    model.go.set()
    with running(models, Limits(**{**PATIENT, "drain_seconds": PATIENCE})) as server:
        kept = connected(server)
        kept.sendall(HEALTH)
        assert kept.recv(12) == b"HTTP/1.1 200"
        server.handle_exit(signal.SIGTERM, None)
        wait_for(lambda: server.service.guard.draining)
        kept.sendall(HEALTH)
        assert b"connection: close" in until_closed(kept)
        assert server.client.get("/readyz").status_code == 503
        new = connected(server)
        new.sendall(request_bytes())
        answer = until_closed(new)
        assert answer.startswith(b"HTTP/1.1 200 ")
        assert b"connection: close" in answer
        force(server)
        server.service.close()


def test_requests_that_have_begun_are_answered_after_it_stops_listening():
    model, models = held()
    with running(models, Limits(max_batch=1, **PATIENT)) as server:
        clients = sent(server, 3)  # one is running, two wait
        uploading = connected(server)
        whole = request_bytes()
        uploading.sendall(whole[:-5])
        wait_for(lambda: server.service.intake.held > 0)
        stop(server)
        uploading.sendall(whole[-5:])
        model.go.set()
        for client in [*clients, uploading]:
            assert until_closed(client).startswith(b"HTTP/1.1 200 ")


def test_a_stream_that_has_begun_is_finished():
    model, models = held()
    with running(models) as server:
        (client,) = sent(server, 1, stream="true")
        assert client.recv(12) == b"HTTP/1.1 200"
        stop(server)
        model.go.set()
        assert b"event: done" in until_closed(client)


@pytest.mark.parametrize("start", [b"", HEALTH[:10]])
def test_a_connection_without_a_request_is_closed(start):
    _, models = held()
    with running(models) as server, connected(server) as client:
        client.sendall(start)
        stop(server)
        assert client.recv(1) == b""


def test_a_second_ctrl_c_does_not_wait():
    model, models = held()
    with running(models) as server:
        (client,) = sent(server, 1)
        stop(server)
        force(server)
        model.go.set()
        server.service.close()
        client.close()
