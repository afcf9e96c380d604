"""ResNet-50 and ResNet-101 (He et al. 2015) as torchvision names them, without the classifier."""

from __future__ import annotations

import math

from torch import Tensor, nn
from torch.nn import functional as F

BLOCKS = {"resnet50": (3, 4, 6, 3), "resnet101": (3, 4, 23, 3)}
WIDTHS = (64, 128, 256, 512)
EXPANSION = 4  # a block's output has four times the channels of its middle


class Bottleneck(nn.Module):
    """1 x 1 down, 3 x 3 (with the stride, as in torchvision), 1 x 1 up, plus the shortcut."""

    normalised = (("conv1", "bn1"), ("conv2", "bn2"), ("conv3", "bn3"))

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        after = width * EXPANSION
        self.conv1 = nn.Conv2d(before, width, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, stride=stride, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)
        self.conv3 = nn.Conv2d(width, after, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(after)
        self.downsample: nn.Module | None = None
        if stride != 1 or before != after:
            self.downsample = nn.Sequential(
                nn.Conv2d(before, after, 1, stride=stride, bias=False), nn.BatchNorm2d(after)
            )

    def forward(self, x: Tensor) -> Tensor:
        y = F.relu(self.bn1(self.conv1(x)), inplace=True)
        y = F.relu(self.bn2(self.conv2(y)), inplace=True)
        y = self.bn3(self.conv3(y))
        shortcut = x if self.downsample is None else self.downsample(x)
        return F.relu(y + shortcut, inplace=True)


class ResNet(nn.Module):
    """Pictures (B, 3, S, S) to layer3's map (stride 16, 1024) or layer4's (stride 32, 2048)."""

    normalised = (("conv1", "bn1"),)

    def __init__(self, name: str, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        before = 64
        self.depth = 3 if stride == 16 else 4
        self.unused = ("layer4.", "fc.") if stride == 16 else ("fc.",)
        for number in range(self.depth):
            blocks = []
            for block in range(BLOCKS[name][number]):
                first = 2 if block == 0 and number > 0 else 1
                blocks.append(Bottleneck(before, WIDTHS[number], first))
                before = WIDTHS[number] * EXPANSION
            self.add_module(f"layer{number + 1}", nn.Sequential(*blocks))
        self.dimension = before
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, images: Tensor) -> Tensor:
        x = F.relu(self.bn1(self.conv1(images)), inplace=True)
        x = F.max_pool2d(x, 3, stride=2, padding=1)
        for number in range(3):
            x = self.get_submodule(f"layer{number + 1}")(x)
        return self.above(x)  # (B, 1024 or 2048, h, w)

    def above(self, x: Tensor) -> Tensor:
        """From layer3's map, of stride 16, on."""
        return self.get_submodule("layer4")(x) if self.depth == 4 else x

    def top(self, x: Tensor) -> Tensor:
        """The mean of the map, (B, 2048)."""
        return x.mean((2, 3))

    def side(self, size: int) -> int:
        """The map's side for a picture of `size`: every halving rounds up."""
        return math.ceil(size / (16 if self.depth == 3 else 32))
