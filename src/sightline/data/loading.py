"""Loading ahead: the next batches are prepared while the current one computes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")


def ahead(
    prepare: Callable[[Item], Result], items: Iterable[Item], depth: int = 2
) -> Generator[Result, None, None]:
    """`prepare(item)` of each item in order, in one background thread.

    At most `depth` results beyond the one in use are prepared or in preparation. An exception is
    raised at the item whose preparation failed. Closing the iterator, or an exception in its
    consumer, cancels what has not begun and waits for the one item in preparation.
    """
    waiting: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="ahead") as thread:
        try:
            for item in items:
                waiting.append(thread.submit(prepare, item))
                if len(waiting) > depth:
                    yield waiting.popleft().result()  # no name: it is freed with its consumer's
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
