"""Point and tell: a region of a picture as a bias on the attention, so that it looks there."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sightline.errors import UserError
from sightline.types import Box

# What the user points at, as it is written: x, y, width, height as fractions of the picture. A
# `Box` (types.py) is left, top, right, bottom as fractions.
Region = tuple[float, float, float, float]

LOWERED = 8.0  # subtracted from scores outside: their weights relative to those inside fall to e^-8


def check_focus(values: Sequence[float]) -> Region:
    """Four numbers as a region; a UserError says what they should be."""
    if len(values) != 4 or not all(math.isfinite(v) and 0 <= v <= 1 for v in values):
        raise UserError(
            f"focus {_shown(values)} is no box; give x,y,w,h as fractions of the picture, 0 to 1"
        )
    x, y, w, h = map(float, values)
    if min(w, h) <= 0 or max(x, y) >= 1:
        raise UserError(f"focus {_shown(values)} is empty; give it a width and a height above 0")
    return x, y, w, h


def parse_focus(text: str) -> Region:
    """`x,y,w,h` as written on the command line or in a form."""
    try:
        return check_focus([float(part) for part in text.split(",")])
    except ValueError:
        raise UserError(
            f"focus {text[:80]!r} is no box; give x,y,w,h as fractions of the picture, 0 to 1"
        ) from None


def focus_bias(
    focus: Region,
    visible: Box,  # the part of the picture that the encoder saw
    grid: tuple[int, int],  # rows, columns
) -> NDArray[np.float32]:
    """(M,): 0 for the cells that the region covers best, −LOWERED for those it does not touch.

    Cells covered in part lie in between, in proportion, so that a region smaller than a cell steers
    as much as a large one.
    """
    x, y, w, h = check_focus(focus)
    left, top, right, bottom = visible
    across = _covered(x, min(x + w, 1.0), left, right, grid[1])
    down = _covered(y, min(y + h, 1.0), top, bottom, grid[0])
    covered = np.outer(down, across)  # (rows, columns)
    if covered.max() <= 0:
        raise UserError(
            f"focus {_shown(focus)} lies outside the part of the picture that the model sees, "
            f"x from {left:.2f} to {right:.2f} and y from {top:.2f} to {bottom:.2f}"
        )
    bias: NDArray[np.float32] = (LOWERED * (covered / covered.max() - 1)).astype(np.float32)
    return bias.ravel()


def _covered(
    start: float, stop: float, first: float, last: float, cells: int
) -> NDArray[np.float64]:
    """The share of each of `cells` equal stretches of [first, last] that [start, stop] covers."""
    edges = np.linspace(first, last, cells + 1)
    overlap = np.minimum(edges[1:], stop) - np.maximum(edges[:-1], start)
    return np.asarray(np.clip(overlap, 0, None) / (edges[1] - edges[0]), np.float64)


def _shown(values: Sequence[float]) -> str:
    return ",".join(f"{value:g}" for value in values)
