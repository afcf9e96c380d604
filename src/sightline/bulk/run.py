"""One run: what has no outcome yet is listed, described, recorded and counted."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from sightline import __version__
from sightline.bulk import local
from sightline.bulk.results import Results, Row, Seen
from sightline.bulk.sources import Item, Kind, Shard, batches, shards
from sightline.bulk.worker import Job, Worker, lost
from sightline.data.durable import locked
from sightline.data.progress import is_quiet
from sightline.errors import UserError
from sightline.runtime.model_folder import find_model, processors
from sightline.tasks.command_line import note

Engine = Literal["local", "ray"]
TEXTS = 256  # lines that a worker takes together
SEARCHES = 2  # of files: as many as so many searches do
LARGER = 4  # times as many on Ray, to which every batch is work: docs/lab/cost.md
SYNCED = 0.25  # seconds from one sync of the journal to the next, at least
TOLD = 30.0  # seconds from one line of a log to the next


@dataclass(frozen=True)
class Plan:
    """How to go about it."""

    engine: Engine = "local"
    form: str = "parquet"
    workers: int = 0  # 0: as many as there are cores
    address: str = ""
    retry_failed: bool = False


@dataclass(frozen=True)
class Summary:
    folder: Path
    described: int  # in this run
    failed: int  # in this run
    before: int  # outcomes that were there
    retried: int
    seconds: float


def run(
    sources: Sequence[str],
    model: str | Path,
    output: Path,
    *,
    task: str = "",
    asked: Mapping[str, Any] | None = None,
    column: str = "",
    threads: int = 1,
    plan: Plan = Plan(),
) -> Summary:
    """Give every input an outcome; a UserError where there is nothing to begin with."""
    began = time.monotonic()
    job = Job(find_model(model).absolute(), task, asked or {}, threads)
    job, kind, size = _opened(job, column)
    work = _Work(list(shards(sources, kind)), kind, job, size, plan)
    folder = output / f"model={job.fingerprint()}"
    about = {"model": str(model), "asked": dict(job.asked), "version": __version__}
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with locked(folder / ".lock"):
            results = Results.open(folder, plan.form, about, plan.retry_failed)
            before, failed = len(results.seen), results.failed
            _record(work, results)
    except BlockingIOError:
        raise UserError(f"{folder} is being written by another run") from None
    new, bad = len(results.seen) - before, results.failed - failed
    seconds = time.monotonic() - began
    return Summary(folder, new - bad, bad, before, results.dropped, seconds)


def _record(work: _Work, results: Results) -> None:
    """Outcomes to the disk as they come; those that come fast together, for a disk syncs tens of
    times a second, not thousands."""
    held: list[Row] = []
    recorded = 0.0
    try:
        with _Progress(work.shards, work.kind, results) as progress:
            for rows in _ENGINES[work.plan.engine](work, results):
                held += rows
                if time.monotonic() - recorded > SYNCED:
                    results.add(held)
                    held, recorded = [], time.monotonic()
                    progress.show()
    finally:
        results.add(held)
        results.seal()


def _opened(job: Job, column: str) -> tuple[Job, Kind, int]:
    """What the model reads, and how many of it a worker takes together; a model that cannot be
    opened is an error here, before there are workers."""
    from sightline.tasks import spec_of

    describer = Worker(job).describer
    spec, takes = spec_of(describer.task), describer.reader.takes
    home = spec.recipe.__module__
    known = replace(job, home="" if home.startswith("sightline.") else home)
    if takes == "text":
        return known, Kind(takes, "source", column), TEXTS
    return known, Kind(takes, spec.medium, column), SEARCHES * describer.reader.batch


@dataclass(frozen=True)
class _Work:
    """What an engine is given."""

    shards: Sequence[Shard]
    kind: Kind
    job: Job
    size: int  # of a batch
    plan: Plan

    def workers(self, cores: int) -> int:
        return self.plan.workers or max(1, cores // self.job.threads)

    def pending(self, results: Results) -> Iterator[Item]:
        """Inputs without an outcome, each once, though two sources may have it."""
        given = Seen()
        for shard in self.shards:
            for item in shard.items(self.kind):
                if item.key not in results.seen and given.add(item.key):
                    yield item


# ------------------------------------------------------------------------------------ engines


def _locally(work: _Work, results: Results) -> Iterator[list[Row]]:
    some = batches(work.pending(results), work.size)
    yield from local.describe(some, work.job, work.workers(processors()))


def _on_ray(work: _Work, results: Results) -> Iterator[list[Row]]:
    """Where inputs take their actors with them, all that is left goes one by one; what then has no
    outcome still is to blame."""
    from sightline.bulk import on_ray

    wanted = work.plan.workers * work.job.threads or processors()
    with on_ray.cluster(work.plan.address, wanted) as cores:
        given = work.shards, work.kind, results.seen, work.job, work.workers(cores)
        try:
            yield from on_ray.describe(*given, LARGER * work.size)
            return
        except on_ray.Died as error:
            note(f"once more, input by input: {str(error).splitlines()[0]}")
        try:
            yield from on_ray.describe(*given, 1)
        except on_ray.Died as error:
            reason = str(error).splitlines()[0]
            raise UserError(f"Ray ended ({reason}); the same command again continues") from None
    for item in work.pending(results):
        yield [lost(item)]


_ENGINES = {"local": _locally, "ray": _on_ray}


# ----------------------------------------------------------------------------------- progress


class _Progress:
    """A bar on a terminal, and a line every half minute in a log; failures are counted."""

    def __init__(self, listed: Sequence[Shard], kind: Kind, results: Results) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TimeRemainingColumn

        self.results, self.before = results, len(results.seen)
        self.began = self.told = time.monotonic()
        self.total: int | None = None
        console = Console(stderr=True)
        shown = console.is_terminal and not is_quiet()
        columns = BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
        self.bar = Progress("{task.description}", *columns, console=console, disable=not shown)
        self.task = self.bar.add_task("describing", total=None)
        self.plain = not shown and not is_quiet()
        threading.Thread(target=self._count, args=(listed, kind), daemon=True).start()

    def __enter__(self) -> _Progress:
        self.bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.bar.stop()

    def show(self) -> None:
        done, failed = len(self.results.seen), self.results.failed
        what = f"describing ({failed:,} failed)" if failed else "describing"
        # a source may have shrunk since outcomes were recorded
        total = None if self.total is None else max(self.total, done)
        self.bar.update(self.task, completed=done, total=total, description=what)
        now = time.monotonic()
        if not self.plain or now - self.told < TOLD:
            return
        self.told = now
        rate = (done - self.before) / (now - self.began)
        of = f" of {total:,}" if total else ""
        left = f", {(total - done) / rate / 60:.0f} min left" if total and rate else ""
        line = f"{what}: {done:,}{of}, {rate:.1f}/s{left}"
        print(line, file=sys.stderr, flush=True)

    def _count(self, listed: Sequence[Shard], kind: Kind) -> None:
        counts = [shard.count(kind) for shard in listed]
        known = [count for count in counts if count is not None]
        self.total = sum(known) if len(known) == len(counts) else None
