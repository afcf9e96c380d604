"""A sheet of pictures, each with its caption and the one underlined word that its map belongs to
(Xu et al. figures 3 and 5)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from sightline.data.vocabulary import function_words
from sightline.errors import UserError
from sightline.figures.attention import GAP, MARGIN, panel_size
from sightline.figures.files import suffix_of
from sightline.figures.fonts import Lettering, clean
from sightline.figures.looks import (
    Look,
    PictureSource,
    light,
    looks_of,
    read_picture,
    resized,
    smooth_maps,
)
from sightline.figures.sheet import INK, SUFFIXES, Line, Picture, Sheet, Text
from sightline.types import Description

SIDE = 210  # of a square panel; others have the same area
SIZE, LINE = 17, 25  # of the caption's letters, and the height of a line


def draw_underlined(
    items: Sequence[tuple[PictureSource, Description, str | None]],
    path: Path | str,
    *,
    columns: int = 2,
) -> None:
    """Draw each picture, next to it where one word looked, and below the caption with that word
    underlined: .png, .jpg, .svg or .pdf. A word that is None is `sharpest_word`.
    """
    suffix_of(path, SUFFIXES)
    if not items:
        raise UserError("there is no description to draw")
    cells = [_cell(*item) for item in items]
    _lay_out(cells, min(columns, len(items))).save(path)


def sharpest_word(looks: Sequence[Look]) -> int:
    """The number of the content word whose attention is the most concentrated."""
    content = [n for n, look in enumerate(looks) if look.word not in function_words()]
    return min(content or range(len(looks)), key=lambda n: _entropy(looks[n].weights))


def _entropy(weights: np.ndarray) -> float:
    kept = weights[weights > 0]
    return float(-(kept * np.log(kept)).sum())


class _Cell:
    """One picture with its map, and the words of its caption."""

    def __init__(self, pictures: list[np.ndarray], words: list[str], underlined: int) -> None:
        self.pictures = pictures
        self.words = words
        self.underlined = underlined
        self.width = 2 * pictures[0].shape[1] + 4
        self.height = pictures[0].shape[0]


def _cell(picture: PictureSource, description: Description, word: str | None) -> _Cell:
    looks = looks_of(description)
    layout = description.layout
    if not looks or layout is None:
        raise UserError("a description without words has no word to underline")
    words = [clean(look.word) for look in looks]
    if word is None:
        number = sharpest_word(looks)
    elif word in words:
        number = words.index(word)
    else:
        raise UserError(f"{description.text!r} has no word {word!r}")
    pixels = read_picture(picture)
    small = resized(pixels, *panel_size(pixels.shape[1], pixels.shape[0], SIDE))
    lightness = smooth_maps(looks[number].weights[None], layout)[0]
    return _Cell([small, light(small, lightness, layout.box)], words, number)


def _lay_out(cells: list[_Cell], columns: int) -> Sheet:
    width = max(cell.width for cell in cells)
    letters = Lettering(word for cell in cells for word in cell.words)
    pictures, texts, lines = [], [], []
    y = MARGIN
    for at in range(0, len(cells), columns):
        row = cells[at : at + columns]
        top = max(cell.height for cell in row)
        below = 0
        for number, cell in enumerate(row):
            left = MARGIN + number * (width + 2 * GAP)
            for side, pixels in enumerate(cell.pictures):
                x = left + side * (pixels.shape[1] + 4)
                pictures.append(Picture(x, y + top - cell.height, pixels))
            placed = _placed(cell, letters, cell.width)
            for word, x, line, ends in placed:
                base = y + top + (line + 1) * LINE
                texts.append(Text(left + x, base, cell.words[word], SIZE))
                if word == cell.underlined:
                    for drop in (4, 5):
                        lines.append(Line(left + x, base + drop, left + ends, base + drop, INK))
            below = max(below, placed[-1][2] + 1)
        y += top + below * LINE + 2 * GAP
    return Sheet(
        width=math.ceil(columns * (width + 2 * GAP) - 2 * GAP + 2 * MARGIN),
        height=y - 2 * GAP + MARGIN,
        title=" · ".join(" ".join(cell.words) for cell in cells),
        pictures=tuple(pictures),
        lines=tuple(lines),
        texts=tuple(texts),
    )


def _placed(cell: _Cell, letters: Lettering, width: float) -> list[tuple[int, float, int, float]]:
    """Of each word its number, where it begins, its line and where it ends."""
    space = letters.width("n n", SIZE) - 2 * letters.width("n", SIZE)
    found, x, line = [], 0.0, 0
    for number, word in enumerate(cell.words):
        long = letters.width(word, SIZE)
        if x and x + long > width:
            x, line = 0.0, line + 1
        found.append((number, x, line, x + long))
        x += long + space
    return found
