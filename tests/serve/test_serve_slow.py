"""Models whose graphs are too slow, not by a mock: they are stopped, and stop no other model."""

import threading
import time

import httpx
import pytest
from live_server import PATIENCE, QUICK, code, running, wait_for

pytest.importorskip("onnx")

from slow_models import slow_translator

from sightline.serve.limits import Limits
from sightline.serve.models import load_models


def translate(url, model, beam=1):
    content = {"text": "a b c", "model": model, "beam": beam}
    return httpx.post(f"{url}/v1/translate", json=content, timeout=PATIENCE)


def in_background(*given):
    answers = []
    thread = threading.Thread(target=lambda: answers.append(translate(*given)))
    thread.start()
    return thread, answers


@pytest.fixture(scope="module")
def slow(tmp_path_factory):
    """With a beam of 20 a step takes a minute."""
    return slow_translator(tmp_path_factory.mktemp("slow"), nodes=2000, side=50)


def test_a_graph_that_takes_minutes_is_stopped_and_others_answer(slow, toy):
    models = load_models([f"slow={slow}", f"toy={toy}"])
    with running(models, Limits(time_limit=2.0, **QUICK)) as server:
        batcher = server.service.batchers["slow"]
        for _ in range(2):  # it is tried again
            thread, answers = in_background(server.url, "slow", 20)
            wait_for(lambda: batcher._running)
            assert translate(server.url, "toy").status_code == 200
            assert batcher._running  # and was not waited for
            thread.join(PATIENCE)
            assert (answers[0].status_code, code(answers[0])) == (503, "time_limit")
            began = time.monotonic()
            wait_for(lambda: not batcher._running)
            assert time.monotonic() - began < 10
            assert server.client.get("/readyz").json() == {"status": "ready", "stuck": []}
        wait_for(lambda: translate(server.url, "slow").status_code == 200)
        assert "sightline_failures_total 0.0" in server.client.get("/metrics").text


def test_a_model_stops_computing_when_its_client_leaves(slow):
    with running(load_models([f"slow={slow}"]), Limits(**QUICK)) as server:
        batcher = server.service.batchers["slow"]
        with pytest.raises(httpx.ReadTimeout):
            httpx.post(f"{server.url}/v1/translate", json={"text": "a b", "beam": 20}, timeout=1.0)
        wait_for(lambda: not batcher._running, 20)
        assert translate(server.url, "slow").status_code == 200


def test_a_kernel_that_cannot_be_stopped_blocks_its_own_model_alone(tmp_path, toy):
    """One product of large matrices: the model is refused until it has ended, then served again."""
    folder = slow_translator(tmp_path, nodes=1, side=200)  # with a beam of 20: some seconds
    models = load_models([f"slow={folder}", f"toy={toy}"])
    with running(models, Limits(time_limit=0.5, **QUICK)) as server:
        thread, answers = in_background(server.url, "slow", 20)
        thread.join(PATIENCE)
        assert code(answers[0]) == "time_limit"
        wait_for(lambda: server.client.get("/readyz").json()["stuck"] == ["slow"], 5)
        assert server.client.get("/readyz").status_code == 200
        assert code(translate(server.url, "slow")) == "busy"
        wait_for(lambda: translate(server.url, "toy").status_code == 200)
        wait_for(lambda: server.client.get("/readyz").json()["stuck"] == [])
        wait_for(lambda: translate(server.url, "slow").status_code == 200)
