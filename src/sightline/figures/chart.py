"""Line charts: learning curves and quality by length, as a sheet for files and for pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeGuard

from sightline.figures.fonts import Lettering, clean
from sightline.figures.sheet import FAINT, INK, Colour, Dot, Line, Polyline, Sheet, Text

Point = tuple[float, float]
BLUE, ORANGE, GREEN = (29, 91, 184), (226, 88, 34), (24, 128, 96)
COLOURS: tuple[Colour, ...] = (BLUE, ORANGE, GREEN, (150, 70, 160), (176, 132, 20), (84, 88, 100))
WIDTH, HEIGHT, SIZE = 1120, 630, 19  # of a chart that is a file; SIZE of its letters
LEGEND_LINE = 1.6  # of a line of the legend, in letter sizes


@dataclass(frozen=True)
class Curve:
    """Points by x, those of `dots` marked; a `name` is in the legend."""

    points: Sequence[Point]
    name: str = ""
    colour: Colour = BLUE
    thick: bool = True
    dots: Sequence[Point] = ()


def chart(
    curves: Sequence[Curve],
    *,
    width: int = WIDTH,
    height: int = HEIGHT,
    size: int = SIZE,
    x_label: str = "",
    y_label: str = "",
    from_zero: bool = False,
) -> Sheet:
    """Curves over a grid of round numbers; values beyond the grid are drawn at its edge."""
    low, high = _range(curves)
    y_ticks = ticks(0.0 if from_zero else low, high)
    low, high = y_ticks[0], y_ticks[-1]
    last = max(x for curve in curves for x, _ in curve.points) or 1.0
    named = [curve for curve in curves if curve.name]
    legend = round(LEGEND_LINE * size * (len(named) + bool(y_label)))
    left, right, top = 4 * size - 2, round(1.2 * size), round(1.3 * size) + legend
    bottom = round((4.2 if x_label else 2.5) * size)

    def place(x: float, y: float) -> Point:
        part = (min(max(y, low), high) - low) / (high - low)
        return (
            left + x / last * (width - left - right),
            height - bottom - part * (height - top - bottom),
        )

    texts, dots = _legend(named, clean(y_label), left, size)
    lines = []
    for value in y_ticks:
        y = place(0, value)[1]
        lines.append(Line(left, y, width - right, y))
        texts.append(Text(left - 0.7 * size, y + 0.33 * size, f"{value:g}", size, FAINT, "end"))
    for value in ticks(0, last):
        if value <= last:
            shown = f"{value / 1000:g}k" if last >= 2000 and value else f"{value:g}"
            y = height - bottom + 1.7 * size
            texts.append(Text(place(value, 0)[0], y, shown, size, FAINT, "middle"))
    if x_label:
        middle = (left + width - right) / 2
        texts.append(Text(middle, height - 0.7 * size, x_label, size, FAINT, "middle"))
    return Sheet(
        width=width,
        height=height,
        title=y_label,
        lines=tuple(lines),
        texts=tuple(texts),
        polylines=tuple(
            Polyline(
                tuple(place(*point) for point in curve.points),
                curve.colour if curve.thick else pale(curve.colour),
                (0.17 if curve.thick else 0.1) * size,
            )
            for curve in curves
        ),
        dots=(*dots, *(Dot(*place(*p), 0.33 * size, c.colour) for c in curves for p in c.dots)),
    )


def _legend(
    curves: Sequence[Curve], heading: str, left: int, size: int
) -> tuple[list[Text], list[Dot]]:
    letters = Lettering([clean(curve.name) for curve in curves])
    texts = [Text(left, 1.3 * size, heading, size, INK)] if heading else []
    dots = []
    for number, curve in enumerate(curves, start=len(texts)):
        name, _ = letters.fit(clean(curve.name), size, WIDTH - left - 2 * size, size)
        y = (1.3 + LEGEND_LINE * number) * size
        dots.append(Dot(left + 0.35 * size, y - 0.35 * size, 0.35 * size, curve.colour))
        texts.append(Text(left + 1.1 * size, y, name, size, curve.colour))
    return texts, dots


def pale(colour: Colour) -> Colour:
    red, green, blue = ((part + 255) // 2 for part in colour)
    return red, green, blue


def _range(curves: Sequence[Curve]) -> tuple[float, float]:
    """Of what is drawn; the first tenth of a thin curve is so far off that it would flatten it."""
    values = [
        y
        for curve in curves
        for _, y in curve.points[0 if curve.thick else len(curve.points) // 10 :]
    ]
    return min(values), max(values)


def is_number(value: object) -> TypeGuard[float]:
    """Whether a value of a log can be drawn."""
    return isinstance(value, (int, float)) and math.isfinite(value)


def ticks(low: float, high: float) -> list[float]:
    """Three to six round numbers, the first not above `low` and the last not below `high`."""
    span = high - low or abs(high) * 0.1 or 1.0
    step = 10.0 ** math.floor(math.log10(span / 4))
    step *= next(factor for factor in (1, 2, 2.5, 5, 10) if span / (step * factor) <= 4)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    return [round(number * step, 12) for number in range(first, last + 1)]
