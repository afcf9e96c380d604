"""The feature cache: each picture's annotation vectors, computed once, in half precision on disk.

A cache is a folder, named for the encoder, its weights and the preprocessing, that only grows:

    cache.json     what the vectors are: encoder, stride, weights' SHA-256, ImageSpec, grid, D
    features.f16   row after row of (M, D) half-precision numbers, read through a memory map
    rows.jsonl     ["id", "stamp"] of each row; a line is written after its row is on the disk

So a run that is killed loses at most a batch, and the next one goes on where it stopped. The stamp
is the picture file's own mark: a changed picture under an old id is computed anew.

Where the vectors below an encoder's upper part are cached (that part learnt from them), its own are
computed from those, in a fraction of the time.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from sightline.data.manifest import read_manifest
from sightline.data.progress import counted
from sightline.errors import DataError
from sightline.media.image import ImageSpec, preprocess, read_image
from sightline.types import Layout

if TYPE_CHECKING:
    import torch

    from sightline.nn.encoders.image import ImageEncoder

VERSION = 1
_SHOWN = 10  # bad pictures named in an error


@dataclass(frozen=True)
class FeatureKey:
    """What a cached vector depends on, apart from the picture."""

    encoder: str
    stride: int
    weights: str  # SHA-256 of the encoder's tensors
    spec: ImageSpec
    rows: int
    columns: int
    dimension: int

    @staticmethod
    def of(encoder: ImageEncoder) -> FeatureKey:
        rows, columns = encoder.grid()
        return FeatureKey(
            encoder.name,
            encoder.stride,
            encoder.fingerprint(),
            encoder.spec,
            rows,
            columns,
            encoder.dimension,
        )

    def to_json(self) -> dict[str, Any]:
        return {"version": VERSION} | asdict(self) | {"spec": self.spec.to_json()}

    @staticmethod
    def from_json(values: dict[str, Any]) -> FeatureKey:
        plain = {name: value for name, value in values.items() if name != "version"}
        return FeatureKey(**plain | {"spec": ImageSpec.from_json(plain["spec"])})

    def folder_name(self) -> str:
        digest = hashlib.sha256(json.dumps(self.to_json(), sort_keys=True).encode()).hexdigest()
        return f"{self.encoder}-s{self.stride}-{self.spec.size}{self.spec.mode}-{digest[:10]}"

    @property
    def row_bytes(self) -> int:
        return self.rows * self.columns * self.dimension * 2


class FeatureCache:
    """A cache opened for reading; vectors come by id, without the rest being loaded."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.folder = Path(folder)
        self.key = _read_key(self.folder)
        rows = _read_rows(self.folder)
        size = _size(self.folder / "features.f16")
        if size < len(rows) * self.key.row_bytes:
            raise DataError(
                f"{self.folder / 'features.f16'}: cut short: {size:,} bytes, and "
                f"{len(rows) * self.key.row_bytes:,} are expected; extract again to mend it"
            )
        self.count = len(rows)
        self.stamps = dict(rows)
        self._row_of = {name: row for row, (name, _) in enumerate(rows)}  # a later row replaces

    def __len__(self) -> int:
        return len(self._row_of)

    def __contains__(self, name: object) -> bool:
        return name in self._row_of

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(self._row_of)

    @property
    def layout(self) -> Layout:
        return Layout.grid(self.key.rows, self.key.columns)

    def read(self, ids: Sequence[str], dtype: DTypeLike = np.float32) -> NDArray[Any]:
        """The vectors (B, M, D) of the pictures with these ids, in that order.

        Ask for float16 and let torch widen it: NumPy takes ten times as long for that.
        """
        missing = [name for name in ids if name not in self._row_of]
        if missing:
            raise DataError(
                f"{self.folder}: no features for {len(missing)} pictures, such as {missing[0]!r}"
            )
        key = self.key
        shape = (self.count, key.rows * key.columns, key.dimension)
        # Mapped for this call only, so that pages read do not count as this process's memory.
        stored = np.memmap(self.folder / "features.f16", np.float16, "r", shape=shape)
        return stored[[self._row_of[name] for name in ids]].astype(dtype, copy=False)


# ---------------------------------------------------------------- extraction


