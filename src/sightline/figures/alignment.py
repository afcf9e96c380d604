"""Alignments: output words against input words (Cho et al. figure 2), or against time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sightline.errors import UserError
from sightline.figures.chart import ticks
from sightline.figures.files import suffix_of
from sightline.figures.fonts import Lettering, clean
from sightline.figures.looks import looks_of
from sightline.figures.sheet import FAINT, INK, RULE, SUFFIXES, Line, Picture, Sheet, Text
from sightline.types import Description

MARGIN, LABEL_GAP = 36, 10
TITLE, TITLE_LINE = 24, 34
LONGEST = 190  # pixels of a word alongside the matrix; longer ones are cut short
TIME_WIDTH = 960  # how wide a drawing over time is
NONE, ALL = np.array([247, 248, 250]), np.array([16, 48, 94])  # the colours of weight 0 and 1


def draw_alignment(
    alignment: Description | NDArray[Any],
    path: Path | str,
    *,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    title: str | None = None,
) -> None:
    """Draw an alignment matrix, rows output words and columns input words: .png, .jpg or .svg.

    A description over words or frames has its rows and columns; a matrix (T, M) of weights
    in [0, 1] needs both.
    """
    suffix_of(path, SUFFIXES)
    times: tuple[float, ...] = ()
    if isinstance(alignment, Description):
        looks = looks_of(alignment)
        layout = alignment.layout
        assert layout is not None  # looks_of has seen to it
        if layout.kind not in ("words", "frames"):
            raise UserError(f"attention over a {layout.kind} has no alignment matrix")
        rows, columns, times = [look.word for look in looks], layout.labels, layout.times
        weights = np.array([look.weights for look in looks], np.float64)
        title = alignment.text if title is None else title
    else:
        weights = np.asarray(alignment, np.float64)
        rows, columns = _check(weights, rows, columns)
    if weights.size == 0:
        raise UserError("the alignment is empty: there is no word to draw")
    words = [clean(word) for word in rows]
    if times:
        sheet = _over_time(weights, words, times, clean(title or ""))
    else:
        sheet = _matrix(weights, words, [clean(word) for word in columns], clean(title or ""))
    sheet.save(path)


def _check(
    weights: NDArray[np.float64], rows: Sequence[str] | None, columns: Sequence[str] | None
) -> tuple[Sequence[str], Sequence[str]]:
    if rows is None or columns is None:
        raise UserError("an alignment matrix needs the words of its rows and columns")
    if weights.shape != (len(rows), len(columns)):
        raise UserError(
            f"an alignment of shape {weights.shape} does not fit {len(rows)} row words and "
            f"{len(columns)} column words"
        )
    if not np.isfinite(weights).all():
        raise UserError("the alignment has values that are not numbers")
    return rows, columns


def colours_of(weights: NDArray[np.float64]) -> NDArray[np.uint8]:
    """(T, M) → (T, M, 3). The root lets small weights be seen next to large ones."""
    part = np.sqrt(np.clip(weights, 0, 1))[..., None]
    result: NDArray[np.uint8] = np.rint(NONE + (ALL - NONE) * part).astype(np.uint8)
    return result


def _cell(count: int) -> int:
    """A cell's side: words stay legible as long as the sheet stays of a size that opens."""
    return 30 if count <= 24 else 22 if count <= 48 else 18 if count <= 200 else 4


