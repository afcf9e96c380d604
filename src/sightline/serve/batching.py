"""Dynamic batching: requests that wait for a model with the same settings share one model call.

Nothing waits for a batch to fill. A model's worker takes the oldest job and all others like it that
came while it was busy: a single client is answered at once, many clients share the work. Every
model has a worker of its own, so that one which is slow or stuck stops no other.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from sightline.errors import UserError
from sightline.runtime.onnx import stoppable
from sightline.runtime.partial import Partial
from sightline.serve.limits import Refusal, busy

if TYPE_CHECKING:
    from sightline.runtime.describer import Options
    from sightline.serve.models import ServedModel

Update = Partial | dict[str, Any]  # the state of a search, or the answer


@dataclass(eq=False)
class Job:
    """One request's work; its updates arrive on the event loop that created it."""

    item: Any
    settings: Options  # jobs with equal settings run together
    deadline: float  # time.monotonic()
    streamed: bool = False
    done: bool = False  # answered, failed or cancelled
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    updates: asyncio.Queue[Update | Exception] = field(default_factory=asyncio.Queue)

    def send(self, update: Update | Exception) -> None:
        """Called from the worker's thread."""
        self.done = self.done or not isinstance(update, Partial)
        try:
            self.loop.call_soon_threadsafe(self.updates.put_nowait, update)
        except RuntimeError:  # the loop is closed
            self.done = True


class Batcher:
    """A model's bounded number of places, its queue, and the thread that works through it."""

    def __init__(
        self,
        model: ServedModel,
        *,
        max_queue: int,
        max_batch: int,
        time_limit: float,
        observe: Callable[[str, int, float], None] = lambda model, size, seconds: None,
        failed: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        self.model = model
        self.max_queue = max_queue
        self.max_batch = max_batch
        self.time_limit = time_limit
        self._observe = observe
        self._failed = failed
        self.taken = 0  # places held by requests
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._seconds = 0.2  # per job, a moving average
        self._running: list[Job] = []
        self._stop: Callable[[], None] = lambda: None  # ends the model's computation
        self._step_began: float | None = None  # time.monotonic() while a batch runs
        name = f"sightline-{model.name}"
        self._thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------ places, on the event loop

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def places(self) -> int:
        """`max_queue`, or on a slow machine as many as can be answered in half of the time limit:
        answers that come too late would be wasted work."""
        return max(1, min(self.max_queue, int(0.5 * self.time_limit / self._seconds)))

    def retry_after(self) -> int:
        """Whole seconds until about half of the taken places will be free."""
        return int(min(60, max(1, self._seconds * self.taken / 2)))

    @property
    def room(self) -> int:
        """Places that are free."""
        return 0 if self.is_stuck else self.places - self.taken

    def check_room(self, *, close: bool = True) -> None:
        """Refuse a request if there is no place for it; with `close`, before its body is read."""
        if self.room <= 0:
            raise busy(self.retry_after(), close=close)

    def take_place(self) -> ExitStack:
        """Released when the stack closes; its `pop_all` keeps the place beyond a `with`."""
        self.check_room(close=False)
        self.taken += 1
        place = ExitStack()
        place.callback(self._release)
        return place

    def _release(self) -> None:
        self.taken -= 1

    def submit(self, job: Job) -> None:
        """Queue the job of a request that holds a place; so the queue is bounded too."""
        with self._changed:
            if self._closed:
                raise busy(5)
            self._waiting.append(job)
            self._changed.notify()

    def cancel(self, job: Job) -> None:
        """Take the job from the queue; if it is already running, send it no more updates, and stop
        the model if nobody else waits for what it computes."""
        with self._changed:
            job.done = True
            if job in self._waiting:
                self._waiting.remove(job)
            elif job in self._running and all(each.done for each in self._running):
                self._stop()

    def close(self, seconds: float | None = None) -> bool:
        """End the worker once its queue is empty; whether it ended within that time."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join(seconds)
        return not self._thread.is_alive()

    @property
    def is_stuck(self) -> bool:
        """Whether one step of the model has taken longer than a whole request may."""
        began = self._step_began
        return began is not None and time.monotonic() - began > self.time_limit

    @property
    def alive(self) -> bool:
        return self._thread.is_alive() and not self._closed and not self.is_stuck

    # ------------------------------------------------------------------ the worker's thread

    def _work(self) -> None:
        while batch := self._next_batch():
            began = self._step_began = time.monotonic()
            with stoppable() as stop:
                with self._changed:
                    self._running, self._stop = batch, stop
                    if all(job.done for job in batch):  # since they were taken from the queue
                        stop()
                completed = self._run(batch)
                with self._changed:
                    self._running = []
            self._step_began = None
            seconds = time.monotonic() - began
            each = seconds / len(batch)
            if not completed:  # stopped early: it would have taken longer
                each = max(each, self._seconds)
            self._seconds += 0.3 * (each - self._seconds)
            self._observe(self.model.name, len(batch), seconds)

    def _next_batch(self) -> list[Job]:
        """The oldest job and those that can run with it; empty once the batcher is closed."""
        with self._changed:
            while True:
                self._drop_late()
                if self._waiting:
                    break
                if self._closed:
                    return []
                self._changed.wait()
            first = self._waiting[0]
            alike = [job for job in self._waiting if job.settings == first.settings]
            left = first.deadline - time.monotonic()
            in_time = max(1, int(0.5 * left / self._seconds))  # more would all be late
            batch = alike[: min(self.max_batch, in_time)]
            for job in batch:
                self._waiting.remove(job)
            return batch

    def _drop_late(self) -> None:
        """Drop jobs past their deadline; `while_there` has answered their clients."""
        now = time.monotonic()
        for job in [job for job in self._waiting if job.deadline <= now]:
            self._waiting.remove(job)
            job.done = True

    def _run(self, batch: list[Job]) -> bool:
        """Run a batch; whether it ran to its end."""
        try:
            items, streamed = [job.item for job in batch], [job.streamed for job in batch]
            for updates in self.model.run(items, batch[0].settings, streamed):
                self._step_began = time.monotonic()
                for position, update in updates:
                    if not batch[position].done:
                        batch[position].send(update)
                if all(job.done for job in batch):
                    return any(isinstance(update, dict) for _, update in updates)
            return True
        except UserError as error:  # also where it was stopped: then all are done
            if len(batch) > 1:  # one bad item must not fail the others
                for job in batch:
                    if not job.done:
                        self._run([job])
            else:
                batch[0].send(Refusal.of(error))
        except Exception as error:
            self._failed(error)
            for job in batch:
                if not job.done:
                    job.send(Refusal(500, "internal", "the service failed on this request"))
        return False
