"""Attention over a picture, one panel per word (Xu et al. §5.4, figures 2 to 5)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sightline.errors import UserError
from sightline.figures.files import suffix_of
from sightline.figures.fonts import Lettering, clean
from sightline.figures.looks import PictureSource, lit_panels, read_picture, resized, tags_of
from sightline.figures.sheet import FAINT, SUFFIXES, Picture, Sheet, Text
from sightline.types import Description

PANEL = 232  # the side of a square panel; others have the same area
MARGIN, GAP = 36, 14
WORD, WORD_LINE = 20, 34  # the size of a word above its panel, and the height it takes
TITLE, TITLE_LINE = 30, 42
LABEL, LABEL_LINE = 17, 30
ASPECT = 1.7  # what a sheet's width should be of its height
SLIMMEST = 1 / 4  # a panel's least side of its greatest; slimmer pictures are widened


@dataclass(frozen=True)
class _Section:
    """The panels of one description: (word, pixels), the picture itself first, without a word."""

    label: str
    caption: str
    tags: str
    panels: tuple[tuple[str, NDArray[np.uint8]], ...]


def draw_attention(
    picture: PictureSource,
    description: Description,
    path: Path | str,
    *,
    panel: int = PANEL,
) -> None:
    """Draw where each word looked, a panel per word after the picture itself: .png, .jpg or .svg.

    Above each panel stand the word and its probability. `panel` is its side in pixels.
    """
    compare_attention(picture, {"": description}, path, panel=panel)


def compare_attention(
    picture: PictureSource,
    descriptions: Mapping[str, Description],
    path: Path | str,
    *,
    panel: int = PANEL,
) -> None:
    """Draw descriptions of one picture, by the name of their system, one under the other."""
    suffix_of(path, SUFFIXES)  # before the work is done
    if not descriptions:
        raise UserError("there is no description to draw")
    if panel < 16:
        raise UserError(f"a panel of {panel} pixels is too small; give at least 16")
    pixels = read_picture(picture)
    width, height = panel_size(pixels.shape[1], pixels.shape[0], panel)
    small = resized(pixels, width, height)
    sections = [
        _Section(
            clean(label),
            clean(each.text),
            clean(tags_of(each)),
            (("", small), *((look.printed, lit) for look, lit in lit_panels(small, each))),
        )
        for label, each in descriptions.items()
    ]
    _lay_out(sections, width, height).save(path)


def panel_size(width: int, height: int, side: int) -> tuple[int, int]:
    """The picture's proportions with the area of side × side."""
    aspect = min(1 / SLIMMEST, max(SLIMMEST, width / height))
    return round(side * math.sqrt(aspect)), round(side / math.sqrt(aspect))


def _lay_out(sections: list[_Section], width: int, height: int) -> Sheet:
    """Panels in rows, each under its word; each section begins a new row."""
    columns = _columns([len(section.panels) for section in sections], width, height)
    inner = columns * (width + GAP) - GAP
    letters = Lettering(text for s in sections for text in (s.label, s.caption, s.tags))
    pictures, texts = [], []
    y = MARGIN
    for number, section in enumerate(sections):
        y += LABEL_LINE if number else 0  # air between sections
        if section.label:
            texts.append(Text(MARGIN, y + LABEL, section.label, LABEL, FAINT))
            y += LABEL_LINE
        for line in letters.wrap(section.caption, TITLE, inner):
            shown, size = letters.fit(line, TITLE, inner, WORD)
            texts.append(Text(MARGIN, y + TITLE, shown, size))
            y += TITLE_LINE
        if section.tags:
            shown, size = letters.fit(f"tags: {section.tags}", LABEL, inner, 11)
            texts.append(Text(MARGIN, y + LABEL, shown, size, FAINT))
            y += LABEL_LINE
        y += 6
        for i, (word, pixels) in enumerate(section.panels):
            x = MARGIN + (i % columns) * (width + GAP)
            top = y + (i // columns) * (height + WORD_LINE + GAP)
            shown, size = letters.fit(word, WORD, width, 13)
            texts.append(Text(x + width / 2, top + WORD + 4, shown, size, anchor="middle"))
            pictures.append(Picture(x, top + WORD_LINE, pixels))
        y += math.ceil(len(section.panels) / columns) * (height + WORD_LINE + GAP) - GAP
    title = " · ".join(section.caption for section in sections)
    return Sheet(
        width=inner + 2 * MARGIN,
        height=y + MARGIN,
        title=title,
        pictures=tuple(pictures),
        texts=tuple(texts),
    )


def _columns(counts: list[int], width: int, height: int) -> int:
    """How many panels a row takes: a sheet of good proportions with few empty places."""

    def badness(columns: int) -> float:
        rows = sum(math.ceil(count / columns) for count in counts)
        aspect = columns * (width + GAP) / (rows * (height + WORD_LINE + GAP))
        # a last row of one panel looks lost, one with one place empty does not
        empty = [(-count % columns) / columns for count in counts]
        return math.log(aspect / ASPECT) ** 2 + sum(part**2 for part in empty) / len(counts)

    return min(range(1, max(counts) + 1), key=badness)
