"""The service on loopback: one request alone, many clients, three times the load it sustains.

python -m benchmarks.load MODEL [--seconds 60] [--clients 32]
python -m benchmarks.load MODEL --bombs 2

With --bombs the overload is measured twice, the second time with so many scan bombs a second among
the requests: small JPEGs that take minutes to decode. It ends with code 1 unless good requests get
200 or 503, their 99th percentile is at most doubled, and memory and SIGTERM stay within what
docs/guides/serve.md states.
"""

from __future__ import annotations

import argparse
import asyncio
import io
import re
import signal
import socket
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
from PIL import Image

import sightline
from benchmarks import machine

BOUNDARY = "a8f1c7"
SAMPLES = Path(sightline.__file__).parent / "samples"
# docs/guides/serve.md: megabytes for two pictures being decoded, and for all uploads in progress
DECODING, UPLOADS = 2 * (30 + 250), 256
ENDING = 69  # seconds after SIGTERM, at most


@dataclass
class Outcome:
    """What the clients of one phase measured."""

    seconds: float
    statuses: Counter[int] = field(default_factory=Counter)  # 0: no response at all
    waits: list[float] = field(default_factory=list)  # seconds, of those with status 200

    @property
    def rate(self) -> float:
        return self.statuses[200] / self.seconds

    @property
    def p99(self) -> float:
        return float(np.percentile(self.waits, 99)) if self.waits else float("nan")

    def __str__(self) -> str:
        p50, p99 = np.median(self.waits) if self.waits else np.nan, self.p99
        statuses = ", ".join(
            f"{count} × {status}" for status, count in sorted(self.statuses.items())
        )
        return f"{self.rate:6.2f}/s   p50 {p50:5.2f} s   p99 {p99:5.2f} s   ({statuses})"


def photos() -> list[bytes]:
    """The sample photos' files."""
    return [path.read_bytes() for path in sorted(SAMPLES.glob("*.jpg"))]


def scan_bomb(side: int = 1000, scans: int = 1000) -> bytes:
    """A progressive JPEG whose last scan is repeated."""
    file = io.BytesIO()
    Image.linear_gradient("L").resize((side, side)).save(file, "JPEG", progressive=True)
    data = file.getvalue()
    last = data.rindex(b"\xff\xda")
    return data[:last] + data[last:-2] * scans + data[-2:]


def form(photo: bytes) -> bytes:
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="p.jpg"\r\n\r\n'
    return head.encode() + photo + f"\r\n--{BOUNDARY}--\r\n".encode()


def bodies() -> list[bytes]:
    """The sample photos as forms."""
    return [form(photo) for photo in photos()]


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


async def open_loop(
    port: int, rate: float, seconds: float, pid: int, pictures: list[bytes] | None = None
) -> tuple[Outcome, list[int]]:
    """Requests at a fixed rate, however slowly they are answered; and the service's memory."""
    outcome, pictures = Outcome(seconds), pictures or bodies()
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


async def attacked(
    port: int, pid: int, rate: float, seconds: float, bombs: float
) -> tuple[Outcome, Outcome, Outcome, list[int]]:
    """At that rate, without and with bombs: the good requests twice, the bombs, and the memory."""
    clean, _ = await open_loop(port, rate, seconds, pid)
    (good, memory), (bad, _) = await asyncio.gather(
        open_loop(port, rate, seconds, pid),
        open_loop(port, bombs, seconds, pid, [form(scan_bomb())]),
    )
    return clean, good, bad, memory


def faults(clean: Outcome, good: Outcome, bad: Outcome, grown: float, ending: float) -> list[str]:
    """What should not be: of an attack, of the megabytes it added, of the seconds of an end."""
    allowed = {
        "good requests get 200 or 503": {*clean.statuses, *good.statuses} <= {200, 503},
        "bombs are refused": set(bad.statuses) <= {400, 408, 503},
        "the 99th percentile is at most doubled": good.p99 <= 2 * clean.p99,
        f"memory grows by at most {DECODING + UPLOADS} MB": grown <= DECODING + UPLOADS,
        f"SIGTERM ends it within {ENDING} s": ending <= ENDING,
    }
    return [what for what, holds in allowed.items() if not holds]


def resident_megabytes(pid: int) -> int:
    """Of the service and the processes that it started."""
    parents: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/status"):
        try:
            status = dict(re.findall(r"(PPid|VmRSS):\s+(\d+)", path.read_text()))
        except OSError:  # it has ended
            continue
        parents[int(path.parent.name)] = int(status["PPid"])
        sizes[int(path.parent.name)] = int(status.get("VmRSS", 0))
    family: set[int] = set()
    more = {pid}
    while more:
        family |= more
        more = {child for child, parent in parents.items() if parent in more}
    return sum(sizes.get(each, 0) for each in family) // 1024


def _wait(port: int) -> None:
    """Until the service accepts connections, which is soon after it has said where."""
    for _ in range(1000):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.1)
    raise TimeoutError("the service does not listen")


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
        _wait(int(port[1]))
        yield int(port[1]), server.pid
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(2 * ENDING)
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


async def measure_attack(
    port: int, pid: int, options: argparse.Namespace
) -> tuple[Outcome, Outcome, Outcome, float]:
    await closed_loop(port, 2, 3)  # warm
    before = resident_megabytes(pid)
    many = await closed_loop(port, options.clients, min(options.seconds, 30))
    print(f"{f'{options.clients} clients':<22} {many}", flush=True)
    clean, good, bad, memory = await attacked(
        port, pid, 3 * many.rate, options.seconds, options.bombs
    )
    print(f"{f'3 × that, {options.seconds:g} s':<22} {clean}")
    print(f"{f'with {options.bombs:g} bombs/s':<22} {good}   p99 × {good.p99 / clean.p99:.2f}")
    statuses = ", ".join(f"{n} × {status}" for status, n in sorted(bad.statuses.items()))
    print(f"{'the bombs':<22} {statuses}")
    print(f"{'memory':<22} {before} MB before, at most {max(memory)} MB", flush=True)
    return clean, good, bad, max(memory) - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--clients", type=int, default=32)
    parser.add_argument("--max-batch", default="16")
    parser.add_argument("--bombs", type=float, default=0, help="scan bombs a second")
    options = parser.parse_args()
    print(machine.describe())
    found = None
    with served("--model", options.model, "--max-batch", options.max_batch) as (port, pid):
        if options.bombs:
            found = asyncio.run(measure_attack(port, pid, options))
        else:
            asyncio.run(measure(port, pid, options))
        began = time.monotonic()
    if found is not None:
        ending = time.monotonic() - began
        print(f"{'SIGTERM':<22} ended in {ending:.1f} s")
        if wrong := faults(*found, ending):
            sys.exit("NOT SO: " + "; ".join(wrong))
        print("as documented")


if __name__ == "__main__":
    main()
