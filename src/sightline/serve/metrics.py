"""What Prometheus reads at /metrics: counters, gauges and histograms in its text format."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32)

Labels = tuple[str, ...]


class Counter:
    """A number for each combination of labels, that only rises."""

    def __init__(self, name: str, help: str, labels: Sequence[str] = ()) -> None:
        self.name, self.help, self.labels = name, help, tuple(labels)
        self._values: dict[Labels, float] = defaultdict(float)
        self._lock = threading.Lock()

    def add(self, *labels: str, by: float = 1.0) -> None:
        with self._lock:
            self._values[labels] += by

    @property
    def total(self) -> int:
        with self._lock:
            return int(sum(self._values.values()))

    def lines(self) -> list[str]:
        with self._lock:
            values = sorted(self._values.items())
        head = [f"# HELP {self.name} {self.help}", f"# TYPE {self.name} counter"]
        return head + [
            f"{self.name}{_shown(self.labels, at)} {_number(value)}" for at, value in values
        ]


class Gauge:
    """A number that is read when it is asked for."""

    def __init__(self, name: str, help: str, read: Callable[[], float]) -> None:
        self.name, self.help, self.read = name, help, read

    def lines(self) -> list[str]:
        head = [f"# HELP {self.name} {self.help}", f"# TYPE {self.name} gauge"]
        return [*head, f"{self.name} {_number(self.read())}"]


class Histogram:
    """How many observations were at most so large, for each combination of labels."""

    def __init__(
        self, name: str, help: str, bounds: Sequence[float], labels: Sequence[str] = ()
    ) -> None:
        self.name, self.help, self.bounds = name, help, tuple(bounds)
        self.labels = tuple(labels)
        self._counts: dict[Labels, list[int]] = {}
        self._sums: dict[Labels, float] = defaultdict(float)
        self._lock = threading.Lock()

    def observe(self, value: float, *labels: str) -> None:
        with self._lock:
            counts = self._counts.setdefault(labels, [0] * (len(self.bounds) + 1))
            counts[bisect_left(self.bounds, value)] += 1
            self._sums[labels] += value

    def lines(self) -> list[str]:
        out = [f"# HELP {self.name} {self.help}", f"# TYPE {self.name} histogram"]
        with self._lock:
            items = sorted(
                (at, list(counts), self._sums[at]) for at, counts in self._counts.items()
            )
        for at, counts, total in items:
            below = 0
            for bound, count in zip(
                [*map("{:g}".format, self.bounds), "+Inf"], counts, strict=True
            ):
                below += count
                labels = _shown((*self.labels, "le"), (*at, bound))
                out.append(f"{self.name}_bucket{labels} {below}")
            out.append(f"{self.name}_sum{_shown(self.labels, at)} {_number(total)}")
            out.append(f"{self.name}_count{_shown(self.labels, at)} {below}")
        return out


def _number(value: float) -> str:
    """With all its digits: of a counter in the millions the last ones are what changes."""
    return str(int(value)) if value == int(value) else repr(float(value))


def _shown(names: Labels, values: Labels) -> str:
    def escaped(value: str) -> str:
        return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")

    pairs = [f'{name}="{escaped(value)}"' for name, value in zip(names, values, strict=True)]
    return "{" + ",".join(pairs) + "}" if pairs else ""


class Metrics:
    """All that the service counts."""

    def __init__(self, taken: Callable[[], float], waiting: Callable[[], float]) -> None:
        self.requests = Counter(
            "sightline_requests_total", "Requests by route and status.", ("route", "status")
        )
        self.seconds = Histogram(
            "sightline_request_seconds", "From the first byte to the last.", SECONDS, ("route",)
        )
        self.connections = Counter("sightline_connections_total", "Connections accepted.")
        self.cut = Counter(
            "sightline_cut_total", "Connections closed at the end as a request came on them."
        )
        self.received = Counter("sightline_received_bytes_total", "Bytes of request bodies.")
        self.disconnects = Counter(
            "sightline_disconnects_total", "Clients that left before their answer."
        )
        self.failures = Counter("sightline_failures_total", "Requests met by a bug.")
        self.batch_size = Histogram(
            "sightline_batch_size", "Requests answered by one model call.", SIZES, ("model",)
        )
        self.batch_seconds = Histogram(
            "sightline_batch_seconds", "Duration of a model call.", SECONDS, ("model",)
        )
        self.taken = Gauge("sightline_places_taken", "Requests that hold a place.", taken)
        self.waiting = Gauge("sightline_waiting", "Requests that wait for a model.", waiting)

    def batch(self, model: str, size: int, seconds: float) -> None:
        self.batch_size.observe(size, model)
        self.batch_seconds.observe(seconds, model)

    def text(self) -> str:
        return "\n".join(line for each in vars(self).values() for line in each.lines()) + "\n"
