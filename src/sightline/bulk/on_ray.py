"""Describing on Ray Data: tasks read the shards, a pool of actors describes their items.

A row of the data set is a batch of items, pickled, and a block is one row: what is lost with an
actor, and described again, is one batch.
"""

from __future__ import annotations

import logging
import os
import pickle
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import ray
from numpy.typing import NDArray
from ray.data import ActorPoolStrategy, DataContext, Datasource, ReadTask
from ray.data.block import BlockMetadata
from ray.exceptions import RayError

from sightline.bulk.results import Row, Seen
from sightline.bulk.sources import Kind, Shard, batches
from sightline.bulk.worker import Job, Worker, fetched, unpacked
from sightline.errors import UserError

STORE = 512 << 20  # bytes of a local Ray's object store
TRIES = 3  # of a batch whose actor dies
PICKLED = "pickled"
Died = RayError  # what ends `describe` then


@contextmanager
def cluster(address: str, cores: int) -> Iterator[int]:
    """The Ray at an address, or one that lives as long as this; how many cores it describes on."""
    os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")
    os.environ.setdefault("RAY_worker_niceness", "0")  # 15 otherwise: busy machines starve it
    os.environ.setdefault("RAY_IGNORE_UNHANDLED_ERRORS", "1")  # those of its statistics
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # it reports to its makers otherwise
    options: dict[str, Any] = {"address": address}
    if not address:
        # one more processor, for the reading, which takes little
        options = {"address": "local", "include_dashboard": False, "num_cpus": cores + 1}
        options["object_store_memory"] = STORE
    try:
        ray.init(log_to_driver=False, logging_level=logging.ERROR, **options)
    except (ConnectionError, RuntimeError, ValueError) as error:
        raise UserError(f"no Ray at {address or 'this machine'}: {error}") from None
    try:
        has: Any = ray
        yield cores if not address else int(has.cluster_resources().get("CPU", 1))
    finally:
        ray.shutdown()


class Listing(Datasource):
    """The items of shards that have no outcome yet: a task for each shard."""

    def __init__(
        self, shards: Sequence[Shard], kind: Kind, known: NDArray[np.uint64], size: int
    ) -> None:
        self.shards, self.kind, self.size = shards, kind, size
        self.known = ray.put(known)

    def estimate_inmemory_data_size(self) -> int | None:
        return None

    def get_read_tasks(self, parallelism: int, *_: Any, **__: Any) -> list[ReadTask]:
        about = BlockMetadata(num_rows=None, size_bytes=None, exec_stats=None)
        return [ReadTask(self._reading(shard), about) for shard in self.shards]

    def _reading(self, shard: Shard) -> Any:
        kind, size, known = self.kind, self.size, self.known

        def read() -> Iterable[pa.Table]:
            seen = Seen.of(ray.get(known))
            pending = (item for item in shard.items(kind) if item.key not in seen)
            return map(_table, batches(pending, size))

        return read


class Actor:
    """A worker of the pool."""

    def __init__(self, job: Job, files: dict[str, bytes], name: str) -> None:
        os.environ["OMP_NUM_THREADS"] = str(job.threads)
        self.worker = Worker(replace(job, model=unpacked(files, name)))

    def __call__(self, table: pa.Table) -> pa.Table:
        return _table(self.worker.describe(fetched(_content(table))))


def describe(
    shards: Sequence[Shard], kind: Kind, seen: Seen, job: Job, workers: int, size: int
) -> Iterator[list[Row]]:
    """Rows as they come.

    A batch whose actor dies TRIES times ends this with `Died`; a batch of one item is left out.
    """
    context = DataContext.get_current()
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    context.target_max_block_size = 1  # byte: a row each
    context.max_errored_blocks = -1 if size == 1 else 0
    logging.getLogger("ray.data").setLevel(logging.ERROR)
    listing = Listing(shards, kind, seen.sorted(), size)
    found = ray.data.read_datasource(listing, override_num_blocks=len(shards), num_cpus=0.5)
    warnings.filterwarnings("ignore", ".*ray_remote_args")  # there is no other way before 2.64
    warnings.filterwarnings("ignore", "The minimum number of concurrent actors")  # few are left
    rows = found.map_batches(
        Actor,
        fn_constructor_args=(job, job.files(), job.fingerprint()),
        batch_size=None,
        batch_format="pyarrow",
        compute=ActorPoolStrategy(size=workers),
        num_cpus=job.threads,
        max_restarts=-1,
        max_task_retries=TRIES,
    )
    for table in rows.iter_batches(batch_size=None, batch_format="pyarrow"):
        yield _content(table)


def _table(content: Any) -> pa.Table:
    return pa.table({PICKLED: pa.array([pickle.dumps(content)], pa.large_binary())})


def _content(table: pa.Table) -> list[Any]:
    """Of one row, or of several that Ray has put together."""
    return [each for row in table[PICKLED].to_pylist() for each in pickle.loads(row)]
