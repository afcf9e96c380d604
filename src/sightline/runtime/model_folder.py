"""Reading an export: a folder of data only, checked whole before anything in it is computed with.

    export.json    format number, versions, preprocessing, the SHA-256 of every file but the card
    step.onnx      one token per row; start.onnx once per input; encoder.onnx reads the input
    config.yaml    vocab.json    …    card.md

A folder may come from anyone. Its files are plain files of the folder, each with its hash, and its
graphs are what exports write and nothing else (graph_check.py; docs/reference/security.md).
"""

from __future__ import annotations

import hashlib
import json
import os
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sightline import zoo
from sightline.data.durable import replace_file
from sightline.errors import DISTRIBUTION, CheckpointError
from sightline.runtime.graph_check import MalformedError, RefusedError, check_graph

FORMAT = 2  # raised when what is written changes; only this one is read
EXPORT = "export.json"
ENCODER, START, STEP = "encoder.onnx", "start.onnx", "step.onnx"
LEADING = "leading_log_probs", "leading_tokens"  # outputs of a step: a beam search's
AGAIN = "make it anew with `sightline export`, or copy it again"
# Bytes of the largest file of each kind that is read whole; protobuf ends at 2 GiB.
LARGEST = {".json": 64 << 20, ".yaml": 1 << 20, ".onnx": (2 << 30) - 1}
NOWHERE = "/dev/null/none"  # no such folder can be made


