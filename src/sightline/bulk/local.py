"""Describing on this machine: processes that each open the model, and are replaced if they die."""

from __future__ import annotations

import os
import queue
import signal
import threading
from collections import Counter, deque
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from typing import Any

from sightline.bulk.results import Row
from sightline.bulk.sources import Item
from sightline.bulk.worker import Job, Worker, fetched, lost
from sightline.errors import UserError

DEPTH = 2  # batches that a worker has: one that it describes, and the next
TRIES = 3  # deaths with one input alone until the input is to blame
STARTS = 3  # deaths in a row before a worker was ready, until the model is to blame


@dataclass
class _Process:
    process: Any
    connection: Connection
    ready: bool = False
    flight: deque[list[Item]] = field(default_factory=deque)


def describe(batches: Iterable[list[Item]], job: Job, workers: int) -> Iterator[list[Row]]:
    """Rows as they come, in any order; at most DEPTH batches a worker are held."""
    coming = iter(batches)
    again: deque[list[Item]] = deque()
    alone: Counter[str] = Counter()
    stillborn = 0
    pool = [_started(job) for _ in range(workers)]
    try:
        while True:
            _feed(pool, again, coming)
            if not any(each.flight for each in pool):
                return
            for connection in wait([each.connection for each in pool]):
                one = next(each for each in pool if each.connection is connection)
                try:
                    rows = one.connection.recv()
                except (EOFError, OSError):
                    stillborn = 0 if one.ready else stillborn + 1
                    if stillborn == STARTS:
                        raise UserError("the workers die as they begin: is there memory?") from None
                    pool[pool.index(one)] = _started(job)
                    yield _salvaged(one, again, alone)
                    continue
                if isinstance(rows, str):
                    raise UserError(rows)
                if one.ready:
                    one.flight.popleft()
                    yield rows
                one.ready, stillborn = True, 0
    finally:
        for each in pool:
            each.process.kill()
            each.process.join()
            each.connection.close()


def _feed(pool: list[_Process], again: deque[list[Item]], coming: Iterator[list[Item]]) -> None:
    """Each worker its next batches, first those of workers that died."""
    for depth in range(1, DEPTH + 1):
        for each in pool:
            if len(each.flight) >= depth:
                continue
            batch = again.popleft() if again else next(coming, None)
            if batch is None:
                return
            each.flight.append(batch)
            with suppress(OSError):  # it died, which is seen when it is heard
                each.connection.send(batch)


def _salvaged(dead: _Process, again: deque[list[Item]], alone: Counter[str]) -> list[Row]:
    """What a dead worker had is described again, the inputs of its batch one by one."""
    dead.process.join()
    dead.connection.close()
    rows = []
    for at, batch in enumerate(dead.flight):
        if at or not dead.ready:
            again.append(batch)
        elif len(batch) > 1:
            again.extend([item] for item in batch)
        else:
            alone[batch[0].key] += 1
            if alone[batch[0].key] == TRIES:
                rows.append(lost(batch[0]))
            else:
                again.append(batch)
    return rows


def _started(job: Job) -> _Process:
    context = get_context("spawn")  # a fork would share the threads of onnxruntime
    ours, theirs = context.Pipe()
    process = context.Process(target=work, args=(theirs, job), daemon=True)
    with _threads(job.threads):
        process.start()
    theirs.close()  # so that its death ends the connection
    return _Process(process, ours)


@contextmanager
def _threads(count: int) -> Iterator[None]:
    """The environment of a process that is started here."""
    before = os.environ.get("OMP_NUM_THREADS")
    os.environ["OMP_NUM_THREADS"] = str(count)
    try:
        yield
    finally:
        if before is None:
            del os.environ["OMP_NUM_THREADS"]
        else:
            os.environ["OMP_NUM_THREADS"] = before


def work(connection: Connection, job: Job) -> None:
    """A worker's life: it says that it is ready, then gives rows for items."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the driver ends it
    waiting: queue.Queue[list[Item]] = queue.Queue()

    def receive() -> None:
        """Reads while the model computes, so that the driver never waits to send."""
        while True:
            try:
                waiting.put(fetched(connection.recv()))
            except (EOFError, OSError):
                os._exit(0)  # the driver is gone

    threading.Thread(target=receive, daemon=True).start()
    try:
        worker = Worker(job)
    except UserError as error:
        connection.send(str(error))
        return
    connection.send([])
    while True:
        connection.send(worker.describe(waiting.get()))
