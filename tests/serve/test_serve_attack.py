"""Attacks on the service: files that never end decoding, models that never return, large asks."""

import base64
import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from benchmarks.load import scan_bomb
from decoding import OddReader, Spy, decoders
from live_server import PATIENCE, PATIENT, QUICK, code, held, picture_bytes, post, running, wait_for

from sightline.errors import DataError, PictureError, PictureSizeError, UserError
from sightline.media.preprocess import ImageSpec
from sightline.runtime.describer import Options
from sightline.serve.limits import Limits
from sightline.tasks.caption.parts import PictureReader
from sightline.tasks.route import check_work
from sightline.types import Inputs, Layout, Stream

# ---------------------------------------------------------------- decoders


def test_a_decoder_that_takes_too_long_is_killed_and_replaced():
    with decoders(seconds=1.0) as pool:
        pool.read(OddReader(), b"good", {})
        began = time.monotonic()
        with pytest.raises(DataError, match="more than 1 s"):
            pool.read(OddReader(), b"slow", {})
        assert time.monotonic() - began < 30
        assert pool.restarts == 1
        assert len(pool.read(OddReader(), b"good", {"size": 3})) == 3


def test_a_decoder_that_dies_is_replaced():
    with decoders() as pool:
        for number in (1, 2):
            with pytest.raises(DataError, match="ended its decoder"):
                pool.read(OddReader(), b"crash", {})
            assert pool.restarts == number
        pool.read(OddReader(), b"good", {})


def test_a_decoders_memory_is_limited():
    with decoders() as pool:
        with pytest.raises(PictureSizeError, match="more than 250 MB"):
            pool.read(OddReader(), b"large", {})
        with pytest.raises(DataError, match="it is bad"):
            pool.read(OddReader(), b"bad", {})
        with pytest.raises(RuntimeError, match="ZeroDivisionError"):
            pool.read(OddReader(), b"bug", {})
        assert pool.restarts == 0


class Trap:
    """Unpickled, it makes a folder."""

    def __init__(self, folder):
        self.folder = folder

    def __reduce__(self):
        return os.mkdir, (str(self.folder),)


def forged(**changes):
    stream = {"used": [["<f4", [2, 2]], None]}
    return {"streams": stream, "layouts": [None], **changes}


def test_nothing_from_a_decoder_is_unpickled(tmp_path):
    """A decoder that an attacker controls: wrong results are refused and the process replaced."""
    trap = tmp_path / "executed"
    numbers = bytes(16)

    def message(*parts):
        return json.dumps({"parts": parts}).encode()

    def array(kind, shape):
        return forged(streams={"used": [[kind, shape], None]})

    wrong = [
        [pickle.dumps(Trap(trap))],
        [pickle.dumps(([b"", pickle.dumps(Trap(trap))], []))],
        [b"\xff"], [b"[" * 100_000], [b"7"], [b"{}"], [b'{"parts": 1}'], [b'{"error": 1}'],
        [message(forged(layouts=[{"evil": 1}])), numbers],
        [message(forged()), numbers[:-1]],
        [message(forged()), numbers * 2],
        [message(array("O", [1])), numbers],
        [message(array("|S4", [1])), numbers],
        [message(array("<f4", [1 << 40])), numbers],
        [message(array("<f4", [-1])), numbers],
        [message(array(trap.name, [1])), pickle.dumps(Trap(trap))],
    ]  # fmt: skip
    with decoders(seconds=PATIENCE) as pool:
        for number, messages in enumerate(wrong, 1):
            source = json.dumps([base64.b64encode(each).decode() for each in messages]).encode()
            with pytest.raises(PictureError, match="ended its decoder"):
                pool.read(Spy(), source, {})
            assert pool.restarts == number
        pool.read(OddReader(), b"good", {})
    assert not trap.exists()


def test_threads_share_decoders_and_closing_ends_them():
    with decoders(2) as pool, ThreadPoolExecutor(8) as threads:
        sizes = threads.map(
            lambda size: len(pool.read(OddReader(), b"good", {"size": size})), range(1, 40)
        )
        assert list(sizes) == list(range(1, 40))
        waiting = threads.submit(pool.read, OddReader(), b"slow", {})
        time.sleep(0.2)
        pool.close()
        with pytest.raises(DataError):
            waiting.result(PATIENCE)


def test_a_picture_is_read_in_a_process_as_in_this_one():
    reader = PictureReader(ImageSpec(260, "squeeze"), (9, 9))
    with decoders() as pool:
        ((here,), (there,)) = reader.read(picture_bytes()), pool.read(reader, picture_bytes(), {})
    np.testing.assert_array_equal(here["pictures"].values, there["pictures"].values)
    assert here.layouts == there.layouts


