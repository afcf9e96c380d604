"""EfficientNet-Lite 0, 1 and 2, with the parameter names of PyPI's `efficientnet_lite_pytorch`.

EfficientNet (Tan and Le 2019) without squeeze-and-excitation and with ReLU6 for swish; the stem
and the head are not widened. The published weights were trained in TensorFlow, so padding is
TensorFlow's "same": as much as makes the output ceil(input / stride), the odd pixel at the end.
"""

from __future__ import annotations

import math

from torch import Tensor, nn
from torch.nn import functional as F

# Stages: runs of blocks of one width, the first of which carries the stride
REPEATS = (1, 2, 2, 3, 3, 4, 1)
KERNELS = (3, 3, 5, 3, 5, 5, 3)
STRIDES = (1, 2, 2, 2, 1, 2, 1)
EXPANSIONS = (1, 6, 6, 6, 6, 6, 6)
CHANNELS = (16, 24, 40, 80, 112, 192, 320)
SCALING = {  # width, depth, the size of picture it was trained on
    "efficientnet_lite0": (1.0, 1.0, 224),
    "efficientnet_lite1": (1.0, 1.1, 240),
    "efficientnet_lite2": (1.1, 1.2, 260),
}
STEM, HEAD = 32, 1280
STRIDE_16_STAGES = 5  # the last of them at stride 16


def widened(channels: int, width: float) -> int:
    """The nearest multiple of 8 to channels × width, but never more than a tenth below it."""
    wanted = channels * width
    rounded = max(8, int(wanted + 4) // 8 * 8)
    return rounded + 8 if rounded < 0.9 * wanted else rounded


class SameConv2d(nn.Conv2d):
    """A convolution, without bias, padded as TensorFlow pads."""

    def __init__(self, before: int, after: int, kernel: int, stride: int = 1, groups: int = 1):
        super().__init__(before, after, kernel, stride, groups=groups, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        step, kernel = self.stride[0], self.kernel_size[0]
        rows, columns = (
            max((math.ceil(side / step) - 1) * step + kernel - side, 0) for side in x.shape[-2:]
        )
        if rows % 2 == 0 and columns % 2 == 0:  # the usual case: no padded copy is needed
            padding = (rows // 2, columns // 2)
            return F.conv2d(x, self.weight, self.bias, self.stride, padding, 1, self.groups)
        x = F.pad(x, (columns // 2, columns - columns // 2, rows // 2, rows - rows // 2))
        return F.conv2d(x, self.weight, self.bias, self.stride, 0, 1, self.groups)


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=1e-3, momentum=0.01)


class Block(nn.Module):
    """Inverted residual: widen by 1 x 1, filter each channel, narrow by 1 x 1, add the input."""

    normalised = (("_expand_conv", "_bn0"), ("_depthwise_conv", "_bn1"), ("_project_conv", "_bn2"))

    def __init__(self, before: int, after: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        middle = before * expansion
        self.widens = expansion != 1
        if self.widens:
            self._expand_conv = SameConv2d(before, middle, 1)
            self._bn0 = _norm(middle)
        self._depthwise_conv = SameConv2d(middle, middle, kernel, stride, groups=middle)
        self._bn1 = _norm(middle)
        self._project_conv = SameConv2d(middle, after, 1)
        self._bn2 = _norm(after)
        self.adds_input = stride == 1 and before == after

    def forward(self, x: Tensor) -> Tensor:
        y = x
        if self.widens:
            y = F.relu6(self._bn0(self._expand_conv(y)), inplace=True)
        y = F.relu6(self._bn1(self._depthwise_conv(y)), inplace=True)
        y = self._bn2(self._project_conv(y))
        result: Tensor = x + y if self.adds_input else y
        return result


class EfficientNetLite(nn.Module):
    """Pictures (B, 3, S, S) to the last map of stride 16, or the head's of stride 32 (1280)."""

    normalised = (("_conv_stem", "_bn0"), ("_conv_head", "_bn1"))

    def __init__(self, name: str, stride: int) -> None:
        super().__init__()
        width, depth, _ = SCALING[name]
        self._conv_stem = SameConv2d(3, STEM, 3, stride=2)
        self._bn0 = _norm(STEM)
        self.has_head = stride != 16
        blocks: list[Block] = []
        before = STEM
        for number in range(len(REPEATS) if self.has_head else STRIDE_16_STAGES):
            ends = number in (0, len(REPEATS) - 1)  # the first and last stage are not deepened
            after = widened(CHANNELS[number], width)
            for repeat in range(REPEATS[number] if ends else math.ceil(REPEATS[number] * depth)):
                step = STRIDES[number] if repeat == 0 else 1
                blocks.append(Block(before, after, KERNELS[number], step, EXPANSIONS[number]))
                before = after
            if number < STRIDE_16_STAGES:
                self.below = len(blocks)  # blocks up to the last map of stride 16
        self._blocks = nn.ModuleList(blocks)
        if self.has_head:
            self._conv_head = SameConv2d(before, HEAD, 1)
            self._bn1 = _norm(HEAD)
        self.dimension = HEAD if self.has_head else before
        later = tuple(f"_blocks.{n}." for n in range(len(blocks), 100))
        self.unused = ("_fc.",) if self.has_head else ("_fc.", "_conv_head.", "_bn1.", *later)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                # He et al.'s rule over the outputs; PyTorch's own forgets that groups divide them.
                outputs = module.out_channels * module.kernel_size[0] ** 2 / module.groups
                nn.init.normal_(module.weight, std=math.sqrt(2 / outputs))

    def forward(self, images: Tensor) -> Tensor:
        x = F.relu6(self._bn0(self._conv_stem(images)), inplace=True)
        for block in self._blocks[: self.below]:
            x = block(x)
        return self.above(x)

    def above(self, x: Tensor) -> Tensor:
        """From the last map of stride 16 on."""
        for block in self._blocks[self.below :]:
            x = block(x)
        if self.has_head:
            x = F.relu6(self._bn1(self._conv_head(x)), inplace=True)
        return x  # (B, dimension, h, w)

    def top(self, x: Tensor) -> Tensor:
        """The mean of the map, (B, 1280)."""
        return x.mean((2, 3))

    def side(self, size: int) -> int:
        """The map's side for a picture of `size`: every halving rounds up."""
        return math.ceil(size / (32 if self.has_head else 16))
