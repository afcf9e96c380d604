"""Several processes of one training, as torchrun starts them but forked: without its seconds of
importing, for tests and for `benchmarks.distributed`.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import traceback

from sightline.training import distributed


def start(count, work, *arguments):
    """Forked processes of one training, each of which does `work(*arguments)`."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    context = multiprocessing.get_context("fork")
    shared = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "WORLD_SIZE": str(count)}
    processes = []
    for rank in range(count):
        own = {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}
        processes.append(context.Process(target=_run, args=(own, work, arguments)))
    for process in processes:
        process.start()
    return processes


def _run(environment, work, arguments):
    os.environ.update(environment)
    try:
        with distributed.joined():
            work(*arguments)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def run(count, work, *arguments):
    """The same, to their end; of one process, here."""
    if count == 1:
        work(*arguments)
        return
    processes = start(count, work, *arguments)
    for process in processes:
        process.join(120)
    assert [process.exitcode for process in processes] == [0] * count
