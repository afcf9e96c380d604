"""uvicorn with the service's limits, and a shutdown that first drains."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import threading
import time
from types import FrameType
from typing import Any

import uvicorn
from starlette.types import ASGIApp

from sightline.errors import UserError
from sightline.serve.app import Service
from sightline.serve.logs import logger


class QuietServer(uvicorn.Server):
    """One that a signal ends with exit code 0."""

    @staticmethod
    def of(app: ASGIApp) -> QuietServer:
        """A server of a small application, without limits."""
        plain: dict[str, Any] = {"log_config": None, "access_log": False, "server_header": False}
        return QuietServer(uvicorn.Config(app, http="h11", ws="none", lifespan="off", **plain))

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A second Ctrl-C does not wait. uvicorn's own would raise the signal again at the end, so
        that a clean exit would not have the code 0."""
        self.force_exit = self.force_exit or (self.should_exit and sig == signal.SIGINT)
        self.should_exit = True


class Server(QuietServer):
    """On SIGTERM or Ctrl-C it drains: requests are still answered, but /readyz returns 503 and
    responses close their connections. Then it stops listening, answers what is left and exits; at
    the latest after the time limits of an upload and of an answer.

    Slow headers and slow readers are left to the proxy in front of it (docs/guides/serve.md).
    """

    def __init__(self, service: Service) -> None:
        self.service = service
        limits = service.limits
        super().__init__(
            uvicorn.Config(
                service.guard,
                http="h11",
                ws="none",
                lifespan="on",
                log_config=None,
                access_log=False,
                server_header=False,
                limit_concurrency=limits.connections,
                timeout_keep_alive=75,  # longer than proxies keep idle connections (nginx: 60 s)
                timeout_graceful_shutdown=self.grace,
            )
        )

    @property
    def grace(self) -> int:
        """Seconds for what was accepted: an upload and its answer."""
        limits = self.service.limits
        return int(limits.time_limit + limits.upload_seconds) + 5

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a signal. As a process's main thread it also ends the process if that does
        not end in time: a thread in a model's C code cannot be stopped in any other way."""
        self.is_process = threading.current_thread() is threading.main_thread()
        super().run(sockets)
        if self.is_process and not self.service.ended(0):
            _end()  # the interpreter would wait, or crash as it takes the model away

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.service.guard.draining = True
        logger.info("draining", extra={"fields": {"requests": self.service.taken}})
        drain = self.service.limits.drain_seconds
        if self.is_process:
            last = threading.Timer(drain + self.grace + 3, _end)
            last.daemon = True
            last.start()
        end = time.monotonic() + drain
        while time.monotonic() < end and not self.force_exit:
            await asyncio.sleep(0.05)
        await super().shutdown(sockets)


def _end() -> None:
    """End the process now, whatever its threads do."""
    logger.error("ended before all requests were answered")
    sys.stderr.flush()
    os._exit(1)


def bind(host: str, port: int) -> socket.socket:
    """A socket to listen on; a UserError if the address is not available."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        )[0]
        # with its protocol: asyncio sets TCP_NODELAY only where that is IPPROTO_TCP, and without it
        # the body of a response waits for the client's delayed ACK of the head, 40 ms
        listener = socket.socket(family, kind, protocol)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except (OSError, OverflowError) as error:
        raise UserError(f"cannot listen on {host} port {port}: {error}") from None
    return listener
