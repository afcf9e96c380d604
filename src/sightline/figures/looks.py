"""Where each word looked: a description's tokens as words, and their weights as a smooth map.

Xu et al. §5.4: α is upsampled by 16 and smoothed with a Gaussian, then laid over the picture,
white where the model looked.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sightline.data.vocabulary import SPACE, SPECIALS, Kind, Vocabulary
from sightline.errors import DataError, UserError
from sightline.figures.fonts import clean
from sightline.types import Box, Description, Layout

Floats = NDArray[np.float32]
PictureSource = NDArray[np.uint8] | Image.Image | str | os.PathLike[str]

UPSAMPLE = 16  # pixels of the smooth map per cell of the grid
SMOOTH = 20 / 224  # the Gaussian's σ as a part of the map's side: the paper's 20 of 224 pixels

# How weight becomes light: pixel · (1 − veil) + 255 · glow, both linear in the weight's lightness.
DIM = 0.74  # how much of the picture is taken away where it did not look
FADE = 0.7  # outside what the encoder saw, the fall of light as a part of the Gaussian
GLOW = 0.46  # how much white is laid on where it looked most


@dataclass(frozen=True)
class Look:
    """A word and where the model looked when it wrote it."""

    word: str
    weights: Floats  # (M,)
    start: int  # its tokens are [start, stop)
    stop: int
    probability: float | None = None  # of all its tokens, where they are known

    @property
    def printed(self) -> str:
        """The word as the paper prints it above its panel: `dog(0.87)`."""
        sure = "" if self.probability is None else f"({self.probability:.2f})"
        return f"{clean(self.word)}{sure}"


def looks_of(description: Description) -> list[Look]:
    """The words with their attention; pieces of one word share the mean of theirs."""
    attention, layout = description.attention, description.layout
    if attention is None or layout is None or layout.kind == "vector":
        raise UserError(
            f"{_name(description)} has no attention to draw; "
            "describe with a model that attends (its recipe names an attention)"
        )
    weights = np.asarray(attention, np.float32)
    if weights.ndim != 2 or len(weights) != len(description.tokens):
        raise UserError(
            f"{_name(description)}: attention of shape {weights.shape} does not fit "
            f"{len(description.tokens)} tokens; it needs one row per token"
        )
    if weights.shape[1] != len(layout):
        raise UserError(
            f"{_name(description)}: attention over {weights.shape[1]} positions does not fit its "
            f"layout ({layout.kind}) of {len(layout)}"
        )
    left, top, right, bottom = layout.box
    if not (0 <= left < right <= 1 and 0 <= top < bottom <= 1):
        raise UserError(
            f"{_name(description)}: its layout's box {layout.box} is not a part of the picture; "
            "give left, top, right and bottom as fractions of it"
        )
    if not np.isfinite(weights).all():
        raise UserError(f"{_name(description)}: its attention has values that are not numbers")
    logs = description.log_probs
    known = len(logs) == len(description.tokens)
    return [
        Look(word, weights[a:b].mean(axis=0), a, b, math.exp(sum(logs[a:b])) if known else None)
        for word, a, b in words_of(description.tokens)
    ]


def _name(description: Description) -> str:
    text = description.text if len(description.text) <= 60 else description.text[:59] + "…"
    return f"the description {text!r}"


def words_of(tokens: Sequence[str]) -> list[tuple[str, int, int]]:
    """Words with their tokens [start, stop); <pad>, <begin> and <end> are no words."""
    kind: Kind = "word"
    if any(SPACE in token for token in tokens):
        kind = "bpe"
    elif " " in tokens:
        kind = "char"
    others = dict.fromkeys(token for token in tokens if token not in SPECIALS)
    vocabulary = Vocabulary(kind, (*SPECIALS, *others))
    ids = [vocabulary.ids[token] for token in tokens]
    return [(vocabulary.decode(ids[a:b]), a, b) for a, b in vocabulary.word_spans(ids)]


def tags_of(description: Description) -> str:
    """What the picture may be about, those in brackets that the text has: `[dog] · grass`."""
    layout = description.layout
    if layout is None or layout.kind != "grid":
        return ""
    written = {*description.tokens}
    return " · ".join(f"[{word}]" if word in written else word for word in layout.labels)


# ---------------------------------------------------------------- weights → smooth maps


def smooth_maps(weights: Floats, layout: Layout) -> Floats:
    """Weights (T, M) over a grid as smooth maps (T, 16 rows, 16 columns) of lightness in [0, 1]."""
    maps, low, high = smooth(weights, layout)
    return np.asarray(np.clip((maps - low) / (high - low), 0, 1), np.float32)


def smooth(weights: Floats, layout: Layout) -> tuple[Floats, Floats, Floats]:
    """Smooth weights (T, 16 rows, 16 columns), and which are black and white, both (T, 1, 1).

    As in the paper the least weight is black and the greatest is white; but the least is never
    taken above half the even weight 1/M, nor the greatest below twice, so that a model which
    looked everywhere alike is drawn grey and not as a landscape of rounding errors.
    """
    if layout.kind != "grid" or len(layout.shape) != 2:
        raise UserError(f"attention over {layout.kind} cannot be laid over a picture")
    rows, columns = layout.shape
    cells = weights[:, : layout.cells].reshape(-1, rows, columns)
    maps = np.asarray(spread(rows) @ cells @ spread(columns).T, np.float32)  # (T, 16 r, 16 c)
    even = 1.0 / (rows * columns)
    low = np.minimum(maps.min(axis=(1, 2), keepdims=True), 0.5 * even)
    high = np.maximum(maps.max(axis=(1, 2), keepdims=True), 2.0 * even)
    return maps, low, high


@lru_cache(maxsize=64)
def spread(cells: int) -> Floats:
    """(16 N, N): bicubic upsampling and then the Gaussian, as one matrix along one side."""
    unit = Image.fromarray(np.eye(cells, dtype=np.float32))
    size = cells * UPSAMPLE
    up = np.asarray(unit.resize((cells, size), Image.Resampling.BICUBIC), np.float64)
    place = np.arange(size)
    blur = np.exp(-0.5 * ((place[:, None] - place) / (SMOOTH * size)) ** 2)
    blur /= blur.sum(axis=1, keepdims=True)  # at the rim only what is inside counts
    return np.asarray(blur @ up, np.float32)


# ---------------------------------------------------------------- maps → light on a picture


def read_picture(picture: PictureSource) -> NDArray[np.uint8]:
    from sightline.media.image import pixels_of, read_image

    if not isinstance(picture, np.ndarray | Image.Image):
        return read_image(Path(picture))
    picture = pixels_of(picture)
    if picture.ndim != 3 or picture.shape[2] != 3 or picture.dtype != np.uint8 or not picture.size:
        raise DataError(
            f"a picture must be (H, W, 3) of uint8, not {picture.shape} {picture.dtype}"
        )
    return picture


def resized(picture: NDArray[np.uint8], width: int, height: int) -> NDArray[np.uint8]:
    return np.asarray(Image.fromarray(picture).resize((width, height), Image.Resampling.LANCZOS))


def lit_panels(
    panel: NDArray[np.uint8], description: Description
) -> list[tuple[Look, NDArray[np.uint8]]]:
    """Each word, and the panel lit where it looked."""
    looks, layout = looks_of(description), description.layout
    if not looks or layout is None:
        return []
    maps = smooth_maps(np.stack([look.weights for look in looks]), layout)
    return [
        (look, light(panel, lightness, layout.box))
        for look, lightness in zip(looks, maps, strict=True)
    ]


def light(pixels: NDArray[np.uint8], lightness: Floats, box: Box) -> NDArray[np.uint8]:
    """The panel (h, w, 3) dimmed, and bright where the map (16 r, 16 c) over its part `box` is.

    Outside the box the model saw nothing; there the light at its edge fades within a few pixels,
    as the Gaussian of a map without an edge would.
    """
    height, width = pixels.shape[:2]
    left, top = min(round(box[0] * width), width - 1), min(round(box[1] * height), height - 1)
    right, bottom = max(left + 1, round(box[2] * width)), max(top + 1, round(box[3] * height))
    seen = Image.fromarray(lightness).resize((right - left, bottom - top), Image.Resampling.BICUBIC)
    around = ((top, height - bottom), (left, width - right))
    whole = np.clip(np.pad(np.asarray(seen), around, mode="edge"), 0, 1)
    down = _fade(height, top, bottom)[:, None]  # (h, 1)
    fade = down * _fade(width, left, right)  # (h, w)
    part = (whole * fade)[..., None]  # (h, w, 1)
    veil = DIM + (GLOW - DIM) * part
    return np.asarray(np.rint(pixels * (1 - veil) + 255 * GLOW * part), np.uint8)


def _fade(length: int, start: int, stop: int) -> Floats:
    """1 in [start, stop), and outside falling with the distance."""
    place = np.arange(length, dtype=np.float32)
    outside = np.maximum(np.maximum(start - place, place - (stop - 1)), 0)
    return np.exp(-0.5 * (outside / (FADE * SMOOTH * (stop - start))) ** 2)
