"""Reading an export: a folder of data only, checked whole before anything in it is computed with.

    export.json    format number, versions, preprocessing, the SHA-256 of every file but the card
    step.onnx      one token per row; start.onnx once per input; encoder.onnx reads the input
    config.yaml    vocab.json    …    card.md

Graphs are loaded from bytes whose hash was checked; one that names a file outside itself, or an
operator that is not ONNX's own, is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sightline import zoo
from sightline.errors import CheckpointError

FORMAT = 2  # raised when what is written changes; only this one is read
EXPORT = "export.json"
ENCODER, START, STEP = "encoder.onnx", "start.onnx", "step.onnx"
LEADING = "leading_log_probs", "leading_tokens"  # outputs of a step: a beam search's
AGAIN = "make it anew with `sightline export`, or copy it again"


@dataclass(frozen=True)
class Export:
    """A checked export: what `export.json` says, and the graphs."""

    folder: Path
    about: dict[str, Any]
    graphs: dict[str, bytes]

    def session(self, name: str, threads: int | None = None) -> Any:
        """An onnxruntime session over one of the graphs; None: a thread for each processor."""
        import onnxruntime

        try:
            return onnxruntime.InferenceSession(
                self.graphs[name], session_options(threads), providers=["CPUExecutionProvider"]
            )
        except KeyError:
            raise CheckpointError(f"{self.folder} has no {name}; {AGAIN}") from None
        except Exception as error:  # onnxruntime has a class for each of its complaints
            reason = str(error).strip().splitlines()[0]
            raise CheckpointError(
                f"{self.folder / name} cannot be loaded ({reason}); {AGAIN}"
            ) from None


def session_options(
    threads: int | None = None, *, spinning: bool = False, arena: bool = True
) -> Any:
    """Chosen by measurement: see benchmarks/runtime.py."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    # As many as OpenMP would use, which is how a program is told to leave room for others. A
    # number of its own choice would also tie onnxruntime's threads to cores that may be busy.
    options.intra_op_num_threads = threads or processors()
    options.inter_op_num_threads = 1
    # A thread that spins while it waits takes the time of whoever shares its core.
    options.add_session_config_entry("session.intra_op.allow_spinning", str(int(spinning)))
    # Without an arena the arrays of every run come from the heap, which is left with holes:
    # describing held 500 MB so, and 362 with one.
    options.enable_cpu_mem_arena = arena
    options.log_severity_level = 3
    return options


def processors() -> int:
    """How many may be used."""
    given = os.environ.get("OMP_NUM_THREADS", "")
    return int(given) if given.isdigit() and int(given) else os.cpu_count() or 1


def is_export(folder: Path) -> bool:
    return (folder / EXPORT).is_file()


def find_model(model: Path | str) -> Path:
    """The folder of a model's weights: a run's best or newest checkpoint, an export, a zoo name."""
    path = Path(model)
    if not os.path.exists(path):  # unlike Path.exists, also false for a name too long
        if str(model) in zoo.names():
            return zoo.FOLDER / str(model)
        known = ", ".join(zoo.names()) or "none yet"
        raise CheckpointError(f"no model at {path}, and the zoo has none of that name ({known})")
    if (path / "config.yaml").is_file() or is_export(path):
        return path
    best, checkpoints = best_checkpoint(path), sorted(path.glob("checkpoints/step-*"))
    if best is not None and best not in checkpoints:  # another would not be the model that is meant
        raise CheckpointError(f"{best} is gone, the best of {path}; give another checkpoint of it")
    if not checkpoints:
        raise CheckpointError(f"{path} holds no model; give the folder of a run or of a checkpoint")
    return best or checkpoints[-1]


def best_checkpoint(run: Path) -> Path | None:
    """Where a run's file `best` points; it need not exist any more."""
    try:
        name = (run / "best").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return None
    return run / "checkpoints" / Path(name).name  # a name only: it cannot point elsewhere


