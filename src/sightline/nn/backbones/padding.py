"""TensorFlow's "same" padding, which published weights were trained with."""

from __future__ import annotations

import math
from collections.abc import Sequence

from torch import Tensor
from torch.nn import functional as F


def same(sides: Sequence[int], kernel: Sequence[int], stride: Sequence[int]) -> list[int]:
    """Cells to add along each side, so that the output's is ceil(input / stride)."""
    return [
        max((math.ceil(side / s) - 1) * s + k - side, 0)
        for side, k, s in zip(sides, kernel, stride, strict=True)
    ]


def padded(x: Tensor, added: Sequence[int]) -> Tensor:
    """Zeros around the last sides of x; where their number is odd, one more at the end."""
    around = [each for n in reversed(added) for each in (n // 2, n - n // 2)]
    return F.pad(x, around) if any(around) else x
