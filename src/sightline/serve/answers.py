"""Responses beyond plain JSON: errors that close the connection politely, and event streams.

Work continues only while the client is connected and its time limit has not passed.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing, suppress
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response
from starlette.types import Receive, Scope, Send

from sightline.serve.limits import Refusal

T = TypeVar("T")

_LINGER_SECONDS = 2.0  # how long a client that is still sending has to read its error
_LINGER_BYTES = 64_000_000

Event = tuple[str, Any]  # name, data


async def while_there(receive: Receive, work: Coroutine[Any, Any, T], deadline: float) -> T:
    """Await the work; cancel it at the deadline (time.monotonic()) or if the client disconnects."""
    task, watch = asyncio.create_task(work), asyncio.create_task(_disconnected(receive))
    try:
        left = max(0.0, deadline - time.monotonic())
        await asyncio.wait({task, watch}, timeout=left, return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        if watch.done():
            raise ClientDisconnect
        raise Refusal(503, "time_limit", "this took too long; try again later", retry_after=5)
    finally:
        task.cancel()
        watch.cancel()
        await asyncio.gather(task, watch, return_exceptions=True)


async def last(events: AsyncIterator[Event]) -> Any:
    """What the last event says: the answer."""
    async with aclosing(events) as each:  # type: ignore[type-var]
        async for _, data in each:
            answer = data
    return answer


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class RefusedResponse(JSONResponse):
    """An error; if the request's body was not read to its end, the connection is closed after it.

    Closing while the client is still sending would reset the connection, and the client would never
    read the error. So the rest of the body is discarded first, for a limited time.
    """

    def __init__(self, refusal: Refusal, request_id: str, headers: Any = None) -> None:
        super().__init__(refusal.to_json(request_id), refusal.status, headers)
        if refusal.retry_after is not None:
            self.headers["retry-after"] = str(refusal.retry_after)
        if refusal.status == 401:
            self.headers["www-authenticate"] = "Bearer"
        self.closes = refusal.close
        if self.closes:
            self.headers["connection"] = "close"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if not self.closes:
            await super().__call__(scope, receive, send)
            return
        start = {"status": self.status_code, "headers": self.raw_headers}
        await send({"type": "http.response.start", **start})
        await send({"type": "http.response.body", "body": self.body, "more_body": True})
        with suppress(TimeoutError):
            async with asyncio.timeout(_LINGER_SECONDS):
                await _discard(receive)
        await send({"type": "http.response.body", "body": b""})


async def _discard(receive: Receive) -> None:
    size, more = 0, True
    while more and size < _LINGER_BYTES:
        message = await receive()
        size += len(message.get("body", b""))
        more = message.get("more_body", False)


class EventStream(Response):
    """Server-sent events until the last one, a disconnect or the deadline."""

    media_type = "text/event-stream"

    def __init__(
        self,
        events: AsyncIterator[Event],
        deadline: float,
        request_id: str,
        finish: Callable[[], None],
    ) -> None:
        self.events = events
        self.deadline = deadline
        self.request_id = request_id
        self.finish = finish
        self.status_code = 200
        self.background = None
        # no-transform, x-accel-buffering: proxies must not hold events back
        self.init_headers({"cache-control": "no-store, no-transform", "x-accel-buffering": "no"})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"status": self.status_code, "headers": self.raw_headers}
        refused = None
        try:
            await send({"type": "http.response.start", **start})
            await while_there(receive, self._send_all(send), self.deadline)
        except Refusal as refusal:
            refused = refusal
        finally:
            self.finish()
        try:  # a client that does not read its stream must not keep it open
            async with asyncio.timeout(_LINGER_SECONDS):
                if refused is not None:
                    scope["state"]["refused"] = refused.code
                    await self._send(send, "error", refused.to_json(self.request_id))
                await send({"type": "http.response.body", "body": b""})
        except TimeoutError:
            raise ClientDisconnect from None

    async def _send_all(self, send: Send) -> None:
        async with aclosing(self.events) as events:  # type: ignore[type-var]
            async for name, data in events:
                await self._send(send, name, data)

    async def _send(self, send: Send, name: str, data: Any) -> None:
        content = f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()
        await send({"type": "http.response.body", "body": content, "more_body": True})
