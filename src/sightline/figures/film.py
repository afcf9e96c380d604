"""When each word looked: frames of a clip, under each a bar for every content word (Cho et al.
figure 7)."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from sightline.data.vocabulary import function_words
from sightline.errors import UserError
from sightline.figures.animation import SUFFIXES as ANIMATED
from sightline.figures.animation import Page, save_frames
from sightline.figures.files import suffix_of
from sightline.figures.fonts import Lettering
from sightline.figures.looks import Look, looks_of, resized
from sightline.figures.sheet import (
    FAINT,
    INK,
    RULE,
    SUFFIXES,
    Colour,
    Line,
    Picture,
    Polyline,
    Sheet,
    Text,
)  # fmt: skip
from sightline.media.video import frames_at
from sightline.types import Description

MARGIN, GAP = 36, 8
CELL, ACROSS = 132, 8  # a frame's width, and how many stand side by side
BARS, FOOT = 84, 40  # the height of a full bar, and of the frame's time with what is between rows
TITLE = 28
# dark enough on white, and told apart by most colour-blind people (after Okabe and Ito)
COLOURS: tuple[Colour, ...] = (
    (0, 114, 178), (213, 94, 0), (0, 158, 115), (204, 121, 167), (150, 110, 0), (86, 180, 233),
    (120, 70, 160), (90, 90, 90),
)  # fmt: skip


def draw_film(
    description: Description, path: Path | str, source: Any, *, reference: str = ""
) -> None:
    """Draw the frames that a clip's description looked at, a bar for each content word.

    A full bar is the word's greatest weight of any frame or window of motion; `reference` is
    another description, written below.
    """
    suffix_of(path, SUFFIXES)
    looks, layout = looks_of(description), description.layout
    assert layout is not None
    if not looks:
        raise UserError("the description is empty: there is no word to draw")
    is_frame = np.array([label != "motion" for label in layout.labels or layout.times])
    times = np.array(layout.times)
    coloured = _coloured(looks)
    weights = np.array([look.weights for look in looks])[list(coloured)]  # (words, M)
    weights = weights / np.maximum(weights.max(axis=1, keepdims=True), 1e-9)
    pixels = frames_at(source, times[is_frame].tolist(), CELL)
    height = max(20, min(3 * CELL, round(CELL * pixels[0].shape[0] / pixels[0].shape[1])))
    groups: list[tuple[str, Any, Any, Any]] = [("", times[is_frame], weights[:, is_frame], pixels)]
    if not is_frame.all():
        groups.append(("motion", times[~is_frame], weights[:, ~is_frame], None))
    sheet = _Drawing(list(coloured.values()), height)
    top = sheet.caption([look.word for look in looks], coloured)
    for name, when, some, frames in groups:
        for at in range(0, len(when), ACROSS):
            part = slice(at, at + ACROSS)
            top = sheet.row(top, name, when[part], some[:, part], frames and frames[part])
    if reference:
        sheet.texts.append(Text(MARGIN, top + 18, reference, 18, FAINT))
        top += 34
    Sheet(
        2 * MARGIN + ACROSS * CELL + (ACROSS - 1) * GAP, top + MARGIN - GAP, description.text,
        tuple(sheet.pictures), tuple(sheet.lines), tuple(sheet.bars), texts=tuple(sheet.texts),
    ).save(path)  # fmt: skip


def animate_film(
    description: Description, path: Path | str, source: Any, *, side: int = 360
) -> None:
    """The frames that a clip's description looked at, one after the other as in the film: the
    words that looked there most are bright (.gif, .webp)."""
    suffix = suffix_of(path, ANIMATED)
    looks, layout = looks_of(description), description.layout
    assert layout is not None
    is_frame = np.array([label != "motion" for label in layout.labels or layout.times])
    times = np.array(layout.times)[is_frame]
    weights = np.array([look.weights for look in looks])[:, is_frame]  # (words, L)
    light = weights / np.maximum(weights.max(axis=1, keepdims=True), 2 / len(times))
    pixels = frames_at(source, times.tolist(), side)
    height, width = pixels[0].shape[:2]
    scale = side / max(height, width)
    width, height = max(24, round(scale * width)), max(24, round(scale * height))
    page = Page([look.word for look in looks], width, height)
    shown = [
        page.lit(resized(frame, width, height), light[:, i].tolist())
        for i, frame in enumerate(pixels)
    ]
    gaps = np.append(np.diff(times), [1.5]) * 1000
    save_frames(shown, gaps.clip(100, 2000).round().astype(int).tolist(), path, suffix)


def _coloured(looks: list[Look]) -> dict[int, Colour]:
    """The content words, by their places; all words where there is none."""
    common = function_words()
    places = [i for i, look in enumerate(looks) if look.word.lower() not in common]
    return {
        place: COLOURS[number % len(COLOURS)]
        for number, place in enumerate(places or range(len(looks)))
    }


class _Drawing:
    """Collects what is on the sheet, from top to bottom."""

    def __init__(self, colours: list[Colour], height: int) -> None:
        self.colours, self.height = colours, height
        self.pictures: list[Picture] = []
        self.lines: list[Line] = []
        self.bars: list[Polyline] = []
        self.texts: list[Text] = []

    def caption(self, words: list[str], coloured: dict[int, Colour]) -> int:
        """The words in their colours; gives where what follows begins."""
        letters = Lettering(words)
        x, y, right = float(MARGIN), MARGIN + TITLE, MARGIN + ACROSS * (CELL + GAP)
        for place, word in enumerate(words):
            width = letters.width(word, TITLE)
            if x + width > right and x > MARGIN:
                x, y = float(MARGIN), y + round(1.4 * TITLE)
            self.texts.append(Text(x, y, word, TITLE, coloured.get(place, INK)))
            x += width + letters.width(" ", TITLE)
        return y + TITLE

    def row(self, top: int, name: str, times: Any, weights: Any, frames: Any) -> int:
        """Frames (or, of motion, none), their bars and times; gives where the next row begins."""
        height = 0 if frames is None else self.height
        floor = top + height + GAP + BARS
        thick = min(14, math.floor((CELL - GAP) / len(self.colours)) - 1)
        for i, time in enumerate(times):
            x = MARGIN + i * (CELL + GAP)
            if frames is not None:
                small = Image.fromarray(frames[i]).resize((CELL, height), Image.Resampling.LANCZOS)
                self.pictures.append(Picture(x, top, np.asarray(small)))
            first = x + (CELL - (thick + 1) * len(self.colours)) / 2
            for j, colour in enumerate(self.colours):
                middle, peak = first + (thick + 1) * j + thick / 2, floor - BARS * weights[j, i]
                if weights[j, i] > 0.005:
                    self.bars.append(Polyline(((middle, floor), (middle, peak)), colour, thick))
            self.lines.append(Line(x, floor, x + CELL, floor, RULE))
            shown = f"{name} {time:.1f} s".strip()
            self.texts.append(Text(x + CELL / 2, floor + 20, shown, 14, FAINT, "middle"))
        return floor + FOOT
