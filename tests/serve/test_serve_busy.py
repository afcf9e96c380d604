"""More requests than the service can take, and models that are slow or break."""

import json
import threading
import time

import httpx
import pytest
from live_server import (
    PATIENCE,
    PATIENT,
    QUICK,
    code,
    held,
    in_threads,
    post,
    running,
    sent,
    wait_for,
)

from sightline.serve.limits import Limits


def ask(server):
    """A request from a new client."""

    def once(_):
        with httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
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
    wait_for(lambda: server.service.taken == count)
    return threads, results


def test_beyond_its_places_it_is_busy_and_recovers_at_once():
    model, models = held()
    with running(models, Limits(max_queue=4, max_batch=2, **PATIENT)) as server:
        threads, results = occupied(server, 4)
        for refused in in_threads(6, ask(server)):
            assert refused.status_code == 503
            assert code(refused) == "busy"
            assert int(refused.headers["retry-after"]) >= 1
        assert server.client.get("/healthz").status_code == 200
        model.go.set()
        for thread in threads:
            thread.join(PATIENCE)
        assert [response.status_code for response in results] == [200] * 4
        assert post(server.client).status_code == 200
        assert server.service.taken == 0


def test_those_that_wait_are_answered_together_and_others_not():
    model, models = held()
    with running(models, Limits(max_batch=3, **PATIENT)) as server:
        threads, _ = occupied(server, 1)
        wait_for(lambda: model.batches == [1])

        def other(number):
            with httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
                return post(client, beam=3 if number == 3 else 2).json()["text"]

        later = threading.Thread(target=lambda: texts.extend(in_threads(6, other)))
        texts = []
        later.start()
        wait_for(lambda: server.service.batchers["held"].waiting == 6)
        model.go.set()
        for thread in [*threads, later]:
            thread.join(PATIENCE)
        assert sorted(model.batches) == [1, 1, 2, 3]  # five alike in threes, and the one of beam 3
        assert texts[3] == "1 at once"


def test_a_slow_model_has_fewer_places():
    """Not more than can be answered in half of their time."""
    model, models = held()
    with running(models, Limits(time_limit=60.0, max_queue=200, **QUICK)) as server:
        batcher = server.service.batchers["held"]
        assert batcher.places == 150  # until it is known: 0.2 s each
        (client,) = sent(server, 1)
        wait_for(lambda: model.batches)  # it holds a place before it runs
        time.sleep(1.6)  # at least: then it is known to be 0.62 s
        model.go.set()
        assert client.recv(12) == b"HTTP/1.1 200"
        wait_for(lambda: batcher.places <= 48)
        model.go.clear()
        clients = sent(server, batcher.places)
        assert code(post(server.client)) == "busy"
        model.go.set()
        assert {each.recv(12) for each in clients} == {b"HTTP/1.1 200"}
        for each in [client, *clients]:
            each.close()


@pytest.mark.parametrize("stream", ["false", "true"])
def test_a_client_that_leaves_frees_its_place(stream):
    model, models = held()
    with running(models, Limits(max_queue=2, max_batch=1, **QUICK)) as server:
        clients = sent(server, 2, stream)
        assert post(server.client).status_code == 503
        for client in clients:  # one is running, one waits
            client.close()
        wait_for(lambda: server.service.taken == 0)
        wait_for(lambda: server.service.batchers["held"].waiting == 0)
        model.go.set()
        assert post(server.client).status_code == 200
        wait_for(lambda: "sightline_disconnects_total 2.0" in server.client.get("/metrics").text)


def test_clients_that_leave_do_not_make_it_seem_quick():
    """A batch that is cancelled early says little of how long one takes."""
    model, models = held()
    with running(models, Limits(time_limit=60.0, max_queue=200, max_batch=1, **QUICK)) as server:
        batcher = server.service.batchers["held"]
        assert batcher.places == 150
        for number in range(1, 6):
            (client,) = sent(server, 1)
            wait_for(lambda number=number: len(model.batches) == number)
            client.close()
            wait_for(lambda: batcher.taken == 0)
        count = 'sightline_batch_size_count{model="held"} 5.0'
        wait_for(lambda: count in server.client.get("/metrics").text)
        assert batcher.places <= 150


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_has_only_so_much_time(stream):
    model, models = held()  # that would never answer
    with running(models, Limits(time_limit=2.0, **QUICK)) as server:
        answer = post(server.client, stream=str(stream).lower())
        if stream:
            assert answer.text.startswith("event: error\ndata: ")
            assert json.loads(answer.text.split("data: ")[1])["error"]["code"] == "time_limit"
        else:
            assert answer.status_code == 503
            assert code(answer) == "time_limit"
            assert "retry-after" in answer.headers
        wait_for(lambda: server.service.taken == 0)
        model.go.set()
        wait_for(lambda: post(server.client).status_code == 200)


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
        assert "sightline_failures_total 1.0" in server.client.get("/metrics").text
