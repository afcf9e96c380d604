"""Feature extraction: each item's vectors, computed once by a frozen encoder into a FeatureCache.

`extract` does it for any encoder and medium, `extract_features` for pictures.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sightline.data.feature_cache import FeatureCache, Header, Key, append, is_complete, writing
from sightline.data.loading import ahead
from sightline.data.manifest import read_manifest
from sightline.data.progress import counted
from sightline.errors import DataError
from sightline.media.preprocess import ImageSpec, read_picture

if TYPE_CHECKING:
    from sightline.nn.encoders.image import ImageEncoder

Prepare = Callable[[Path], NDArray[Any]]  # raises DataError for a file that cannot be used
Encode = Callable[[Sequence[NDArray[Any]]], Sequence[NDArray[Any]]]  # B arrays → B × (L_i, D)
_SHOWN = 10  # bad files named in an error


def folder_name(label: str, key: Key) -> str:
    """The name of a cache: a label for people, and a digest of what the vectors depend on."""
    # version 1 is the name's, not the files': caches in use are found again
    digest = hashlib.sha256(json.dumps({"version": 1} | dict(key), sort_keys=True).encode())
    return f"{label}-{digest.hexdigest()[:10]}"


def extract(
    items: Mapping[str, Path],
    folder: Path,
    key: Key,
    dimension: int,
    prepare: Prepare,
    encode: Encode,
    *,
    batch_size: int = 8,
    skip_bad: bool = False,
    progress: bool = True,
) -> FeatureCache:
    """The cache in `folder` with the vectors of every item (id → file), computing those it lacks.

    `prepare` runs in a background thread, at most two batches ahead of `encode`, so memory does not
    grow with the number of items. All good files are computed before bad ones are reported,
    together, in one DataError; with `skip_bad` the cache lacks them. A missing file stops at once.
    """
    header = Header(json.loads(json.dumps(key)), dimension)  # as it will be read back
    stamps: dict[str, str] = {}
    bad: dict[str, str] = {}  # why a file cannot be used
    for name, path in items.items():
        try:
            stamps[name] = file_stamp(path)
        except DataError as error:
            bad[name] = str(error)
    if bad and not skip_bad:
        raise _bad_files(bad, len(items))
    if not is_complete(folder, header, stamps):
        with writing(folder, header) as known:
            todo = {name: items[name] for name in stamps if known.get(name) != stamps[name]}
            changed = [name for name in todo if known.get(name)]
            if changed and progress:
                which = f"{len(changed)} replaced, such as {str(items[changed[0]])!r}"
                print(f"{which}: computing the features again", file=sys.stderr)
            label = f"features of {folder.name}" if progress else None
            for number, batch in enumerate(_batches(todo, prepare, batch_size, bad, label)):
                encoded = dict(zip(batch, encode(list(batch.values())), strict=True))
                bad |= {
                    n: f"{items[n]}: nothing to encode" for n, v in encoded.items() if not len(v)
                }
                vectors = {n: _half(v, header, folder) for n, v in encoded.items() if n not in bad}
                if number == 0:  # how long items are is not known before
                    size = sum(each.nbytes for each in vectors.values()) * len(todo) // len(batch)
                    if size > (free := shutil.disk_usage(folder).free):
                        message = f"features need {size:,} bytes, and {free:,} are free"
                        raise DataError(f"{folder}: {message}")
                append(folder, [(n, stamps[n], v) for n, v in vectors.items()])
    if bad and not skip_bad:
        raise _bad_files(bad, len(items))
    return FeatureCache(folder)


def _batches(
    todo: Mapping[str, Path],
    prepare: Prepare,
    size: int,
    bad: dict[str, str],  # receives the reason for each file that cannot be used
    label: str | None,  # of the progress bar
) -> Iterator[dict[str, NDArray[Any]]]:
    """Prepared items by id, `size` at a time."""

    def prepared(path: Path) -> NDArray[Any] | DataError:
        try:
            return prepare(path)
        except DataError as error:  # the others are still prepared
            return error

    outcomes: Iterator[Any] = ahead(prepared, todo.values(), depth=2 * size)
    if label is not None and todo:
        outcomes = counted(outcomes, len(todo), label)
    batch: dict[str, NDArray[Any]] = {}
    for name, outcome in zip(todo, outcomes, strict=True):
        if isinstance(outcome, DataError):
            bad[name] = str(outcome)
        else:
            batch[name] = outcome
        if len(batch) == size:
            yield batch
            batch = {}
    if batch:
        yield batch


def _half(vectors: NDArray[Any], header: Header, folder: Path) -> NDArray[np.float16]:
    if vectors.shape[1:] != (header.dimension,):
        expected = f"(L, {header.dimension})"
        raise DataError(f"{folder.name}: the encoder gave {vectors.shape}, expected {expected}")
    with np.errstate(over="ignore"):  # reported below
        half = vectors.astype(np.float16, copy=False)
    if not np.isfinite(half).all():
        raise DataError(f"{folder.name}: vectors exceed half precision; check the weights")
    return half


def file_stamp(path: Path) -> str:
    """A file's size and a checksum of both its ends."""
    try:
        with open(path, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            check = zlib.crc32(file.read(4096))
            file.seek(max(size - 4096, 0))
            check = zlib.crc32(file.read(4096), check)
    except OSError as error:
        raise DataError(f"{path}: {error.strerror or error}") from None
    return f"{size}-{check:08x}"


def _bad_files(bad: Mapping[str, str], total: int) -> DataError:
    shown = list(bad.values())[:_SHOWN]
    more = [f"… and {len(bad) - _SHOWN} more"] if len(bad) > _SHOWN else []
    first = f"{len(bad)} of {total} files cannot be used; fix or remove them, or leave them out "
    first += "with `sightline features MANIFEST --skip-bad --output GOOD.jsonl`:"
    return DataError("\n  ".join([first, *shown, *more]))


# ---------------------------------------------------------------- pictures


@dataclass(frozen=True)
class FeatureKey:
    """What a picture's cached vectors depend on, apart from the picture."""

    encoder: str
    stride: int
    weights: str  # SHA-256 of the encoder's tensors
    spec: ImageSpec
    rows: int
    columns: int
    dimension: int

    @staticmethod
    def of(encoder: ImageEncoder) -> FeatureKey:
        made_by = encoder.name, encoder.stride, encoder.fingerprint(), encoder.spec
        return FeatureKey(*made_by, *encoder.grid(), encoder.dimension)

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"spec": self.spec.to_json()}

    def folder_name(self) -> str:
        label = f"{self.encoder}-s{self.stride}-{self.spec.size}{self.spec.mode}"
        return folder_name(label, self.to_json())


