"""The mean of several models' weights, as a model folder of its own.

For the checkpoints of one run, or for models that were trained on from the same one.
"""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor

from sightline.data.durable import replacing
from sightline.data.vocabulary import VOCAB
from sightline.errors import CheckpointError
from sightline.runtime.confidence import CONFIDENCE
from sightline.training.checkpoint import (
    CONFIG,
    OPTIMISER,
    TRAINING,
    WEIGHTS,
    load_tensors,
    seal,
    verify,
)

RELATED = 0.3  # the cosine of models that began with other random weights is about 0


def average_checkpoints(run: Path | str, out: Path | str, newest: int = 5) -> list[Path]:
    """Write the mean weights of a run's newest checkpoints to `out`; gives those it took."""
    try:
        found = sorted(Path(run).glob("checkpoints/step-*"))[-newest:]
    except OSError as error:
        raise CheckpointError(f"cannot read {run}: {error.strerror}") from None
    if not found:
        raise CheckpointError(f"{run} holds no checkpoints; give the folder of a run")
    return average_models(found, out)


def average_models(
    folders: Sequence[Path], out: Path | str, say: Callable[[str], None] = lambda text: None
) -> list[Path]:
    """Write the mean weights of models to `out`, all else as the last has it; gives them back.

    Models that were not trained on from the same one are pointed out with `say`.
    """
    found, out = list(folders), Path(out)
    try:
        if out.exists():
            raise CheckpointError(f"{out} is already there; name another folder")
        mean = _mean(found, say)
        with replacing(out) as partial:
            partial.mkdir(parents=True)
            for path in found[-1].iterdir():
                if path.name not in (WEIGHTS, OPTIMISER, TRAINING, CONFIDENCE):
                    shutil.copy(path, partial / path.name)
            save_file(mean, partial / WEIGHTS)
            seal(partial, {})
    except (OSError, SafetensorError) as error:
        raise CheckpointError(f"cannot write {out}: {error}") from None
    return found


def _mean(folders: Sequence[Path], say: Callable[[str], None]) -> dict[str, Tensor]:
    vocabularies = {(each / VOCAB).read_bytes() for each in folders if (each / VOCAB).is_file()}
    if len(vocabularies) > 1:
        raise CheckpointError(f"{folders[0]} and the others have different vocabularies")
    total: dict[str, Tensor] = {}
    first: dict[str, Tensor] = {}
    for folder in folders:
        if (folder / TRAINING).exists():
            verify(folder, but=(CONFIG, OPTIMISER))
        tensors = load_tensors(folder / WEIGHTS)
        if total and {k: v.shape for k, v in tensors.items()} != {
            k: v.shape for k, v in total.items()
        }:
            raise CheckpointError(f"{folder} is of another model than {folders[0]}")
        if first and _likeness(first, tensors) < RELATED:
            say(
                f"warning: {folder} and {folders[0]} were not trained on from the same model: "
                "their mean is seldom any good"
            )
        first = first or tensors
        for name, tensor in tensors.items():
            # in double precision, begun with the first: what all share stays as it is, bit for bit
            more = tensor.double()
            total[name] = total[name] + more if name in total else more
    return {name: (sums / len(folders)).to(tensors[name].dtype) for name, sums in total.items()}


def _likeness(one: Mapping[str, Tensor], other: Mapping[str, Tensor]) -> float:
    """The cosine between two models' matrices, without those that both have from elsewhere."""
    names = [n for n in one if one[n].dim() > 1 and not one[n].equal(other[n])]
    if not names:
        return 1.0
    product = sum(float((one[n].double() * other[n].double()).sum()) for n in names)
    norms = [sum(float(m[n].double().square().sum()) for n in names) for m in (one, other)]
    return product / max(math.sqrt(norms[0] * norms[1]), 1e-30)
