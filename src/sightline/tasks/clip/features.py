"""The vectors of clips, computed once by the frozen networks into caches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sightline.data.feature_cache import FeatureCache
from sightline.data.features import extract, folder_name

if TYPE_CHECKING:
    from sightline.nn.encoders.clip import ClipEncoder
    from sightline.tasks.clip.parts import ClipReader

Arrays = Sequence[NDArray[Any]]


def frame_vectors(
    clips: Mapping[str, Path], encoder: ClipEncoder, reader: ClipReader, root: Path
) -> FeatureCache:
    """One vector for each frame that the reader takes of each clip."""
    network = encoder.network
    assert network is not None
    key = {
        "encoder": network.name,
        "stride": network.stride,
        "weights": network.fingerprint(),
        "spec": reader.spec.to_json(),
        "frames": reader.count,
        "sampling": reader.sampling,
    }
    label = f"clips-{network.name}-{reader.spec.size}-{reader.count}{reader.sampling}"
    folder = root / folder_name(label, key)

    def prepare(path: Path) -> NDArray[Any]:
        return np.asarray(reader.read(path)[0]["frames"].values[0])  # (L, 3, S, S)

    return extract(
        clips, folder, key, network.dimension, prepare, _encode(encoder, "frames"), batch_size=1
    )


def motion_vectors(
    clips: Mapping[str, Path], encoder: ClipEncoder, reader: ClipReader, root: Path
) -> FeatureCache:
    """One vector of the 3-D CNN for each window of each clip."""
    assert encoder.motion is not None
    assert reader.motion is not None
    spec = reader.motion
    key = {"encoder": "i3d", "weights": encoder.motion.fingerprint(), "spec": spec.to_json()}
    # the windows are placed by the clip's length, which the frames tell
    folder = root / folder_name(f"clips-i3d-{spec.size}-{spec.count}{spec.between}", key)

    def prepare(path: Path) -> NDArray[Any]:
        return spec.read_file(path)[1]  # (W, 3, F, S, S)

    return extract(
        clips, folder, key, encoder.motion.dimension, prepare, _encode(encoder, "windows"),
        batch_size=1,
    )  # fmt: skip


def _encode(encoder: ClipEncoder, stream: str) -> Any:
    import torch

    fast: list[Any] = []  # made only if something is to be computed

    def encode(prepared: Arrays) -> Arrays:
        if not fast:
            fast.append(encoder.for_inference())
        read = fast[0].frame_vectors if stream == "frames" else fast[0].motion
        with torch.inference_mode():
            return [read(torch.from_numpy(each)).half().numpy() for each in prepared]

    return encode