_ENDINGS = {
    *(".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff", ".avif"),
    *(".ppm", ".pgm", ".pbm", ".pnm", ".heic", ".heif"),
}


def _files_below(folder: Path) -> list[Path]:
    """In the folder and the folders in it, without hidden ones (such as macOS's `._photo.jpg`)."""
    found = []
    for path in sorted(folder.rglob("*")):
        hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if not hidden and path.is_file():
            found.append(path)
    return found


def pictures_in(source: Path) -> dict[str, Path]:
    """Id → file for each picture of a manifest, or of a folder (the id is its path there)."""
    if source.is_dir():
        files = [path for path in _files_below(source) if path.suffix.lower() in _ENDINGS]
        if not files:
            raise DataError(f"{source}: no pictures in this folder")
        return {path.relative_to(source).as_posix(): path for path in files}
    examples = read_manifest(source, medium="image")
    return {example.id: example.media for example in examples if example.media is not None}


def others_in(folder: Path) -> list[str]:
    """The files of a folder that are not taken for pictures, by their endings."""
    below = [path for path in _files_below(folder) if path.suffix.lower() not in _ENDINGS]
    return [path.relative_to(folder).as_posix() for path in below]


def extract_features(
    pictures: Mapping[str, Path],
    encoder: ImageEncoder,
    root: str | os.PathLike[str],
    *,
    batch_size: int = 8,
    skip_bad: bool = False,
    progress: bool = True,
) -> FeatureCache:
    """The encoder's cache under `root`, with the vectors of every picture; see `extract`.

    Where the input of the encoder's upper part (`ImageEncoder.above`) is cached under `root`, only
    that part is computed, in a fraction of the time.
    """
    key = FeatureKey.of(encoder)
    folder = Path(root) / key.folder_name()
    below = _cache_below(encoder, folder)
    names = {path: name for name, path in pictures.items()}

    def prepare(path: Path) -> NDArray[Any]:
        if below is not None and below.stamps.get(names[path]) == file_stamp(path):
            with suppress(DataError):  # damaged
                return np.asarray(below.read([names[path]]).values[0])  # (M', D')
        inputs = read_picture(path, key.spec, (key.rows, key.columns))
        return np.asarray(inputs["pictures"].values[0])  # (3, S, S)

    return extract(
        pictures,
        folder,
        key.to_json(),
        key.dimension,
        prepare,
        _encode_with(encoder),
        batch_size=batch_size,
        skip_bad=skip_bad,
        progress=progress,
    )


def _encode_with(encoder: ImageEncoder) -> Encode:
    """Pixels (3, S, S) through the whole encoder, lower vectors (M', D') through its upper part."""
    import torch

    from sightline.nn.encoders.image import for_inference

    fast = cache(lambda: for_inference(encoder))  # copied only if something is to be computed

    def encode(prepared: Sequence[NDArray[Any]]) -> Sequence[NDArray[Any]]:
        device = next(encoder.parameters()).device
        vectors: dict[int, NDArray[np.float16]] = {}
        for axes, network in ((3, fast()), (2, fast().above)):
            chosen = [i for i, array in enumerate(prepared) if array.ndim == axes]
            if chosen:
                given = torch.from_numpy(np.stack([prepared[i] for i in chosen])).to(device)
                with torch.inference_mode():
                    results = network(given.float()).half().cpu().numpy()  # (B, M, D)
                vectors |= zip(chosen, results, strict=True)
        return [vectors[i] for i in range(len(prepared))]

    return encode


def _cache_below(encoder: ImageEncoder, folder: Path) -> FeatureCache | None:
    """The cache of the map that the encoder's upper part reads, if there is one."""
    if not any(folder.parent.glob(f"{encoder.name}-s16-*")):  # spares building the lower network
        return None
    below = folder.parent / FeatureKey.of(encoder.below()).folder_name()
    return FeatureCache(below) if below != folder and (below / "cache.json").exists() else None
