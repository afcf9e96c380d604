"""What the service does when it is asked for too much: busy, slow, large, broken and hostile."""

import base64
import io
import json
import socket
import struct
import threading
import time
import zlib

import httpx
import numpy as np
import pytest
from live_server import held, in_threads, mutated, picture_bytes, post, running, wait_for
from PIL import Image

from sightline.serve.limits import Limits

QUICK = {"drain_seconds": 0}


def code(response):
    content = response.json()
    assert set(content) == {"error", "request_id"}
    return content["error"]["code"]


def ask(server):
    """A request from a client of its own."""

    def once(_):
        with httpx.Client(base_url=server.url, timeout=60) as client:
            return post(client)

    return once


def occupied(server, count):
    """Requests made in the background until so many hold a place: threads and their results."""
    results = []
    threads = [
        threading.Thread(target=lambda: results.append(ask(server)(0))) for _ in range(count)
    ]
    for thread in threads:
        thread.start()
    wait_for(lambda: server.service.batcher.taken == count)
    return threads, results


# ---------------------------------------------------------------------------- too many


def test_beyond_its_places_it_is_busy_and_recovers_at_once():
    model, models = held()
    with running(models, Limits(max_queue=4, max_batch=2, **QUICK)) as server:
        threads, results = occupied(server, 4)
        for refused in in_threads(6, ask(server)):
            assert refused.status_code == 503
            assert code(refused) == "busy"
            assert int(refused.headers["retry-after"]) >= 1
        assert server.client.get("/healthz").status_code == 200
        model.go.set()
        for thread in threads:
            thread.join(20)
        assert [response.status_code for response in results] == [200] * 4
        assert post(server.client).status_code == 200
        assert server.service.batcher.taken == 0


def test_those_that_wait_are_answered_together_and_others_not():
    model, models = held()
    with running(models, Limits(max_batch=3, **QUICK)) as server:
        threads, _ = occupied(server, 1)
        wait_for(lambda: model.batches == [1])

        def other(number):
            with httpx.Client(base_url=server.url, timeout=60) as client:
                return post(client, beam=3 if number == 3 else 2).json()["text"]

        later = threading.Thread(target=lambda: texts.extend(in_threads(6, other)))
        texts = []
        later.start()
        wait_for(lambda: server.service.batcher.waiting == 6)
        model.go.set()
        for thread in [*threads, later]:
            thread.join(20)
        assert sorted(model.batches) == [1, 1, 2, 3]  # five alike in threes, and the one of beam 3
        assert texts[3] == "1 at once"


def test_a_slow_model_has_fewer_places():
    """Not more than can be answered in half of their time."""
    model, models = held()
    with running(models, Limits(time_limit=8.0, **QUICK)) as server:
        assert server.service.batcher.places == 20  # until it is known: 0.2 s each
        threads, results = occupied(server, 1)
        time.sleep(1.6)
        model.go.set()
        threads[0].join(20)
        assert results[0].status_code == 200
        wait_for(lambda: server.service.batcher.places <= 6)
        model.go.clear()
        places = server.service.batcher.places
        threads, results = occupied(server, places)
        assert code(post(server.client)) == "busy"
        model.go.set()
        for thread in threads:
            thread.join(20)
        assert [response.status_code for response in results] == [200] * places