def read_export(folder: Path) -> Export:
    """The export in a folder, every file of it checked."""
    about = _about(folder)
    graphs: dict[str, bytes] = {}
    for name, digest in about["files"].items():
        content = _read(folder, name)
        if hashlib.sha256(content).hexdigest() != digest:
            raise CheckpointError(f"{folder / name} is damaged or was changed; {AGAIN}")
        if name.endswith(".onnx"):
            _check_graph(content, folder / name)
            graphs[name] = content
    if STEP not in graphs or "config.yaml" not in about["files"]:
        raise CheckpointError(f"{folder / EXPORT} names no {STEP} or no config.yaml; {AGAIN}")
    return Export(folder, about, graphs)


def _about(folder: Path) -> dict[str, Any]:
    path = folder / EXPORT
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        version = about["format"]
        if not isinstance(version, int) or version < 1:
            raise ValueError(f"format {version!r}")
        if version != FORMAT:
            newer = "a newer", "upgrade with `pip install -U sightline`"
            older = "an older", "make it anew with `sightline export`"
            which, cure = newer if version > FORMAT else older
            numbers = f"format {version}, this one reads {FORMAT}"
            raise CheckpointError(f"{folder} was exported by {which} Sightline ({numbers}); {cure}")
        files = dict(about["files"].items())
    except FileNotFoundError:
        raise CheckpointError(f"{folder} is not an export: it has no {EXPORT}") from None
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise CheckpointError(f"{path} is damaged ({error}); {AGAIN}") from None
    for name in files:
        if name in ("", ".", "..") or "/" in name or "\\" in name or "\0" in name:
            raise CheckpointError(f"{path} names {name!r}, which is no file of the folder itself")
    return {**about, "files": files}


def _read(folder: Path, name: str) -> bytes:
    path = folder / name
    try:
        if path.resolve().parent != folder.resolve():  # a link that leads elsewhere
            raise CheckpointError(f"{path} is a link out of the model's folder; copy the file")
        return path.read_bytes()
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing; {AGAIN}") from None
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror}") from None


# ------------------------------------------------------------------- a look into a graph's bytes

# Which fields of which message (onnx.proto) are messages to look into; what may not be there.
_INSIDE = {
    "model": {7: "graph"},
    "graph": {1: "node", 5: "tensor"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph"},
    "tensor": {},
}
_REFUSED = {
    ("tensor", 13): "keeps its weights in another file",
    ("tensor", 14): "keeps its weights in another file",
    ("node", 7): "uses operators that are not ONNX's own",
    ("model", 20): "holds a training program",
    ("model", 25): "defines functions",
    ("graph", 15): "holds sparse tensors",
}


def _check_graph(content: bytes, path: Path) -> None:
    try:
        _look_into(memoryview(content), "model")
    except _UnwantedError as found:
        raise CheckpointError(f"{path} {found}, which no export does; do not use it") from None
    except (IndexError, ValueError, RecursionError):
        raise CheckpointError(f"{path} is not an ONNX graph; {AGAIN}") from None


class _UnwantedError(Exception):
    pass


def _look_into(message: memoryview, kind: str) -> None:
    for field, value in _fields(message):
        empty = value == 0 if isinstance(value, int) else len(value) == 0
        if (kind, field) in _REFUSED and not empty:
            raise _UnwantedError(_REFUSED[kind, field])
        inner = _INSIDE[kind].get(field)
        if inner is not None:
            if isinstance(value, int):
                raise ValueError("a number where a message belongs")
            _look_into(value, inner)


def _fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """The fields of a protobuf message: number, and value (bytes, or a number)."""
    at = 0
    while at < len(message):
        key, at = _varint(message, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(message, at)
            yield key >> 3, value
            continue
        if wire == 2:
            size, at = _varint(message, at)
        elif wire in (1, 5):
            size = 8 if wire == 1 else 4
        else:
            raise ValueError("no such wire type")
        if at + size > len(message):
            raise ValueError("cut short")
        yield key >> 3, message[at : at + size]
        at += size


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = message[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
        if shift > 63:
            raise ValueError("a number without end")
