"""Logs, one JSON object per line: what happened to a request, never its content."""

from __future__ import annotations

import json
import logging
import re
import secrets
import sys
import time

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
            content["traceback"] = self.formatException(record.exc_info)
        return json.dumps(content, ensure_ascii=False, default=str)


def configure(level: str = "info") -> None:
    """Log the service and uvicorn to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    for name in ("sightline.serve", "uvicorn"):
        one = logging.getLogger(name)
        one.handlers = [handler]
        one.setLevel(level.upper())
        one.propagate = False
    # its warnings quote request bodies
    logging.getLogger("python_multipart").setLevel(logging.ERROR)
