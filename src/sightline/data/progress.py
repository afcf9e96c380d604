"""A progress bar on a terminal, and a line every half minute in a log."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator
from typing import TypeVar

Item = TypeVar("Item")
_LOG_EVERY = 30.0  # seconds
_quiet = False


def be_quiet(quiet: bool) -> None:
    """Whether progress is shown, in this process."""
    global _quiet
    _quiet = quiet


def is_quiet() -> bool:
    return _quiet


def counted(items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
    """The items, with a bar and the time left on stderr as they are consumed."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

    if _quiet:
        yield from items
        return
    console = Console(stderr=True)
    if not console.is_terminal:
        yield from _logged(items, total, what)
        return
    columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    with Progress("{task.description}", *columns, console=console) as bar:
        task = bar.add_task(what, total=total)
        for item in items:
            yield item
            bar.advance(task)


def _logged(items: Iterable[Item], total: int, what: str) -> Iterator[Item]:
    start = last = time.monotonic()
    for done, item in enumerate(items, start=1):
        yield item
        now = time.monotonic()
        if now - last >= _LOG_EVERY or done == total:
            last = now
            rate = done / max(now - start, 1e-9)
            left = (total - done) / rate
            line = f"{what}: {done:,} of {total:,}, {rate:.1f}/s, {left / 60:.0f} min left"
            print(line, file=sys.stderr, flush=True)
