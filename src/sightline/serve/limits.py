"""The service's limits, and the error that a request beyond them gets."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any

from sightline.errors import UserError

MEGABYTE = 1_000_000


@dataclass(frozen=True)
class Limits:
    """Bounds on everything that a client can cause."""

    max_queue: int = 64  # requests whose body is read: waiting, being decoded or running
    max_batch: int = 16  # requests answered by one model call
    time_limit: float = 30.0  # seconds from the end of the upload to the end of the answer
    upload_bytes: int = 20 * MEGABYTE  # of a picture
    upload_seconds: float = 30.0  # for a whole body
    upload_memory: int = 256 * MEGABYTE  # of all bodies being read or decoded
    drain_seconds: float = 1.0  # still accepting after SIGTERM, while balancers notice /readyz
    connections: int = 512  # with more open, requests get 503
    pixels: int = 51 * MEGABYTE  # phones make 8192 x 6144; fewer of some kinds (media/image.py)
    readers: int = 2  # pictures decoded at a time
    decode_seconds: float = 5.0  # for one picture; then its decoder is killed
    decode_memory: int = 250 * MEGABYTE  # for one picture of so many pixels
    text_bytes: int = 64_000  # of a body without a file
    batch: int = 32  # requests in the body of one batch


@dataclass(eq=False)
class Refusal(Exception):
    """An error response: what was wrong and what to do about it."""

    status: int
    code: str
    message: str
    _: KW_ONLY
    retry_after: int | None = None
    close: bool = False  # close the connection: the rest of the body is not read

    @staticmethod
    def of(error: UserError) -> Refusal:
        return Refusal(error.status, error.code, str(error))

    def to_json(self, request_id: str) -> dict[str, Any]:
        error = {"code": self.code, "message": self.message}
        return {"error": error, "request_id": request_id}


def busy(seconds: int, *, close: bool = False) -> Refusal:
    message = f"the service is busy; try again in {seconds} s"
    return Refusal(503, "busy", message, retry_after=seconds, close=close)
