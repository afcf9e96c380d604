"""Clients that send too much, too slowly, or over too many connections."""

import socket
import time

import httpx
from live_server import PATIENCE, QUICK, code, held, post, running, wait_for

from sightline.serve.limits import Limits


def test_an_upload_that_is_too_large_is_refused_before_and_while_it_is_read():
    _, models = held()
    with running(models, Limits(upload_bytes=100_000, **QUICK)) as server:
        declared = post(server.client, bytes(300_000))
        assert declared.status_code == 413
        assert code(declared) == "too_large"
        sent = 0

        def endless():
            nonlocal sent
            while sent < 500_000_000:
                sent += 65536
                yield bytes(65536)

        headers = {"Content-Type": "application/json"}
        try:
            answer = server.client.post("/v1/describe", content=endless(), headers=headers)
            assert answer.status_code == 413
        except httpx.TransportError:
            pass  # it hung up
        assert sent < 200_000_000
        between = post(server.client, bytes(120_000))  # as large as a body may be, not a picture
        assert between.status_code == 413
        wait_for(lambda: server.service.intake.held == 0)


def test_bodies_together_hold_only_so_much_memory():
    _, models = held()
    limits = Limits(upload_bytes=1_000_000, upload_memory=1_500_000, **QUICK)
    with running(models, limits) as server:
        slow = socket.create_connection(("127.0.0.1", server.port))
        slow.sendall(
            b"POST /v1/describe HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: 1000000\r\n\r\n" + bytes(900_000)
        )
        wait_for(lambda: server.service.intake.held == 900_000)
        refused = post(server.client, bytes(800_000))
        assert (refused.status_code, code(refused)) == (503, "busy")
        slow.close()
        wait_for(lambda: server.service.intake.held == 0)


def test_a_client_that_dribbles_its_body_is_refused():
    _, models = held()
    with (
        running(models, Limits(upload_seconds=0.5, **QUICK)) as server,
        socket.create_connection(("127.0.0.1", server.port)) as client,
    ):
        client.sendall(
            b"POST /v1/translate HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
            b"Content-Length: 1000\r\n\r\n{"
        )
        client.settimeout(PATIENCE)
        assert client.recv(4096).startswith(b"HTTP/1.1 408 ")


def test_slow_clients_do_not_keep_others_out():
    model, models = held()
    model.go.set()
    with running(models, Limits(max_queue=2, upload_seconds=5, **QUICK)) as server:
        slow = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(50)]
        for number, client in enumerate(slow):
            head = b"POST /v1/describe HTTP/1.1\r\nHost: x\r\n"
            whole = head + b"Content-Type: application/json\r\nContent-Length: 500\r\n\r\n{"
            client.sendall(whole if number % 2 else head)
        assert [post(server.client).status_code for _ in range(5)] == [200] * 5
        for client in slow:
            client.close()


def test_with_too_many_connections_requests_get_503():
    _, models = held()
    with running(models, Limits(connections=5, **QUICK)) as server:
        assert server.client.get("/healthz").status_code == 200
        many = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(10)]
        wait_for(lambda: server.client.get("/healthz").status_code == 503)
        for client in many:
            client.close()
        wait_for(lambda: server.client.get("/healthz").status_code == 200)


def test_a_response_does_not_wait_for_the_ack_of_its_head():
    """Without TCP_NODELAY the body waits for the client's delayed ACK: 40 ms on Linux."""
    model, models = held()
    model.go.set()
    seconds = []
    with running(models) as server:
        for _ in range(40):
            began = time.perf_counter()
            assert post(server.client).status_code == 200
            seconds.append(time.perf_counter() - began)
    assert min(seconds[20:]) < 0.035  # the first ACKs of a connection are never delayed
