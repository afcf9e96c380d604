"""Loading ahead: the same batches in the same order, prepared in the background."""

from __future__ import annotations

import signal
import threading
import time
import traceback

import pytest

from sightline.data.loading import ahead


class Epoch:
    """Batches that are slow to prepare; position `fails` cannot be."""

    def __init__(self, *, seconds: float = 0.0, fails: int | None = None) -> None:
        self.seconds, self.fails = seconds, fails
        self.prepared: list[int] = []

    def __getitem__(self, position: int) -> str:
        self.prepared.append(position)
        time.sleep(self.seconds)
        if position == self.fails:
            raise ValueError(f"batch {position} is bad")
        return f"batch {position}"


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name.startswith("ahead")]


@pytest.mark.parametrize("depth", [0, 1, 2, 50])
@pytest.mark.parametrize("start", [0, 3, 9, 10, 12])
def test_batches_are_those_of_plain_indexing(start: int, depth: int) -> None:
    epoch = Epoch()
    want = [epoch[position] for position in range(start, 10)]
    epoch.prepared.clear()
    assert list(ahead(epoch.__getitem__, range(start, 10), depth)) == want
    assert epoch.prepared == list(range(start, 10)), "each once, in order, none beyond the end"
    assert not threads()


def test_an_exception_is_raised_at_its_position_with_its_traceback() -> None:
    batches = ahead(Epoch(fails=3).__getitem__, range(10))
    for position in range(3):
        assert next(batches) == f"batch {position}"
        time.sleep(0.01)  # the failure happens well before its turn
    with pytest.raises(ValueError, match="batch 3 is bad") as caught:
        next(batches)
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert names[-1] == "__getitem__"
    assert not threads()


def test_closing_early_stops_preparation() -> None:
    epoch = Epoch(seconds=0.01)
    batches = ahead(epoch.__getitem__, range(1000), depth=2)
    assert next(batches) == "batch 0"
    began = time.perf_counter()
    batches.close()
    assert time.perf_counter() - began < 0.5
    assert not threads()
    assert len(epoch.prepared) <= 3
    done = list(epoch.prepared)
    time.sleep(0.05)
    assert epoch.prepared == done


def consume(epoch: Epoch) -> None:
    for batch in ahead(epoch.__getitem__, range(1000)):
        if batch == "batch 5":
            raise RuntimeError("the gradient became nan")


def test_an_exception_in_the_consumer_stops_preparation() -> None:
    epoch = Epoch(seconds=0.001)
    with pytest.raises(RuntimeError, match="gradient"):
        consume(epoch)
    assert not threads()
    assert len(epoch.prepared) <= 8


def test_ctrl_c_while_waiting_for_a_batch_stops_preparation(
    request: pytest.FixtureRequest,
) -> None:
    class Interrupted(Epoch):
        def __getitem__(self, position: int) -> str:
            if position == 3:
                signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
            return super().__getitem__(position)

    epoch = Interrupted(seconds=0.05)
    # a program in the background of a shell may have been started with SIGINT ignored
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    request.addfinalizer(lambda: signal.signal(signal.SIGINT, before))
    with pytest.raises(KeyboardInterrupt):
        list(ahead(epoch.__getitem__, range(1000)))
    assert not threads()
    assert epoch.prepared[-1] <= 5


def test_depth_bounds_what_is_prepared_beyond_the_batch_in_use() -> None:
    epoch = Epoch()
    for position, _ in enumerate(ahead(epoch.__getitem__, range(20), depth=3)):
        time.sleep(0.005)
        assert max(epoch.prepared) == min(position + 3, 19)


def test_preparing_overlaps_with_computing() -> None:
    began = time.perf_counter()
    for _ in ahead(Epoch(seconds=0.02).__getitem__, range(20)):
        time.sleep(0.02)
    assert time.perf_counter() - began < 0.75 * 20 * (0.02 + 0.02)
