"""Dynamic batching: requests that wait for the same model and settings are answered by one call.

Nothing waits for a batch to fill. A worker takes the oldest job and with it all others like it
that have come while it was busy: one client gets its answer at once, many share the work.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from sightline.errors import UserError
from sightline.runtime.partial import Partial
from sightline.serve.limits import Refusal, busy

Update = Partial | dict[str, Any]  # how a search stands, or the answer


class Model(Protocol):
    """What a worker needs of a model that is served."""

    @property
    def name(self) -> str: ...

    def run(
        self, items: Sequence[Any], settings: Any, streamed: Sequence[bool]
    ) -> Iterator[list[tuple[int, Update]]]:
        """After each step of the search the news of items, by position; at its end the answers.

        Partial results are for those that are streamed.
        """
        ...


@dataclass(eq=False)
class Job:
    """One request's work; its news come to the event loop that made it."""

    model: Model
    item: Any
    settings: Hashable  # jobs of one model with equal settings run together
    deadline: float  # time.monotonic()
    streamed: bool = False
    over: bool = False  # answered, failed, or nobody waits for it any more
    loop: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop)
    news: asyncio.Queue[Update | Exception] = field(default_factory=asyncio.Queue)

    def tell(self, news: Update | Exception) -> None:
        """From the worker's thread."""
        self.over = self.over or not isinstance(news, Partial)
        try:
            self.loop.call_soon_threadsafe(self.news.put_nowait, news)
        except RuntimeError:  # the loop has ended, and with it whoever waited
            self.over = True


class Batcher:
    """A bounded number of places, a queue, and the thread that works through it."""

    def __init__(
        self,
        *,
        max_queue: int,
        max_batch: int,
        time_limit: float,
        observe: Callable[[str, int, float], None] = lambda model, size, seconds: None,
        failed: Callable[[Exception], None] = lambda error: None,
    ) -> None:
        self.max_queue = max_queue
        self.max_batch = max_batch
        self.time_limit = time_limit
        self._observe = observe
        self._failed = failed
        self._taken = 0
        self.refuse = False  # no places are given any more
        self._waiting: deque[Job] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self._seconds = 0.2  # per job, a moving average
        self._thread = threading.Thread(target=self._work, name="sightline-batcher", daemon=True)
        self._thread.start()

    # ------------------------------------------------------------------ places, on the event loop

    @property
    def taken(self) -> int:
        """Requests that hold a place."""
        return self._taken

    @property
    def waiting(self) -> int:
        return len(self._waiting)

    @property
    def places(self) -> int:
        """As many as asked for, or as can be answered in half of their time on a slow machine:
        work on requests that come too late for their answers would be work for nobody."""
        return max(1, min(self.max_queue, int(0.5 * self.time_limit / self._seconds)))

    def retry_after(self) -> int:
        """Whole seconds until about half of the places will be free."""
        return int(min(60, max(1, self._seconds * self._taken / 2)))

    def check_room(self) -> None:
        """Refuse early what would be refused later, before its body is read."""
        if self.refuse or self._taken >= self.places:
            raise busy(self.retry_after(), close=True)

    def take_place(self) -> Place:
        if self.refuse or self._taken >= self.places:
            raise busy(self.retry_after())
        self._taken += 1
        return Place(self)

    def submit(self, job: Job) -> None:
        """The holder of a place brings its job; so the queue cannot grow beyond the places."""
        with self._changed:
            if self._closed:
                raise busy(5)
            self._waiting.append(job)
            self._changed.notify()

    def cancel(self, job: Job) -> None:
        """Nobody waits for it: it leaves the queue, or its batch goes on without telling it."""
        with self._changed:
            job.over = True
            if job in self._waiting:
                self._waiting.remove(job)

    def close(self) -> None:
        """End the worker once its queue is empty."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()

    @property
    def alive(self) -> bool:
        return self._thread.is_alive() and not self._closed

    # ------------------------------------------------------------------ the worker's thread

    def _work(self) -> None:
        while batch := self._next_batch():
            began = time.monotonic()
            answered = self._run(batch)
            seconds = time.monotonic() - began
            each = seconds / len(batch)
            if not answered:  # nobody waited for its end, which would have come later
                each = max(each, self._seconds)
            self._seconds += 0.3 * (each - self._seconds)
            self._observe(batch[0].model.name, len(batch), seconds)

    def _next_batch(self) -> list[Job]:
        """The oldest job and those that can run with it; none once the batcher is closed."""
        with self._changed:
            while True:
                self._drop_late()
                if self._waiting:
                    break
                if self._closed:
                    return []
                self._changed.wait()
            first = self._waiting[0]
            key = (first.model, first.settings)
            alike = [job for job in self._waiting if (job.model, job.settings) == key]
            left = first.deadline - time.monotonic()
            in_time = max(1, int(0.5 * left / self._seconds))  # or none of them would be
            batch = alike[: min(self.max_batch, in_time)]
            for job in batch:
                self._waiting.remove(job)
            return batch

    def _drop_late(self) -> None:
        """Those that would be answered too late are answered by their own side of the queue."""
        now = time.monotonic()
        for job in [job for job in self._waiting if job.deadline <= now]:
            self._waiting.remove(job)
            job.over = True

    def _run(self, batch: list[Job]) -> bool:
        """Whether it ran to its end."""
        try:
            for news in self._steps(batch):
                for place, update in news:
                    if not batch[place].over:
                        batch[place].tell(update)
                if all(job.over for job in batch):
                    return any(isinstance(update, dict) for _, update in news)
            return True
        except UserError as error:
            if len(batch) > 1:  # one bad item is no reason to fail the others
                for job in batch:
                    if not job.over:
                        self._run([job])
            else:
                batch[0].tell(Refusal(422, "cannot_do", str(error)))
        except Exception as error:
            self._failed(error)
            for job in batch:
                if not job.over:
                    job.tell(Refusal(500, "internal", "the service failed at this request"))
        return False

    def _steps(self, batch: list[Job]) -> Iterator[list[tuple[int, Update]]]:
        first = batch[0]
        streamed = [job.streamed for job in batch]
        return first.model.run([job.item for job in batch], first.settings, streamed)


class Place:
    """One of a batcher's places: given back at the end of a `with`, or later by who keeps it."""

    def __init__(self, batcher: Batcher) -> None:
        self._batcher: Batcher | None = batcher
        self._kept = False

    def __enter__(self) -> Place:
        return self

    def __exit__(self, *error: object) -> None:
        if not self._kept:
            self.release()

    def keep(self) -> Callable[[], None]:
        """Held beyond the `with`, until what this returns is called."""
        self._kept = True
        return self.release

    def release(self) -> None:
        if self._batcher is not None:
            self._batcher._taken -= 1
            self._batcher = None
