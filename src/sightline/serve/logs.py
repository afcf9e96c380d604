"""Logs, one JSON object per line: what happened to a request, never its content."""

from __future__ import annotations

import json
import logging
import re
import secrets
import select
import sys
import time
from typing import TextIO

logger = logging.getLogger("sightline.serve")

_GIVEN_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")


def request_id(given: str | None) -> str:
    """The caller's id if it is short and plain, else a new one."""
    return given if given and _GIVEN_ID.fullmatch(given) else secrets.token_hex(8)


class JsonLines(logging.Formatter):
    """Formats a record and its `fields` as JSON."""

    def format(self, record: logging.LogRecord) -> str:
        stamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        content = {
            "time": f"{stamp}.{int(record.msecs):03d}Z",
            "level": record.levelname.lower(),
            "event": record.getMessage(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info:
            content["traceback"] = self.formatException(record.exc_info)[-3000:]  # fits a pipe
        return json.dumps(content, ensure_ascii=False, default=str)


class Unblocked(logging.StreamHandler[TextIO]):
    """Writes a line if it can be written at once: a stderr that nobody reads stops no request.

    A pipe that can be written to has room for 4,096 bytes.
    """

    def emit(self, record: logging.LogRecord) -> None:
        poll = select.poll()
        poll.register(self.stream, select.POLLOUT)
        if poll.poll(0):
            super().emit(record)


class Seldom(logging.Filter):
    """The same message at most once in ten seconds: asyncio repeats that no file can be opened."""

    def __init__(self) -> None:
        super().__init__()
        self.last: dict[str, float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        message, now = str(record.msg)[:80], time.monotonic()
        if now - self.last.get(message, -10.0) < 10.0:
            return False
        if len(self.last) > 100:
            self.last.clear()
        self.last[message] = now
        return True


def configure(level: str = "info") -> None:
    """Log the service and uvicorn to stderr."""
    handler = Unblocked(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.getLogger("asyncio").addFilter(Seldom())
    for name in ("sightline.serve", "uvicorn", "asyncio"):
        one = logging.getLogger(name)
        one.handlers = [handler]
        one.setLevel(level.upper())
        one.propagate = False
    # its warnings quote request bodies
    logging.getLogger("python_multipart").setLevel(logging.ERROR)