@dataclass(frozen=True)
class Export:
    """A checked export: what `export.json` says, and the graphs."""

    folder: Path
    about: dict[str, Any]
    graphs: dict[str, bytes]

    def session(self, name: str, threads: int | None = None) -> Any:
        """An onnxruntime session over one of the graphs; None: a thread for each processor."""
        if name not in self.graphs:
            raise CheckpointError(f"{self.folder} has no {name}; {AGAIN}")
        content = self.graphs[name]
        options = session_options(threads)
        # Weights are unpacked to at most four times their size; other constants are small.
        options.add_session_config_entry(
            "optimization.constant_folding_max_output_size_in_bytes",
            str((1 << 20) + 8 * len(content)),
        )
        try:
            return onnxruntime().InferenceSession(
                content, options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime has a class for each of its complaints
            raise CheckpointError(
                f"{self.folder / name} cannot be loaded ({reason(error)}); {AGAIN}"
            ) from None


def onnxruntime() -> Any:
    """The library, with its telemetry off.

    `import sightline` sets ORT_DISABLE_TELEMETRY, which must be done before onnxruntime is
    imported; for a program that imported it first, what can still be switched off is.
    """
    import onnxruntime as library

    library.disable_telemetry_events()
    return library


def reason(error: Exception) -> str:
    """The first line of onnxruntime's complaint, which may quote names in the graph."""
    return printable((str(error).strip() or type(error).__name__).splitlines()[0])


def printable(text: str) -> str:
    """What a model's folder says, fit for a message: short, and without escape codes."""
    return "".join(c if c.isprintable() else "\N{REPLACEMENT CHARACTER}" for c in text[:300])


def session_options(
    threads: int | None = None, *, spinning: bool = False, arena: bool = True
) -> Any:
    """Chosen by measurement: see benchmarks/runtime.py."""
    options = onnxruntime().SessionOptions()
    # As many as OpenMP would use, which is how a program is told to leave room for others. A
    # number of its own choice would also tie onnxruntime's threads to cores that may be busy.
    options.intra_op_num_threads = threads or processors()
    options.inter_op_num_threads = 1
    # A thread that spins while it waits takes the time of whoever shares its core.
    options.add_session_config_entry("session.intra_op.allow_spinning", str(int(spinning)))
    # Without an arena the arrays of every run come from the heap, which is left with holes:
    # describing held 500 MB so, and 362 with one.
    options.enable_cpu_mem_arena = arena
    options.log_severity_level = 4  # errors are raised: they are not printed as well
    # Were a graph to name a file after all, it would not be found.
    options.add_session_config_entry(
        "session.model_external_initializers_file_folder_path", NOWHERE
    )
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
        return plain_folder(path)
    best, checkpoints = best_checkpoint(path), sorted(path.glob("checkpoints/step-*"))
    if best is not None and best not in checkpoints:  # another would not be the model that is meant
        gone = printable(best.name)
        raise CheckpointError(f"{gone} is gone, the best of {path}; give another checkpoint of it")
    if not checkpoints:
        raise CheckpointError(f"{path} holds no model; give the folder of a run or of a checkpoint")
    return plain_folder(best or checkpoints[-1])


def plain_folder(folder: Path) -> Path:
    """The folder, if it holds nothing but plain files (and folders, which are not read).

    A link would read another's file; a FIFO or a device never ends.
    """
    try:
        with os.scandir(folder) as entries:
            for entry in entries:
                _require_plain(entry, folder / entry.name)
    except OSError as error:
        raise CheckpointError(f"cannot read {folder}: {error.strerror}") from None
    return folder


def _require_plain(entry: os.DirEntry[str], path: Path) -> None:
    if not entry.name.isprintable():
        raise CheckpointError(f"the folder of a model holds {entry.name!r}; remove that file")
    if entry.is_dir(follow_symlinks=False):
        return
    if entry.is_symlink():
        raise CheckpointError(f"{path} is a link; copy the file that it names")
    if not entry.is_file(follow_symlinks=False):
        raise CheckpointError(f"{path} is not a file (a FIFO, a socket or a device); remove it")
    largest = LARGEST.get(path.suffix)
    if largest is not None and entry.stat(follow_symlinks=False).st_size > largest:
        raise CheckpointError(f"{path} is larger than {largest:,} bytes, as no model's is")


def best_checkpoint(run: Path) -> Path | None:
    """Where a run's file `best` points; it need not exist any more."""
    mark = run / "best"
    try:
        if not stat.S_ISREG(mark.lstat().st_mode):
            raise CheckpointError(f"{mark} is not a file; remove it, or give a checkpoint")
        with mark.open(encoding="utf-8", errors="replace") as file:
            name = file.read(200).strip()
    except OSError:
        return None
    return run / "checkpoints" / Path(name).name  # a name only: it cannot point elsewhere


def read_export(folder: Path) -> Export:
    """The export in a folder, every file of it checked."""
    plain_folder(folder)
    about = _about(folder)
    graphs: dict[str, bytes] = {}
    for name, digest in about["files"].items():
        content = _read(folder, name)
        if hashlib.sha256(content).hexdigest() != digest:
            raise CheckpointError(f"{folder / name} is damaged or was changed; {AGAIN}")
        if name.endswith(".onnx"):
            _require_graph(content, folder / name)
            graphs[name] = content
    if STEP not in graphs or "config.yaml" not in about["files"]:
        raise CheckpointError(f"{folder / EXPORT} names no {STEP} or no config.yaml; {AGAIN}")
    for path in folder.iterdir():  # what a task may read has its hash
        if path.suffix in LARGEST and path.name not in (EXPORT, *about["files"]):
            raise CheckpointError(f"{folder / EXPORT} does not name {path.name}; remove that file")
    return Export(folder, about, graphs)


def record_file(folder: Path, name: str) -> None:
    """Note the hash of a file that was added to a model's folder, if the model is an export."""
    if not is_export(folder):
        return
    about = _about(folder)
    about["files"][name] = hashlib.sha256(_read(folder, name)).hexdigest()
    replace_file(folder / EXPORT, (json.dumps(about, indent=1) + "\n").encode())


def _about(folder: Path) -> dict[str, Any]:
    path = folder / EXPORT
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        version = about["format"]
        if not isinstance(version, int) or version < 1:
            raise ValueError(f"format {version!r}")
        if version != FORMAT:
            newer = "a newer", f"upgrade with `pip install -U {DISTRIBUTION}`"
            older = "an older", "make it anew with `sightline export`"
            which, cure = newer if version > FORMAT else older
            numbers = f"format {version}, this one reads {FORMAT}"
            raise CheckpointError(f"{folder} was exported by {which} Sightline ({numbers}); {cure}")
        files = dict(about["files"].items())
    except FileNotFoundError:
        raise CheckpointError(f"{folder} is not an export: it has no {EXPORT}") from None
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{path} is damaged ({reason(error)}); {AGAIN}") from None
    for name in files:
        plain = name.isprintable() and len(name) < 256 and not {"/", "\\"} & set(name)
        if not plain or Path(name).suffix not in LARGEST:  # no "" and no ".." either
            raise CheckpointError(
                f"{path} names {name[:40]!r}, which is no file of the folder itself"
            )
    return {**about, "files": files}


def _read(folder: Path, name: str) -> bytes:
    path = folder / name
    try:
        return path.read_bytes()
    except FileNotFoundError:
        raise CheckpointError(f"{path} is missing; {AGAIN}") from None
    except OSError as error:
        raise CheckpointError(f"cannot read {path}: {error.strerror}") from None


def _require_graph(content: bytes, path: Path) -> None:
    try:
        check_graph(content)
    except RefusedError as error:
        raise CheckpointError(f"{path} {error}, which no export does; do not use it") from None
    except MalformedError:
        raise CheckpointError(f"{path} is not an ONNX graph; {AGAIN}") from None