@pytest.mark.parametrize("stream", ["false", "true"])
def test_a_client_that_leaves_frees_its_place(stream):
    model, models = held()
    with running(models, Limits(max_queue=2, max_batch=1, **QUICK)) as server:
        body = (
            b'--b\r\nContent-Disposition: form-data; name="file"; filename="x"\r\n\r\nx\r\n'
            b'--b\r\nContent-Disposition: form-data; name="stream"\r\n\r\n'
            + stream.encode()
            + b"\r\n--b--\r\n"
        )
        head = (
            "POST /v1/describe HTTP/1.1\r\nHost: x\r\n"
            f"Content-Type: multipart/form-data; boundary=b\r\nContent-Length: {len(body)}\r\n\r\n"
        ).encode()
        clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(2)]
        for client in clients:
            client.sendall(head + body)
        wait_for(lambda: server.service.batcher.taken == 2)
        assert post(server.client).status_code == 503
        for client in clients:  # one is running, one waits
            client.close()
        wait_for(lambda: server.service.batcher.taken == 0)
        wait_for(lambda: server.service.batcher.waiting == 0)
        model.go.set()
        assert post(server.client).status_code == 200
        metrics = server.client.get("/metrics").text
        assert "sightline_disconnects_total 2" in metrics


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_has_only_so_much_time(stream):
    model, models = held()
    with running(models, Limits(time_limit=0.3, **QUICK)) as server:
        began = time.monotonic()
        answer = post(server.client, stream=str(stream).lower())
        assert time.monotonic() - began < 5
        if stream:
            assert answer.text.startswith("event: error\ndata: ")
            assert json.loads(answer.text.split("data: ")[1])["error"]["code"] == "time_limit"
        else:
            assert answer.status_code == 503
            assert code(answer) == "time_limit"
            assert "retry-after" in answer.headers
        wait_for(lambda: server.service.batcher.taken == 0)
        model.go.set()
        assert post(server.client).status_code == 200


def test_a_model_that_breaks_fails_one_request_and_no_more():
    model, models = held()
    model.go.set()
    with running(models, Limits(**QUICK)) as server:
        model.run = lambda items, settings, streamed: 1 / 0
        answer = post(server.client)
        assert answer.status_code == 500
        assert "ZeroDivisionError" not in answer.text
        del model.run
        assert post(server.client).status_code == 200
        assert "sightline_failures_total 1" in server.client.get("/metrics").text


# ---------------------------------------------------------------------------- too large, too slow


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
        client.settimeout(10)
        assert client.recv(4096).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize("start", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: x\r\nX-A: "])
def test_a_client_that_dribbles_its_headers_is_hung_up_on(start):
    _, models = held()
    with (
        running(models, Limits(head_seconds=0.6, **QUICK)) as server,
        socket.create_connection(("127.0.0.1", server.port)) as client,
    ):
        client.sendall(start)
        began = time.monotonic()
        try:
            while time.monotonic() - began < 10:
                if start:
                    client.sendall(b"a")
                client.settimeout(0.1)
                try:
                    if client.recv(1) == b"":
                        break
                except TimeoutError:
                    continue
        except OSError:
            pass
        assert 0.3 < time.monotonic() - began < 5
        assert server.client.get("/healthz").status_code == 200


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


def test_connections_are_bounded():
    _, models = held()
    with running(models, Limits(connections=5, **QUICK)) as server:
        server.client.get("/healthz")
        many = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(10)]
        wait_for(lambda: len(server.server_state.connections) <= 5)
        for client in many:
            client.close()
        wait_for(lambda: len(server.server_state.connections) <= 1)
        assert server.client.get("/healthz").status_code == 200


# ---------------------------------------------------------------------------- bad requests


def bomb():
    """A PNG that says it is 60,000 by 60,000: eleven gigabytes of pixels in a few kilobytes."""

    def chunk(name, data):
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    header = struct.pack(">IIBBBBB", 60_000, 60_000, 8, 2, 0, 0, 0)
    rows = zlib.compress(bytes(10_000_000), 9)
    start = b"\x89PNG\r\n\x1a\n"
    return start + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def tiff_of(size):
    file = io.BytesIO()
    Image.new("1", size).save(file, "TIFF", compression="group4")
    return file.getvalue()


@pytest.mark.parametrize(
    ("content", "status", "expected"),
    [
        (b"", 400, "bad_picture"),
        (b"\xff\xd8\xff\xe0 cut short", 400, "bad_picture"),
        (
            b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>",
            415,
            "unsupported_picture",
        ),
        (b"<!DOCTYPE html><script>alert(1)</script>", 415, "unsupported_picture"),
        (b"%PDF-1.7", 415, "unsupported_picture"),
        (b"#!/bin/sh\nrm -rf /", 415, "unsupported_picture"),
        (b"GIF89a", 400, "bad_picture"),
        (bomb(), 413, "too_many_pixels"),
        (tiff_of((20_000, 20_000)), 413, "too_many_pixels"),
    ],
)
def test_what_is_no_picture_is_refused_by_its_content(server, content, status, expected):
    response = server.client.post(
        "/v1/describe", files={"file": ("photo.jpg", content, "image/jpeg")}
    )
    assert (response.status_code, code(response)) == (status, expected)
    encoded = base64.b64encode(content).decode()
    response = server.client.post("/v1/describe", json={"image": encoded})
    assert (response.status_code, code(response)) == (status, expected)


