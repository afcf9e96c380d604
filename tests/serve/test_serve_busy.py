"""More requests than the service can take, and models that are slow or break."""

import json
import socket
import threading
import time

import httpx
import pytest
from live_server import QUICK, code, held, in_threads, post, running, wait_for

from sightline.serve.limits import Limits


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


def sent(server, count, stream="false"):
    """Connections on which a request was made, once they all hold a place."""
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
    clients = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(count)]
    for client in clients:
        client.sendall(head + body)
    wait_for(lambda: server.service.batcher.taken == count)
    return clients


@pytest.mark.parametrize("stream", ["false", "true"])
def test_a_client_that_leaves_frees_its_place(stream):
    model, models = held()
    with running(models, Limits(max_queue=2, max_batch=1, **QUICK)) as server:
        clients = sent(server, 2, stream)
        assert post(server.client).status_code == 503
        for client in clients:  # one is running, one waits
            client.close()
        wait_for(lambda: server.service.batcher.taken == 0)
        wait_for(lambda: server.service.batcher.waiting == 0)
        model.go.set()
        assert post(server.client).status_code == 200
        metrics = server.client.get("/metrics").text
        assert "sightline_disconnects_total 2" in metrics


def test_clients_that_leave_do_not_make_it_seem_quick():
    """A batch that is given up early says little of how long one takes."""
    model, models = held()
    with running(models, Limits(time_limit=8.0, max_batch=1, **QUICK)) as server:
        batcher = server.service.batcher
        assert batcher.places == 20
        for number in range(1, 6):
            (client,) = sent(server, 1)
            wait_for(lambda number=number: len(model.batches) == number)
            client.close()
            wait_for(lambda: batcher.taken == 0)
        wait_for(lambda: "sightline_batch_size_count" in server.client.get("/metrics").text)
        assert batcher.places <= 20


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
