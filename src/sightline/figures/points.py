"""Points and what was pointed at: the outline as it grows, a panel per step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sightline.errors import UserError
from sightline.figures.animation import SUFFIXES as ANIMATED
from sightline.figures.animation import save_frames
from sightline.figures.chart import BLUE, ORANGE
from sightline.figures.files import suffix_of
from sightline.figures.fonts import Lettering, clean
from sightline.figures.sheet import (
    FAINT,
    INK,
    RULE,
    SUFFIXES,
    Dot,
    Line,
    Polyline,
    Sheet,
    Text,
    to_image,
)
from sightline.types import Description

MARGIN, GAP, TITLE = 36, 26, 22
LARGE, SMALL = 460, 150  # the sides of the whole figure's panel, and of a step's
PER_ROW = 6  # steps
MOST_STEPS = 24  # that get panels of their own
MOST_LABELS = 60  # points that are numbered
HOLD, LAST = 450, 2500  # milliseconds of a frame

Floats = NDArray[np.float64]


def draw_points(description: Description, path: Path | str) -> None:
    """The points with the whole outline, then each step with its weights; .gif, .webp: growing."""
    suffix = suffix_of(path, (*SUFFIXES, *ANIMATED))
    layout, weights = description.layout, description.attention
    if layout is None or weights is None or not layout.coordinates:
        raise UserError("the description has no points to draw")
    places = {label: i for i, label in enumerate(layout.labels)}
    drawing = _Drawing(
        _in_square(np.array(layout.coordinates, np.float64)),
        layout.labels,
        [places[token] for token in description.tokens],
        np.asarray(weights, np.float64),
        group=layout.shape[0] if layout.shape else 0,
        closed=len(layout.coordinates[0]) > 1,
    )
    title = clean(description.text)
    if suffix not in ANIMATED:
        drawing.sheet(title).save(path)
        return
    frames = [to_image(drawing.frame(t, title)) for t in range(len(drawing.found) + 1)]
    times = [HOLD] * (len(frames) - 1) + [LAST]
    save_frames(frames, times, path, suffix)


def _in_square(points: Floats) -> Floats:
    """In [0, 1], in proportion, upwards as on paper; numbers stand side by side at their height."""
    if points.shape[1] == 1:
        span = np.ptp(points) or 1.0
        along = (np.arange(len(points)) + 0.5) / len(points)
        return np.stack([along, 1 - (points[:, 0] - points.min()) / span], axis=1)
    low, high = points.min(0), points.max(0)
    scaled = (points - (low + high) / 2) / (float((high - low).max()) or 1.0) + 0.5
    return np.stack([scaled[:, 0], 1 - scaled[:, 1]], axis=1)


class _Drawing:
    """Panels of one set of points."""

    def __init__(
        self,
        points: Floats,  # (n, 2) in the unit square, y downwards
        labels: Sequence[str],
        found: list[int],
        weights: Floats,  # (T, n)
        *,
        group: int,  # points of each outline; 0: all are one
        closed: bool,
    ) -> None:
        self.points, self.labels, self.found, self.weights = points, labels, found, weights
        self.group, self.closed = group, closed

    def sheet(self, title: str) -> Sheet:
        steps = len(self.found) if len(self.found) <= MOST_STEPS else 0
        columns = min(PER_ROW, steps)
        width = max(LARGE, columns * (SMALL + GAP) - GAP) + 2 * MARGIN
        letters = Lettering([title])
        lines = letters.wrap(title, TITLE, width - 2 * MARGIN)[:4]
        texts = [Text(MARGIN, MARGIN + TITLE + i * 32, line, TITLE) for i, line in enumerate(lines)]
        top = MARGIN + 32 * len(lines) + 14
        panels = [self.panel(MARGIN, top, LARGE, len(self.found))]
        below = top + LARGE + GAP
        for t in range(steps):
            x = MARGIN + (t % PER_ROW) * (SMALL + GAP)
            y = below + (t // PER_ROW) * (SMALL + GAP + 18)
            texts.append(Text(x, y + 14, f"{t + 1}: {self.labels[self.found[t]]}", 14, FAINT))
            panels.append(self.panel(x, y + 20, SMALL, t + 1, t))
        rows = -(-steps // PER_ROW)
        return Sheet(
            width=width,
            height=below + rows * (SMALL + GAP + 18) - (GAP if rows else 0) + MARGIN,
            title=title,
            lines=tuple(each for panel in panels for each in panel.lines),
            polylines=tuple(each for panel in panels for each in panel.polylines),
            dots=tuple(each for panel in panels for each in panel.dots),
            texts=(*texts, *(each for panel in panels for each in panel.texts)),
        )

    def frame(self, count: int, title: str) -> Sheet:
        """After `count` steps, for an animation."""
        step = count - 1 if 0 < count < len(self.found) else None
        panel = self.panel(MARGIN, MARGIN, LARGE, count, step)
        side = LARGE + 2 * MARGIN
        return replace(panel, width=side, height=side, title=title)

    def panel(self, left: int, top: int, side: int, count: int, step: int | None = None) -> Sheet:
        """The first `count` points found; with `step`, dots by how likely each was then."""
        size = 0.012 * side + 1.5
        inner = side - 6 * size
        at = np.array([left, top]) + 3 * size + inner * self.points  # (n, 2)
        found = self.found[:count]
        dots = []
        for i, (x, y) in enumerate(at):
            dots.append(Dot(x, y, size, INK if i in found else FAINT))
            if step is not None:
                share = float(self.weights[step, i])
                dots += [Dot(x, y, 2.4 * size * share**0.5, ORANGE)] if share > 0.01 else []
        large = side == LARGE and len(at) <= MOST_LABELS
        texts = [
            Text(x + size + 3, y - size - 1, clean(label), 14, INK)
            for (x, y), label in zip(at, self.labels if large else (), strict=large)
        ]
        right, bottom = left + side, top + side
        corners = [(left, top), (right, top), (right, bottom), (left, bottom), (left, top)]
        frame = [Line(*a, *b, RULE) for a, b in pairwise(corners)]
        curves = tuple(
            Polyline(tuple(map(tuple, at[o])), BLUE, 0.5 * size) for o in self._outlines(found)
        )
        return Sheet(0, 0, "", (), tuple(frame), curves, tuple(dots), tuple(texts))

    def _outlines(self, found: list[int]) -> list[list[int]]:
        """The lines through what was found; those that are whole are closed."""
        size = self.group or len(self.found)
        parts = [found[at : at + size] for at in range(0, len(found), max(1, size))]
        return [
            part + part[:1] if self.closed and len(part) == size and size > 1 else part
            for part in parts
            if len(part) > 1
        ]
