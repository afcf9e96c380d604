"""uvicorn, with an end to its patience, and an end of its own that loses no request."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import socket
from types import FrameType
from typing import Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from sightline.errors import UserError
from sightline.serve.app import Service
from sightline.serve.logs import logger
from sightline.serve.metrics import Metrics

_QUIET_SECONDS = 2.0  # a client that connected, or was answered, so long ago has no more to ask


class ImpatientProtocol(H11Protocol):
    """HTTP/1.1 that hangs up on clients that send their headers, or take their answer, too slowly.

    uvicorn waits for a request's head for ever: that is how slow-loris clients hold connections.
    """

    head_seconds = 10.0
    take_seconds = 20.0
    most_connections = 512
    metrics: Metrics
    _heard = 0.0  # when there was last something on this connection, by the loop's clock
    _ending = False  # the server ends
    _timer: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.metrics.connections.add()
        self._heard = self.loop.time()
        if len(self.connections) > self.most_connections:
            transport.abort()
            return
        self._await_head()

    def data_received(self, data: bytes) -> None:
        self._heard = self.loop.time()
        if self._timer is None and self._is_idle():
            self._await_head()
        super().data_received(data)
        if not self._is_idle():
            self._stop_timer()

    def pause_writing(self) -> None:
        """The client does not read: what it was sent waits here, and whoever sends it more."""
        super().pause_writing()
        self._stuck = self.loop.call_later(self.take_seconds, self.transport.abort)

    def resume_writing(self) -> None:
        self._unstick()
        super().resume_writing()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._heard = self.loop.time()
        if self.transport.is_closing():  # what the client does not fetch is dropped in the end
            self.loop.call_later(self.head_seconds, self.transport.abort)
        elif self._ending:  # a stream that began before that, and told of no end
            self._close_when_quiet()

    def shutdown(self) -> None:
        """The server ends: what may be on its way on this connection is still waited for."""
        self._ending = True
        self._close_when_quiet()

    def _close_when_quiet(self) -> None:
        """Between requests, none of which has begun to come, and after some silence. A request is
        answered otherwise, and its answer, or the timer of its head, ends the connection."""
        if self.transport.is_closing() or not self._is_idle() or self.conn.trailing_data[0]:
            return
        silence = self.loop.time() - self._heard
        if silence < _QUIET_SECONDS:
            self.loop.call_later(_QUIET_SECONDS - silence, self._close_when_quiet)
        elif self._has_unread():  # on a busy machine the loop may be late
            self.loop.call_later(0.01, self._close_when_quiet)
        else:
            with contextlib.suppress(OSError):  # the client was quicker
                self.transport.write_eof()  # close() alone waits for the loop's next turn
            if self._has_unread():
                self.metrics.cut.add()
            super().shutdown()

    def _has_unread(self) -> bool:
        with (
            contextlib.suppress(OSError),
            self.transport.get_extra_info("socket").dup() as same,
        ):
            return bool(same.recv(1, socket.MSG_PEEK))
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        self._unstick()
        super().connection_lost(exc)

    def timeout_keep_alive_handler(self) -> None:
        super().timeout_keep_alive_handler()
        self.loop.call_later(self.head_seconds, self.transport.abort)

    def _is_idle(self) -> bool:
        """Between requests."""
        return self.cycle is None or self.cycle.response_complete

    def _await_head(self) -> None:
        self._timer = self.loop.call_later(self.head_seconds, self._give_up)

    def _give_up(self) -> None:
        self._timer = None
        if self._is_idle():
            self.transport.abort()

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _unstick(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None


class Server(uvicorn.Server):
    """Ends when asked to, in this order: it is not ready any more, but goes on; new requests are
    refused, and those that it has are answered; it stops listening."""

    def __init__(self, service: Service, **options: Any) -> None:
        limits = service.limits
        protocol = type(
            "Protocol",
            (ImpatientProtocol,),
            {
                "head_seconds": limits.head_seconds,
                "take_seconds": limits.take_seconds,
                "most_connections": limits.connections,
                "metrics": service.metrics,
            },
        )
        super().__init__(
            uvicorn.Config(
                service.guard,
                http=protocol,
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_keep_alive=15,
                timeout_graceful_shutdown=int(limits.time_limit + limits.upload_seconds) + 5,
                **options,
            )
        )
        self.service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A second Ctrl-C does not wait; unlike uvicorn's, a clean end has the exit code 0."""
        if self.should_exit and sig == signal.SIGINT:
            self.force_exit = True
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.service.guard.draining = True
        logger.info("draining", extra={"fields": {"requests": self.service.batcher.taken}})
        if not self.force_exit:
            await asyncio.sleep(self.service.limits.drain_seconds)
        batcher = self.service.batcher
        batcher.refuse = True
        while batcher.taken and not self.force_exit:  # each has its time limit
            await asyncio.sleep(0.02)
        for listener in sockets or []:
            await self._accept_the_last(listener)
        await super().shutdown(sockets)
        counted = self.service.metrics
        counts = {name: getattr(counted, name).total for name in ("connections", "requests", "cut")}
        logger.info("ended", extra={"fields": counts})

    async def _accept_the_last(self, listener: socket.socket) -> None:
        """Connections that the kernel has made and nobody has taken would be reset."""
        loop = asyncio.get_running_loop()
        loop.remove_reader(listener)
        await asyncio.sleep(0)  # what asyncio itself has accepted becomes connections
        accepted = []
        with contextlib.suppress(OSError):  # there are no more, or no more files
            while True:
                accepted.append(listener.accept()[0])
        for server in self.servers:
            server.close()
        for connection in accepted:
            connection.setblocking(False)
            await loop.connect_accepted_socket(self._protocol, connection)

    def _protocol(self) -> asyncio.Protocol:
        make: Any = self.config.http_protocol_class
        protocol: asyncio.Protocol = make(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return protocol


def bind(host: str, port: int) -> socket.socket:
    """A listening socket; a UserError if the address cannot be had."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except (OSError, OverflowError) as error:
        raise UserError(f"cannot listen on {host} port {port}: {error}") from None
    return listener