@pytest.mark.parametrize(
    ("fields", "status", "expected"),
    [
        ({"model": "../../etc/passwd"}, 404, "unknown_model"),
        ({"model": "toy"}, 404, "unknown_model"),
        ({"model": "shapes\x00"}, 404, "unknown_model"),
        ({"beam": "0"}, 422, "bad_field"),
        ({"beam": "21"}, 422, "bad_field"),
        ({"beam": "1e9"}, 422, "bad_field"),
        ({"beam": "2", "n_best": "3"}, 422, "bad_field"),
        ({"focus": "0,0,1"}, 422, "bad_field"),
        ({"focus": "nan,0,1,1"}, 422, "bad_field"),
        ({"focus": "0.2,0.2,0,0.5"}, 422, "bad_field"),
        ({"prefix": "a zyzzyva"}, 422, "cannot_do"),
        ({"prefix": "a" * 201}, 422, "bad_field"),
        ({"prefix": "x" * 9000}, 400, "bad_form"),
        ({"stream": "perhaps"}, 422, "bad_field"),
        ({"colour": "red"}, 422, "bad_field"),
    ],
)
def test_fields_that_cannot_be_used_are_named(server, fields, status, expected):
    response = post(server.client, picture_bytes(), **fields)
    assert (response.status_code, code(response)) == (status, expected)
    assert response.json()["error"]["message"]


def test_file_names_are_of_no_consequence(server):
    for name in ("../../../etc/passwd", "a\x00b.png", "x" * 3000, "<script>", "CON", "-rf"):
        files = {"file": (name, picture_bytes())}
        assert server.client.post("/v1/describe", files=files).status_code == 200


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (b"", "application/json", 400),
        (b"{", "application/json", 400),
        (b"[" * 50_000, "application/json", 400),
        (b"\xff\xfe", "application/json", 400),
        (b"null", "application/json", 422),
        (b"{}", "application/json", 422),
        (b'{"image": 5}', "application/json", 422),
        (b'{"image": "*"}', "application/json", 422),
        (b'{"image": "", "focus": [NaN, 0, 1, 1]}', "application/json", 422),
        (b"x", "text/plain", 415),
        (b"x", "", 415),
        (b"x", "multipart/form-data", 400),
        (b"x", "multipart/form-data; boundary=b", 400),
        (b"--b\r\n\r\n", "multipart/form-data; boundary=b", 400),
        (b"--b--\r\n", "multipart/form-data; boundary=b", 422),
        (b"", "multipart/form-data; boundary=" + "b" * 300, 400),
    ],
)
def test_bodies_that_cannot_be_read_are_refused(server, body, kind, status):
    response = server.client.post("/v1/describe", content=body, headers={"Content-Type": kind})
    assert response.status_code == status, response.text
    code(response)


def test_wrong_methods_and_places_are_told_in_the_same_form(server):
    assert code(server.client.get("/v1/describe")) == "wrong_method"
    assert code(server.client.post("/v1/nothing", content=b"x")) == "not_found"
    assert code(server.client.post("/v1/translate", json={"text": "a" * 2001})) == "bad_field"
    assert code(server.client.post("/v1/translate", content=bytes(70_000))) == "too_large"


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


def test_mutated_requests_are_refused(server):
    """Whole requests with bytes changed, on raw connections: headers, boundaries, lengths."""
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
            with socket.create_connection(("127.0.0.1", server.port), timeout=1) as client:
                try:
                    client.sendall(data)
                    answer = client.recv(4096)
                except OSError:  # a length that is never reached, or a hang-up
                    continue
            if answer:
                seen.append(int(answer.split(b" ", 2)[1]))
        return seen

    seen = [status for some in in_threads(16, send) for status in some]
    assert len(seen) > 60
    assert set(seen) <= {200, 400, 404, 405, 408, 413, 415, 422}
    assert post(server.client, picture_bytes()).status_code == 200
    assert "sightline_failures_total" in server.client.get("/metrics").text
    assert "\nsightline_failures_total " not in server.client.get("/metrics").text