def pictures_in(source: Path) -> dict[str, Path]:
    """Id → file for each picture of a manifest, or of a folder (the id is the file's name)."""
    if source.is_dir():
        endings = {".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".avif"}
        found = {p.name: p for p in sorted(source.iterdir()) if p.suffix.lower() in endings}
        if not found:
            raise DataError(f"{source}: no pictures in this folder")
        return found
    examples = read_manifest(source, medium="image")
    return {example.id: example.media for example in examples if example.media is not None}


def extract_features(
    pictures: Mapping[str, Path],
    encoder: ImageEncoder,
    root: str | os.PathLike[str],
    *,
    batch_size: int = 8,
    skip_bad: bool = False,
    progress: bool = True,
) -> FeatureCache:
    """The cache under `root` that has every picture (id → file), computing those it lacks.

    All good pictures are computed before bad ones are complained about: together, in one
    DataError, or with `skip_bad` in the cache's absence of them. A missing file stops it at once.
    """
    key = FeatureKey.of(encoder)
    folder = Path(root) / key.folder_name()
    stamps, bad = _stamps(pictures)
    if bad and not skip_bad:
        raise _complaint(bad, len(pictures))
    if not _is_complete(folder, key, stamps):
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            _write_key(folder, key)
            known = _mend(folder, key)
            todo = {name: pictures[name] for name in stamps if known.get(name) != stamps[name]}
            _check_space(folder, len(todo) * key.row_bytes)
            bad |= _extract(todo, stamps, encoder, folder, batch_size, progress)
    if bad and not skip_bad:
        raise _complaint(bad, len(pictures))
    return FeatureCache(folder)


def _is_complete(folder: Path, key: FeatureKey, stamps: Mapping[str, str]) -> bool:
    """Whether nothing has to be written, so that many can read at once."""
    try:
        cache = FeatureCache(folder)
    except DataError:  # not there, or to be mended
        return False
    whole = _size(folder / "features.f16") == cache.count * key.row_bytes
    return whole and cache.key == key and stamps.items() <= cache.stamps.items()


Outcome = tuple[str, "NDArray[np.float32] | DataError"]
Network = Callable[["torch.Tensor"], "torch.Tensor"]  # what was prepared → vectors (B, M, D)


def _extract(
    todo: Mapping[str, Path],
    stamps: Mapping[str, str],
    encoder: ImageEncoder,
    folder: Path,
    batch_size: int,
    progress: bool,
) -> dict[str, str]:
    """Compute the vectors of these pictures; the reasons of what was bad."""
    from sightline.nn.encoders.image import for_inference

    fast = for_inference(encoder)
    below = _cache_below(encoder, folder)
    ready = [name for name in todo if below and below.stamps.get(name) == stamps[name]]
    known = set(ready)
    rest = [(name, path) for name, path in todo.items() if name not in known]

    def compute(network: Network, given: Iterator[Outcome], many: int, what: str) -> dict[str, str]:
        if not many:
            return {}
        given = counted(given, many, f"{what} of {encoder.name}") if progress else given
        return _compute(network, given, stamps, encoder, folder, batch_size)

    if below is not None:
        vectors: Iterator[Outcome] = ((name, below.read([name])[0]) for name in ready)
        compute(fast.above, vectors, len(ready), "upper features")
    images = _prepare_ahead(rest, encoder.spec, 2 * batch_size)
    return compute(fast, images, len(rest), "features")


def _cache_below(encoder: ImageEncoder, folder: Path) -> FeatureCache | None:
    """The cache of the map that the encoder's upper part reads, where there is one."""
    below = folder.parent / FeatureKey.of(encoder.below()).folder_name()
    return FeatureCache(below) if below != folder and (below / "cache.json").exists() else None


def _prepare_ahead(
    pictures: Sequence[tuple[str, Path]], spec: ImageSpec, ahead: int
) -> Iterator[Outcome]:
    """Read and preprocess in a thread beside the network, at most `ahead` pictures before it."""

    def prepare(path: Path) -> NDArray[np.float32] | DataError:
        try:
            return preprocess(read_image(path), spec)
        except DataError as error:
            return error

    waiting: deque[tuple[str, Future[NDArray[np.float32] | DataError]]] = deque()
    with ThreadPoolExecutor(max_workers=1) as reader:
        try:
            for name, path in pictures:
                waiting.append((name, reader.submit(prepare, path)))
                if len(waiting) > ahead:
                    name, future = waiting.popleft()
                    yield name, future.result()
            while waiting:
                name, future = waiting.popleft()
                yield name, future.result()
        finally:
            for _, future in waiting:
                future.cancel()


def _compute(
    network: Network,
    prepared: Iterator[Outcome],
    stamps: Mapping[str, str],
    encoder: ImageEncoder,
    folder: Path,
    batch_size: int,
) -> dict[str, str]:
    """Encode what was prepared, batch by batch, into the cache; the reasons of what was bad."""
    import torch

    device = next(encoder.parameters()).device
    bad: dict[str, str] = {}
    batch: list[tuple[str, NDArray[np.float32]]] = []

    def flush() -> None:
        if not batch:
            return
        given = torch.from_numpy(np.stack([array for _, array in batch])).to(device)
        with torch.inference_mode():
            vectors = network(given).half().cpu().numpy()  # (B, M, D)
        if not np.isfinite(vectors).all():
            raise DataError(f"{encoder.name}: its vectors exceed half precision; check the weights")
        _append(folder, [(name, stamps[name]) for name, _ in batch], vectors)
        batch.clear()

    for name, outcome in prepared:
        if isinstance(outcome, DataError):
            bad[name] = str(outcome)
            continue
        batch.append((name, outcome))
        if len(batch) == batch_size:
            flush()
    flush()
    return bad


def _append(folder: Path, rows: Sequence[tuple[str, str]], vectors: NDArray[np.float16]) -> None:
    """Vectors first, and on the disk, then their lines: a line always has its vectors."""
    with open(folder / "features.f16", "ab") as file:
        file.write(np.ascontiguousarray(vectors).tobytes())
        file.flush()
        os.fsync(file.fileno())
    with open(folder / "rows.jsonl", "ab") as file:
        file.write(b"".join(json.dumps(row).encode() + b"\n" for row in rows))
        file.flush()
        os.fsync(file.fileno())


def _mend(folder: Path, key: FeatureKey) -> dict[str, str]:
    """Cut both files back to their whole rows, after a kill; the stamp of each id there."""
    rows = _read_rows(folder)
    whole = min(len(rows), _size(folder / "features.f16") // key.row_bytes)
    rows = rows[:whole]
    lines = b"".join(json.dumps(row).encode() + b"\n" for row in rows)
    if _size(folder / "rows.jsonl") != len(lines):
        _replace(folder / "rows.jsonl", lines)
    with open(folder / "features.f16", "ab") as file:
        file.truncate(whole * key.row_bytes)
    return dict(rows)


# ---------------------------------------------------------------- files


def _read_rows(folder: Path) -> list[tuple[str, str]]:
    path = folder / "rows.jsonl"
    if not path.exists():
        return []
    *lines, _torn = path.read_bytes().split(b"\n")  # what follows the last newline is unfinished
    try:
        return [(str(name), str(stamp)) for name, stamp in map(json.loads, lines)]
    except ValueError:
        raise DataError(f"{path}: damaged; delete the folder and extract again") from None


def _read_key(folder: Path) -> FeatureKey:
    path = folder / "cache.json"
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        if values["version"] != VERSION:
            raise DataError(f"{path}: of version {values['version']}, not {VERSION}; extract again")
        return FeatureKey.from_json(values)
    except FileNotFoundError:
        raise DataError(f"{folder}: not a feature cache: cache.json is missing") from None
    except (ValueError, KeyError, TypeError):
        raise DataError(f"{path}: damaged; delete the folder and extract again") from None


def _write_key(folder: Path, key: FeatureKey) -> None:
    if not (folder / "cache.json").exists():
        _replace(folder / "cache.json", json.dumps(key.to_json(), indent=1).encode())
    elif _read_key(folder) != key:
        raise DataError(f"{folder}: made by another encoder; delete the folder and extract again")


def _replace(path: Path, content: bytes) -> None:
    temporary = path.with_name(f".{path.name}.tmp")
    with open(temporary, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def _size(path: Path) -> int:
    return path.stat().st_size if path.exists() else 0


def _stamps(pictures: Mapping[str, Path]) -> tuple[dict[str, str], dict[str, str]]:
    """Each picture's mark (its size, and a checksum of its ends), and what cannot be opened."""
    stamps: dict[str, str] = {}
    bad: dict[str, str] = {}
    for name, path in pictures.items():
        try:
            with open(path, "rb") as file:
                size = os.fstat(file.fileno()).st_size
                check = zlib.crc32(file.read(4096))
                file.seek(max(size - 4096, 0))
                check = zlib.crc32(file.read(4096), check)
            stamps[name] = f"{size}-{check:08x}"
        except OSError as error:
            bad[name] = f"{path}: {error.strerror or error}"
    return stamps, bad


def _complaint(bad: Mapping[str, str], total: int) -> DataError:
    shown = list(bad.values())[:_SHOWN]
    more = [f"… and {len(bad) - _SHOWN} more"] if len(bad) > _SHOWN else []
    first = f"{len(bad)} of {total} pictures cannot be used; mend or remove them, or skip them:"
    return DataError("\n  ".join([first, *shown, *more]))


def _check_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if needed > free:
        raise DataError(f"{folder}: features need {needed:,} bytes, and {free:,} are free")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One extraction per folder at a time; the lock goes with the process, however it ends."""
    try:
        import fcntl
    except ImportError:  # Windows: two runs at once are the user's to avoid
        yield
        return
    with open(folder / ".lock", "w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise DataError(f"{folder}: another extraction is writing here; wait for it") from None
        yield
