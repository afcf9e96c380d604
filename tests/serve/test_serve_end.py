"""How the service ends: whatever has begun to come, on whichever connection, is answered."""

import http.client
import select
import socket

import pytest
from live_server import PATIENCE, held, request_bytes, running, sent, wait_for

import sightline.serve.server as serving

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def patience(monkeypatch):
    """`patience(seconds)` of silence: for ever and none instead of what a busy machine can miss."""
    return lambda seconds: monkeypatch.setattr(serving, "_QUIET_SECONDS", seconds)


def end(server):
    """Ask it to end; return once it no longer listens and all its connections know."""
    server.should_exit = True
    wait_for(lambda: not server.servers[0].is_serving())
    wait_for(lambda: all(each._ending for each in list(server.server_state.connections)))


def connected(server):
    return socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)


def the_connection(server):
    """The server's side of the only connection."""
    wait_for(lambda: len(server.server_state.connections) == 1)
    return next(iter(server.server_state.connections))


def whole_answer(client):
    """Until the server closes the connection."""
    answer = client.makefile("rb").read()
    assert b"connection: close" in answer.lower()
    return answer


def test_a_request_on_a_connection_that_was_kept_is_answered(patience):
    patience(3600)
    _, models = held()
    with running(models) as server:
        client = http.client.HTTPConnection("127.0.0.1", server.port, timeout=PATIENCE)
        client.request("GET", "/healthz")
        assert client.getresponse().read()
        assert client.sock is not None
        end(server)
        client.request("GET", "/healthz")
        answer = client.getresponse()
        assert (answer.status, answer.headers["connection"]) == (200, "close")


def test_a_request_on_a_connection_that_was_just_made_is_answered(patience):
    patience(3600)
    _, models = held()
    with running(models) as server, connected(server) as client:
        the_connection(server)
        end(server)
        client.sendall(request_bytes())
        assert whole_answer(client).startswith(b"HTTP/1.1 503 ")


def test_a_request_of_which_a_part_has_come_is_answered(patience):
    patience(0)
    _, models = held()
    with running(models) as server, connected(server) as client:
        client.sendall(HEALTH[:10])
        wait_for(lambda: the_connection(server).conn.trailing_data[0] == HEALTH[:10])
        end(server)
        client.sendall(HEALTH[10:])
        assert whole_answer(client).startswith(b"HTTP/1.1 200 ")


def test_a_request_that_has_come_but_was_not_yet_read_is_answered(patience):
    """The event loop is late, as on a busy machine: it closes what it believes to be silent."""
    patience(0)
    _, models = held()
    with running(models) as server, connected(server) as client:
        connection = the_connection(server)
        server.service.guard.draining = True

        def late():
            client.sendall(HEALTH)
            assert select.select([connection.transport.get_extra_info("socket")], [], [], PATIENCE)[
                0
            ]
            connection.shutdown()

        connection.loop.call_soon_threadsafe(late)
        assert whole_answer(client).startswith(b"HTTP/1.1 200 ")


def test_a_connection_that_nobody_has_accepted_is_answered(patience):
    patience(3600)
    _, models = held()
    with running(models) as server:
        clients, shut_down = [], server.shutdown

        async def late(sockets):  # nothing can be accepted while this holds up the loop
            clients.extend(connected(server) for _ in range(5))
            for client in clients:
                client.sendall(HEALTH)
            await shut_down(sockets)

        server.shutdown = late
        server.should_exit = True
        wait_for(lambda: len(clients) == 5)
        for client in clients:
            assert whole_answer(client).startswith(b"HTTP/1.1 200 ")
            client.close()


def test_a_stream_that_has_begun_is_finished(patience):
    patience(3600)
    model, models = held()
    with running(models) as server:
        (client,) = sent(server, 1, stream="true")
        with client, client.makefile("rb") as answer:
            assert answer.readline() == b"HTTP/1.1 200 OK\r\n"
            server.should_exit = True
            wait_for(lambda: server.service.batcher.refuse)
            assert server.service.batcher.taken == 1
            model.go.set()
            stream = b"".join(iter(answer.readline, b"0\r\n"))
            assert b"event: done" in stream
            assert answer.readline() == b"\r\n"
            assert b"connection: close" not in stream.lower()  # so the client may go on
            client.sendall(HEALTH)
            assert answer.readline() == b"HTTP/1.1 200 OK\r\n"
            assert b"connection: close" in answer.read().lower()


def test_a_silent_connection_is_closed(patience):
    patience(0.1)
    _, models = held()
    with running(models) as server, connected(server) as client:
        the_connection(server)
        server.should_exit = True
        assert client.recv(1) == b""
