"""Loading ahead: the next batches are prepared while the current one computes."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol, TypeVar

T_co = TypeVar("T_co", covariant=True)


class Indexed(Protocol[T_co]):
    """An epoch: batch `position` is a function of the position alone, prepared when indexed."""

    def __len__(self) -> int: ...

    def __getitem__(self, position: int, /) -> T_co: ...


def ahead(epoch: Indexed[T_co], start: int = 0, depth: int = 2) -> Generator[T_co, None, None]:
    """`epoch[start]`, `epoch[start + 1]` … to its end, each prepared in one background thread.

    At most `depth` batches beyond the one in use are prepared or in preparation. An exception is
    raised at the position whose preparation failed. Closing the iterator, or an exception in its
    consumer, cancels what has not begun and waits for the one batch in preparation.
    """
    positions = range(start, len(epoch))
    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="ahead") as thread:
        waiting = deque(thread.submit(epoch.__getitem__, at) for at in positions[:depth])
        try:
            for position in positions:
                if position + depth < len(epoch):
                    waiting.append(thread.submit(epoch.__getitem__, position + depth))
                yield waiting.popleft().result()  # no name, so that it is freed with its consumer's
        finally:
            for future in waiting:
                future.cancel()