def _matrix(weights: NDArray[np.float64], rows: list[str], columns: list[str], title: str) -> Sheet:
    cell = _cell(max(len(rows), len(columns)))
    size = max(11, round(0.6 * cell))
    letters = Lettering([title, *rows, *columns])
    names = [letters.fit(word, size, LONGEST, size)[0] for word in rows]
    heads = [letters.fit(word, size, LONGEST, size)[0] for word in columns]
    every = -(-13 // cell)  # where cells are smaller than letters, not every word is written
    left = MARGIN + LABEL_GAP + _longest(names, size, letters)
    width, height = cell * len(columns), cell * len(rows)
    # Column words rise at 45°: the last one reaches this far up and to the right.
    rise = round(0.71 * (_longest(heads, size, letters) + size)) + LABEL_GAP
    sheet_width = max(left + width + rise, 420) + MARGIN
    texts = _title(title, letters, sheet_width - 2 * MARGIN)
    top = MARGIN + TITLE_LINE * len(texts) + (12 if texts else 0) + rise
    for i in range(0, len(rows), every):
        y = top + (i + 0.5) * cell + 0.35 * size
        texts.append(Text(left - LABEL_GAP, y, names[i], size, INK, "end"))
    for j in range(0, len(columns), every):
        x = left + (j + 0.5) * cell + 0.25 * size
        texts.append(Text(x, top - LABEL_GAP, heads[j], size, INK, "start", 45))
    cells = np.kron(colours_of(weights), np.ones((cell, cell, 1), np.uint8))
    return Sheet(
        width=sheet_width,
        height=top + height + MARGIN,
        title=title or "alignment",
        pictures=(Picture(left, top, cells, exact=True),),
        lines=_grid(left, top, width, height, cell) if cell >= 18 else (),
        texts=tuple(texts),
    )


def _title(title: str, letters: Lettering, width: int) -> list[Text]:
    lines = enumerate(letters.wrap(title, TITLE, width))
    return [Text(MARGIN, MARGIN + TITLE + i * TITLE_LINE, line, TITLE) for i, line in lines]


def _grid(left: int, top: int, width: int, height: int, cell: int) -> tuple[Line, ...]:
    white = (255, 255, 255)
    across = [Line(left, y, left + width, y, white) for y in range(top, top + height + 1, cell)]
    down = [Line(x, top, x, top + height, white) for x in range(left, left + width + 1, cell)]
    return (*across, *down)


def _over_time(
    weights: NDArray[np.float64], rows: list[str], times: tuple[float, ...], title: str
) -> Sheet:
    """A band per word: dark when the model looked, by seconds; each band scaled to its peak."""
    band, gap = (34, 6) if len(rows) <= 24 else (16, 2)
    size = 18 if band > 20 else 13
    letters = Lettering([title, *rows])
    names = [letters.fit(word, size, LONGEST, size)[0] for word in rows]
    left = MARGIN + LABEL_GAP + _longest(names, size, letters)
    texts = _title(title, letters, left + TIME_WIDTH - MARGIN)
    top = MARGIN + TITLE_LINE * len(texts) + (14 if texts else 0)
    height = len(rows) * (band + gap)
    peaks = np.maximum(weights.max(axis=1, keepdims=True), 1e-9)
    strips = Image.fromarray(colours_of(weights / peaks)).resize(
        (TIME_WIDTH, len(rows)), Image.Resampling.BILINEAR, box=(0, 0, len(times), len(rows))
    )
    pictures = []
    for i, strip in enumerate(np.asarray(strips)):
        y = top + i * (band + gap)
        pictures.append(Picture(left, y, np.tile(strip[None], (band, 1, 1)), exact=True))
        texts.append(Text(left - LABEL_GAP, y + band / 2 + 0.35 * size, names[i], size, INK, "end"))
    ticks, marks = _seconds(times, left, top, height)
    return Sheet(
        width=left + TIME_WIDTH + MARGIN,
        height=top + height + 40 + MARGIN,
        title=title or "alignment over time",
        pictures=tuple(pictures),
        lines=ticks,
        texts=(*texts, *marks),
    )


def _seconds(
    times: tuple[float, ...], left: int, top: int, height: int
) -> tuple[tuple[Line, ...], list[Text]]:
    """Tick marks under the bands at round times; frame i is drawn around times[i]."""
    first, last = times[0], times[-1]
    step = (last - first) / max(1, len(times) - 1) or 1.0
    start, span = first - step / 2, step * len(times)
    lines, texts = [], []
    for second in ticks(start, start + span):
        x = left + TIME_WIDTH * (second - start) / span
        if left <= x <= left + TIME_WIDTH:
            lines.append(Line(x, top + height, x, top + height + 7, RULE))
            texts.append(Text(x, top + height + 26, f"{second:g} s", 15, FAINT, anchor="middle"))
    return tuple(lines), texts


def _longest(words: list[str], size: int, letters: Lettering) -> int:
    return round(max(letters.width(word, size) for word in words))
