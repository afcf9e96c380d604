"""What the service counts and times, for Prometheus to read at /metrics."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES = (1, 2, 4, 8, 16, 32)


class Metrics:
    """One service's metrics, in their own registry: a process may hold several services."""

    def __init__(self, taken: Callable[[], float], waiting: Callable[[], float]) -> None:
        self._registry = CollectorRegistry()
        counter = partial(Counter, registry=self._registry)
        histogram = partial(Histogram, registry=self._registry)
        gauge = partial(Gauge, registry=self._registry)
        self.requests = counter(
            "sightline_requests_total", "Requests by route and status.", ("route", "status")
        )
        self.seconds = histogram(
            "sightline_request_seconds", "Duration of a request.", ("route",), buckets=SECONDS
        )
        self.received = counter("sightline_received_bytes_total", "Bytes of request bodies.")
        self.disconnects = counter(
            "sightline_disconnects_total", "Clients that left before their response."
        )
        self.failures = counter(
            "sightline_failures_total", "Requests that failed because of a bug."
        )
        self.batch_size = histogram(
            "sightline_batch_size", "Requests per model call.", ("model",), buckets=SIZES
        )
        self.batch_seconds = histogram(
            "sightline_batch_seconds", "Duration of a model call.", ("model",), buckets=SECONDS
        )
        gauge("sightline_places_taken", "Requests that hold a place.").set_function(taken)
        gauge("sightline_waiting", "Requests that wait for a model.").set_function(waiting)

    def batch(self, model: str, size: int, seconds: float) -> None:
        self.batch_size.labels(model).observe(size)
        self.batch_seconds.labels(model).observe(seconds)

    def text(self) -> str:
        return generate_latest(self._registry).decode()
