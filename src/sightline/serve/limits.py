"""What the service takes on, and the refusals that tell a client what it does not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Limits:
    """Bounds on everything that a client can ask for."""

    max_queue: int = 64  # requests whose body is read: waiting, being decoded or running
    max_batch: int = 16  # requests that one model call answers
    time_limit: float = 30.0  # seconds from the end of the upload to the end of the answer
    upload_bytes: int = 20 * MEGABYTE  # of a picture
    upload_seconds: float = 30.0  # for a whole body
    upload_memory: int = 256 * MEGABYTE  # of all bodies in hand
    head_seconds: float = 10.0  # for a request's line and headers
    take_seconds: float = 20.0  # for a client that has stopped taking its answer
    drain_seconds: float = 1.0  # still accepting after SIGTERM, while balancers look away
    connections: int = 512
    pixels: int = 50 * MEGABYTE  # 150 MB as RGB; phones make 48
    readers: int = 2  # pictures decoded at a time
    text_bytes: int = 64_000  # of a body with a sentence


class Refusal(Exception):
    """An answer that is an error: what was wrong and what to do about it."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        *,
        retry_after: int | None = None,
        close: bool = False,  # the rest of the body is not wanted
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.message = message
        self.retry_after = retry_after
        self.close = close

    def to_json(self, request_id: str) -> dict[str, Any]:
        error = {"code": self.code, "message": self.message}
        return {"error": error, "request_id": request_id}


def busy(seconds: int, *, close: bool = False) -> Refusal:
    return Refusal(
        503,
        "busy",
        f"the service has all the work it can take; try again in {seconds} s",
        retry_after=seconds,
        close=close,
    )