# ---------------------------------------------------------------- the service


def test_it_is_not_ready_while_no_decoder_starts(models, monkeypatch):
    with running(models, Limits(**PATIENT)) as server:
        pool = server.service.decoders
        wait_for(lambda: all(each._process for each in pool._all))
        monkeypatch.setattr("sightline.serve.decoders._CONTEXT", None)
        for each in pool._all:
            each.kill()
        assert code(post(server.client, picture_bytes())) == "busy"
        assert server.client.get("/readyz").status_code == 503
        monkeypatch.undo()
        wait_for(lambda: server.client.get("/readyz").status_code == 200)
        assert post(server.client, picture_bytes()).status_code == 200


def test_scan_bombs_are_refused_and_others_answered(models):
    bomb = scan_bomb()
    with running(models, Limits(**PATIENT)) as server:
        began = time.monotonic()
        for _ in range(3):
            answer = post(server.client, bomb)
            assert (answer.status_code, code(answer)) == (400, "bad_picture")
            assert post(server.client, picture_bytes()).status_code == 200
        assert time.monotonic() - began < 60
        assert server.service.decoders.restarts == 0
        assert server.client.get("/readyz").status_code == 200


def test_a_model_that_never_returns_makes_it_not_ready():
    model, models = held()
    run = model.run
    model.run = lambda *given: (model.go.wait(), *run(*given))[1:]  # one step that does not end
    with running(models, Limits(time_limit=0.5, **QUICK)) as server:
        assert server.client.get("/readyz").status_code == 200
        assert code(post(server.client)) == "time_limit"
        wait_for(lambda: server.client.get("/readyz").status_code == 503)
        assert code(post(server.client)) == "busy"
        model.go.set()
        wait_for(lambda: server.client.get("/readyz").status_code == 200)


@pytest.mark.skipif(os.name != "posix", reason="needs POSIX signals")
def test_sigterm_ends_it_in_its_time_whatever_its_model_does(tmp_path):
    script = tmp_path / "stuck.py"
    script.write_text(
        textwrap.dedent("""
        import sys, threading
        from live_server import held, request_bytes, bind, Server, Service, Limits
        import socket, time
        if __name__ == "__main__":
            model, models = held()
            model.run = lambda *given: threading.Event().wait()
            listener = bind("127.0.0.1", 0)
            limits = Limits(time_limit=0.5, upload_seconds=0.5, drain_seconds=0)
            print(listener.getsockname()[1], flush=True)
            Server(Service(models, limits)).run([listener])
        """)
    )
    here = Path(__file__).parent
    paths = [str(here), str(here.parent), *sys.path]
    process = subprocess.Popen(
        [sys.executable, script],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    try:
        import httpx

        port = int(process.stdout.readline())
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=PATIENCE) as client:
            wait_for(lambda: _ready(client))
            assert code(post(client)) == "time_limit"
            began = time.monotonic()
            process.send_signal(signal.SIGTERM)
            _, log = process.communicate(timeout=PATIENCE)
        assert process.returncode == 1
        assert time.monotonic() - began < 20
        assert "ended before all requests were answered" in log
    finally:
        process.kill()
        process.wait()


def _ready(client):
    import httpx

    try:
        return client.get("/readyz").status_code == 200
    except httpx.TransportError:
        return False


# ---------------------------------------------------------------- beam × n-best × length


def asked(size, parts=1, beam=5):
    codec = SimpleNamespace(
        max_length=lambda size: 10 + 3 * size // 2, search=SimpleNamespace(beam=beam)
    )
    tokens = Stream.ragged([np.zeros(size, np.int64)])
    part = Inputs(1, {"tokens": tokens}, (Layout.words(["w"] * size),))
    return SimpleNamespace(codec=codec), [part] * parts


def test_an_answer_is_bounded_for_all_tasks():
    model, parts = asked(400, parts=2)
    check_work(model, Options(), parts)  # what the model does by itself
    with pytest.raises(UserError, match=r"n_best is too large .*: at most \d+"):
        check_work(model, Options(beam=20, n_best=20), parts)
    small, few = asked(60)
    check_work(small, Options(beam=20, n_best=20), few)
    model, parts = asked(5000)
    with pytest.raises(UserError, match="beam is too large"):
        check_work(model, Options(beam=20), parts)


def test_the_service_refuses_a_beam_times_n_best_that_is_too_large(server):
    text = " ".join(["abcdefghij"] * 180)
    answer = server.client.post("/v1/translate", json={"text": text, "beam": 20, "n_best": 20})
    if answer.status_code != 200:
        assert (answer.status_code, code(answer)) == (422, "cannot_do")
    assert len(answer.content) < 25_000_000
