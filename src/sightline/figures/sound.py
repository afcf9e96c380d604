"""Attention over time as in Cho et al. fig. 8: a spectrogram, and where each token looked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sightline.errors import UserError
from sightline.figures.alignment import colours_of
from sightline.figures.chart import ticks
from sightline.figures.files import suffix_of
from sightline.figures.fonts import Lettering, clean
from sightline.figures.sheet import FAINT, INK, RULE, SUFFIXES, Line, Picture, Sheet, Text
from sightline.types import Description

MARGIN, LEFT, TOP = 30, 70, 58
HIGH, BAND, GAP = 220, 20, 26  # of the spectrogram, of a token's row, between the two
PER_SECOND, LEAST, MOST = 330, 640, 3200  # pixels across
SMALL = 13
FOUND, TRUE = (226, 88, 34), (24, 128, 96)
Spans = Sequence[tuple[float, float]]


def draw_sound(
    description: Description,
    path: Path | str,
    banks: NDArray[Any],  # (T, 41): energy and filter banks, a frame every 10 ms
    start: float,  # the second at which they begin
    found: Spans,  # when each token was said, by the model
    true: Spans = (),  # and when it was, where that is known
) -> None:
    """Draw a recording's spectrogram, and below it a row for each token: .png, .jpg or .svg."""
    suffix_of(path, SUFFIXES)
    weights, layout = description.attention, description.layout
    if weights is None or layout is None or not layout.times or not len(weights):
        raise UserError("there is no attention over time to draw")
    seconds = len(banks) / 100
    width = int(np.clip(PER_SECOND * seconds, LEAST, MOST))
    height = BAND * len(weights)
    below = TOP + HIGH + GAP

    def across(second: float) -> float:
        return LEFT + width * float(np.clip((second - start) / seconds, 0, 1))

    step = layout.times[1] - layout.times[0] if len(layout.times) > 1 else seconds
    share = len(layout.times) * step / seconds  # the last position may reach beyond the sound
    looks = np.asarray(weights, np.float64) / np.maximum(weights.max(1, keepdims=True), 1e-9)
    picture = Image.fromarray(colours_of(looks)).resize(
        (round(width * share), height), Image.Resampling.NEAREST
    )
    pictures = (
        Picture(LEFT, TOP, _spectrogram(banks[:, 1:], width), exact=True),
        Picture(LEFT, below, np.asarray(picture)[:, :width], exact=True),
    )
    letters = Lettering([description.text])
    size = 22
    title, _ = letters.fit(clean(description.text), size, width, 12)
    texts = [Text(LEFT, MARGIN + 8, title, size)]
    lines = []
    for i, (token, (first, last)) in enumerate(zip(description.tokens, found, strict=True)):
        top = below + i * BAND
        word, _ = letters.fit(clean(token), SMALL, LEFT - 16, SMALL)
        texts.append(Text(LEFT - 8, top + 0.72 * BAND, word, SMALL, INK, "end"))
        lines += [Line(across(x), top, across(x), top + BAND, FOUND) for x in (first, last)]
        middle, up = across((first + last) / 2), TOP + HIGH + 11 + 10 * (i % 2)
        texts.append(Text(middle, up, word, 11, FAINT, "middle"))
    for place in sorted({edge for span in true for edge in span}):
        lines.append(Line(across(place), TOP, across(place), TOP + HIGH, TRUE))
    for second in ticks(start, start + seconds):
        if start <= second <= start + seconds:
            x = across(second)
            lines.append(Line(x, below + height, x, below + height + 6, RULE))
            texts.append(Text(x, below + height + 22, f"{second:g} s", SMALL, FAINT, "middle"))
    Sheet(
        width=LEFT + width + MARGIN,
        height=below + height + 34 + MARGIN,
        title=description.text,
        pictures=pictures,
        lines=tuple(lines),
        texts=tuple(texts),
    ).save(path)


def _spectrogram(banks: NDArray[Any], width: int) -> NDArray[np.uint8]:
    """Filter banks (T, 40) as a picture, low tones at its foot, dark where it is loud."""
    low, high = np.percentile(banks, [10, 99.5])
    loud = np.clip((banks - low) / max(high - low, 1e-6), 0, 1).T[::-1]
    grey = Image.fromarray(np.rint(255 * (1 - loud)).astype(np.uint8))
    return np.asarray(grey.resize((width, HIGH), Image.Resampling.BILINEAR).convert("RGB"))
