"""Files decoded in processes of their own: one that takes too long or too much memory is killed.

A thread cannot be stopped, and a decoder's C code may run for minutes on a file made for that.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import queue
import signal
import threading
from collections.abc import Collection
from concurrent.futures import Executor
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Any

from sightline.errors import PictureError, PictureSizeError
from sightline.runtime.describer import Reader
from sightline.serve import wire
from sightline.serve.limits import MEGABYTE, Refusal, busy
from sightline.serve.logs import logger
from sightline.types import Inputs

# a fork of this process would copy its threads' locks; a server of forks has none, and its modules
# are imported once
_CONTEXT: Any = multiprocessing.get_context("forkserver" if os.name == "posix" else "spawn")
_PIPE = 1 << 20  # bytes: a picture is then written at once, which takes 1 ms less
_READY = b"ready"
_STARTING = 60.0  # seconds for the first process, which imports its modules


class Decoders:
    """A pool of processes; a thread borrows one for each file."""

    def __init__(
        self, count: int, seconds: float, memory: int, modules: Collection[str] = ()
    ) -> None:
        """`modules`: those of the readers, imported before the first file comes."""
        if os.name == "posix":  # of no effect where the server of forks already runs
            _CONTEXT.set_forkserver_preload(["__main__", "sightline.media.image", *modules])
        self.restarts = 0  # processes that were killed or died
        self.broken = False  # the last attempt to start a process failed
        self._seconds = seconds
        self._memory = memory
        self._closed = threading.Event()
        self._all = [_Decoder(memory, modules) for _ in range(count)]
        self._idle: queue.SimpleQueue[_Decoder] = queue.SimpleQueue()
        for decoder in self._all:
            self._idle.put(decoder)

    def warm(self, threads: Executor) -> None:
        """Start the processes, so that the first requests do not wait for that."""
        for decoder in self._all:
            threads.submit(self._start, decoder)

    def read(self, reader: Reader, source: bytes, reading: dict[str, Any]) -> list[Inputs]:
        """What `reader.read` gives; a PictureError also for a file that ended its process."""
        decoder = self._idle.get()
        try:
            self._start(decoder)
            return decoder.read((reader, source, reading), self._seconds, self._memory)
        except TimeoutError:
            self._restart(decoder, "too slow")
            raise PictureError(
                f"decoding takes more than {self._seconds:g} s; scale the picture down or save it "
                "as another kind"
            ) from None
        except (EOFError, OSError, wire.MalformedError):
            self._restart(decoder, "died")
            raise PictureError("the file ended its decoder; save it as another kind") from None
        except MemoryError:
            raise PictureSizeError(
                f"decoding takes more than {self._memory / MEGABYTE:g} MB; scale the picture down"
            ) from None
        finally:
            self._idle.put(decoder)

    def _start(self, decoder: _Decoder) -> None:
        """A Refusal where the machine has no files or memory for a process: it is tried again."""
        try:
            if not self._closed.is_set():
                decoder.start()
            self.broken = False
        except Exception as error:
            if not self.broken:
                logger.error("a decoder does not start", exc_info=error)
            self.broken = True
            raise busy(5) from None

    def _restart(self, decoder: _Decoder, why: str) -> None:
        decoder.kill()
        self.restarts += 1
        logger.warning("decoder restarted", extra={"fields": {"why": why}})
        with suppress(Refusal):  # the next file tries again
            self._start(decoder)

    def close(self) -> None:
        self._closed.set()
        for decoder in self._all:
            decoder.kill()


class _Decoder:
    """One process and the pipe to it."""

    def __init__(self, memory: int, modules: Collection[str]) -> None:
        self._settings = memory, modules
        self._lock = threading.Lock()  # of starting and killing
        self._process: Any = None
        self._pipes: tuple[Connection, Connection] | None = None  # to it, from it

    def start(self) -> None:
        """Returns once it can be used; nothing if it runs."""
        with self._lock:
            if self._pipes is not None:
                return
            (theirs, to), (back, answers) = _CONTEXT.Pipe(False), _CONTEXT.Pipe(False)
            process = _CONTEXT.Process(
                target=_work,
                args=(theirs, answers, *self._settings),
                name="sightline-decoder",
                daemon=True,
            )
            process.start()
            theirs.close()
            answers.close()
            if not back.poll(_STARTING) or back.recv_bytes() != _READY:
                process.kill()
                raise RuntimeError("a decoder does not start")
            self._process, self._pipes = process, (to, back)

    def read(self, request: Any, seconds: float, most: int) -> list[Inputs]:
        if self._pipes is None:  # the service is closing
            raise EOFError
        to, back = self._pipes
        to.send(request)
        return wire.receive(back, seconds, most)

    def kill(self) -> None:
        with self._lock:
            if self._process is not None and self._pipes is not None:
                self._process.kill()
                self._process.join()
                for pipe in self._pipes:
                    pipe.close()
            self._process = self._pipes = None


# ---------------------------------------------------------------------------- in the process


def _work(
    requests: Connection,
    answers: Connection,
    memory: int,
    modules: Collection[str],
) -> None:
    """Decode until the service closes its end of the pipe."""
    for number in (signal.SIGINT, signal.SIGTERM):  # sent to the whole group; requests are finished
        signal.signal(number, signal.SIG_IGN)
    for module in modules:  # before memory is limited
        importlib.import_module(module)
    _limit_memory(memory)
    _widen(answers)
    answers.send_bytes(_READY)
    while True:
        try:
            reader, source, reading = requests.recv()
        except EOFError:
            return
        try:
            wire.send(answers, reader.read(source, **reading))
        except Exception as error:
            wire.send_error(answers, error)
        del reader, source


def _widen(pipe: Connection) -> None:
    with suppress(ImportError, AttributeError, OSError):  # Linux has this
        import fcntl

        fcntl.fcntl(pipe.fileno(), fcntl.F_SETPIPE_SZ, _PIPE)


def _limit_memory(memory: int) -> None:
    """The kernel refuses more than so many bytes beyond those in use now (Linux)."""
    with suppress(ImportError, OSError, ValueError):  # elsewhere only pixels are limited
        import resource

        with open("/proc/self/statm") as file:
            used = int(file.read().split()[5]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_DATA, (used + memory, used + memory))
