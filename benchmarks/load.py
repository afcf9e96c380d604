"""The service on loopback: one request alone, many clients, three times the load it sustains.

python -m benchmarks.load MODEL [--seconds 60] [--clients 32]
"""

from __future__ import annotations

import argparse
import asyncio
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import cycle
from pathlib import Path

import numpy as np

import sightline
from benchmarks import machine

BOUNDARY = "a8f1c7"
SAMPLES = Path(sightline.__file__).parent / "samples"


@dataclass
class Outcome:
    """What the clients of one phase measured."""

    seconds: float
    statuses: Counter[int] = field(default_factory=Counter)  # 0: no response at all
    waits: list[float] = field(default_factory=list)  # seconds, of those with status 200

    @property
    def rate(self) -> float:
        return self.statuses[200] / self.seconds

    def __str__(self) -> str:
        p50, p99 = np.percentile(self.waits, [50, 99]) if self.waits else (np.nan, np.nan)
        statuses = ", ".join(
            f"{count} × {status}" for status, count in sorted(self.statuses.items())
        )
        return f"{self.rate:6.2f}/s   p50 {p50:5.2f} s   p99 {p99:5.2f} s   ({statuses})"


def photos() -> list[bytes]:
    """The sample photos' files."""
    return [path.read_bytes() for path in sorted(SAMPLES.glob("*.jpg"))]


def bodies() -> list[bytes]:
    """The sample photos as forms."""
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="p.jpg"\r\n\r\n'
    return [head.encode() + photo + f"\r\n--{BOUNDARY}--\r\n".encode() for photo in photos()]


class Client:
    """One keep-alive connection, with little work of its own: it shares the server's cores."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.streams: tuple[asyncio.StreamReader, asyncio.StreamWriter] | None = None

    async def ask(self, body: bytes, outcome: Outcome) -> int:
        began = time.perf_counter()
        try:
            status = await self._exchange(body)
        except (OSError, asyncio.IncompleteReadError):
            status = 0
            self.close()
        outcome.statuses[status] += 1
        if status == 200:
            outcome.waits.append(time.perf_counter() - began)
        return status

    async def _exchange(self, body: bytes) -> int:
        if self.streams is None:
            self.streams = await asyncio.open_connection("127.0.0.1", self.port)
        reader, writer = self.streams
        writer.write(
            (
                "POST /v1/describe HTTP/1.1\r\nHost: localhost\r\n"
                f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            ).encode()
            + body
        )
        await writer.drain()
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = re.search(r"content-length: (\d+)", head)
        assert length is not None
        await reader.readexactly(int(length[1]))
        if "connection: close" in head:
            self.close()
        return int(head.split(" ", 2)[1])

    def close(self) -> None:
        if self.streams is not None:
            self.streams[1].close()
            self.streams = None


async def closed_loop(port: int, clients: int, seconds: float) -> Outcome:
    """So many clients, each sending its next request as soon as the last is answered."""
    outcome, pictures = Outcome(seconds), bodies()
    end = time.perf_counter() + seconds

    async def run(number: int) -> None:
        client = Client(port)
        while time.perf_counter() < end:
            number += 1
            await client.ask(pictures[number % len(pictures)], outcome)
        client.close()

    began = time.perf_counter()
    await asyncio.gather(*(run(number) for number in range(clients)))
    outcome.seconds = time.perf_counter() - began
    return outcome


async def open_loop(port: int, rate: float, seconds: float, pid: int) -> tuple[Outcome, list[int]]:
    """Requests at a fixed rate, however slowly they are answered; and the server's memory."""
    outcome, pictures = Outcome(seconds), bodies()
    memory, tasks = [], set()
    began = time.perf_counter()

    async def one(number: int) -> None:
        client = Client(port)
        await client.ask(pictures[number % len(pictures)], outcome)
        client.close()

    for number in range(int(rate * seconds)):
        await asyncio.sleep(max(0.0, began + number / rate - time.perf_counter()))
        task = asyncio.create_task(one(number))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
        if number % max(1, int(rate)) == 0:
            memory.append(resident_megabytes(pid))
    await asyncio.gather(*tasks)
    outcome.seconds = time.perf_counter() - began
    return outcome, memory


def resident_megabytes(pid: int) -> int:
    resident = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    assert resident is not None
    return int(resident[1]) // 1024


@contextmanager
def served(*arguments: str) -> Iterator[tuple[int, int]]:
    """The service in another process: its port and process id."""
    command = [sys.executable, "-m", "sightline.cli", "serve", "--port", "0", *arguments]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        line = server.stderr.readline()
        port = re.search(r":(\d+)/$", line.strip())
        assert port is not None, line
        # discard its log: a full pipe would block it
        drain = subprocess.Popen(["cat"], stdin=server.stderr, stdout=subprocess.DEVNULL)
        yield int(port[1]), server.pid
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(60)
        drain.wait(10)


async def latency(port: int, model: str, repeats: int = 50) -> str:
    """Medians of one request at a time, and of the same photos described in this process."""
    client, outcome, describe = Client(port), Outcome(0), sightline.load(model).describe
    inside = []
    for _, photo, body in zip(range(repeats), cycle(photos()), cycle(bodies()), strict=False):
        began = time.perf_counter()
        describe(photo)
        inside.append(time.perf_counter() - began)
        await client.ask(body, outcome)
    client.close()
    service, process = 1000 * np.median(outcome.waits), 1000 * np.median(inside)
    return f"{service:.1f} ms, in the process {process:.1f} ms, ratio {service / process:.2f}"


async def measure(port: int, pid: int, options: argparse.Namespace) -> None:
    clients, seconds = options.clients, options.seconds
    await closed_loop(port, 2, 3)  # warm
    print(f"{'1 request alone':<22} {await latency(port, options.model)}", flush=True)
    alone = await closed_loop(port, 1, min(seconds, 20))
    print(f"{'1 client':<22} {alone}", flush=True)
    many = await closed_loop(port, clients, min(seconds, 30))
    print(f"{f'{clients} clients':<22} {many}")
    print(f"{'ratio':<22} {many.rate / alone.rate:6.2f}", flush=True)
    before = resident_megabytes(pid)
    flood, memory = await open_loop(port, 3 * many.rate, seconds, pid)
    print(f"{f'3 × that, {seconds:g} s':<22} {flood}")
    quarter = max(1, len(memory) // 4)
    means = [round(float(np.mean(part))) for part in (memory[:quarter], memory[-quarter:])]
    print(f"{'memory':<22} {before} MB before, {means[0]} → {means[1]} MB first to last quarter")
    after = await closed_loop(port, 1, min(seconds, 10))
    print(f"{'1 client, right after':<22} {after}")
    odd = set(flood.statuses) - {200, 503}
    print("only 200s and 503s" if not odd else f"UNEXPECTED: {odd}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--max-batch", default="16")
    options = parser.parse_args()
    print(machine.describe())
    with served("--model", options.model, "--max-batch", options.max_batch) as (port, pid):
        asyncio.run(measure(port, pid, options))


if __name__ == "__main__":
    main()
