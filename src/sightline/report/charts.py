"""Training curves as drawings inside the page: one small chart per quantity of the log."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sightline.metrics.base import lower_is_better
from sightline.report.names import label_of, scale_of, shown

WIDTH, HEIGHT = 360, 210
LEFT, RIGHT, TOP, BOTTOM = 46, 14, 16, 30
MOST_POINTS = 240  # of a drawn curve
_NOT_DRAWN = {"kind", "step", "time", "training_seconds", "tokens_per_second"}
_MEANT_FOR_READERS = ("loss", "perplexity", "bleu_4", "meteor", "rouge_l", "cider")

Points = list[tuple[float, float]]


@dataclass(frozen=True)
class _Chart:
    key: str
    training: Points
    held_out: Points


def curves_section(events: Sequence[Mapping[str, Any]]) -> str:
    charts = _charts(events)
    if not charts:
        return ""
    main = [chart for chart in charts if chart.held_out or chart.key == "loss"]
    main.sort(key=lambda chart: _rank(chart.key))
    other = [chart for chart in charts if chart not in main]
    first, more = main[:6], [*main[6:], *other]
    drawn = "".join(map(_draw, first))
    rest = ""
    if more:
        inside = "".join(map(_draw, more))
        rest = (
            f'<details><summary>More curves</summary><div class="charts">{inside}</div></details>'
        )
    return (
        '<section aria-labelledby="training"><h2 id="training">Training</h2>'
        '<p class="quiet legend"><span class="key thick"></span> held out, its best marked '
        '<span class="key thin"></span> training, by steps</p>'
        f'<div class="charts">{drawn}</div>{rest}</section>'
    )


def _rank(key: str) -> tuple[int, str]:
    known = key in _MEANT_FOR_READERS
    return (_MEANT_FOR_READERS.index(key) if known else len(_MEANT_FOR_READERS), key)


def _charts(events: Sequence[Mapping[str, Any]]) -> list[_Chart]:
    keys = dict.fromkeys(key for event in events for key in event if key not in _NOT_DRAWN)
    charts = []
    for key in keys:
        training, held_out = (
            [
                (float(event["step"]), float(event[key]) * scale_of(key))
                for event in events
                if event.get("kind") == kind and "step" in event and _is_number(event.get(key))
            ]
            for kind in ("train", "evaluation")
        )
        if len(training) > 1 or held_out:
            charts.append(_Chart(key, _thin(training), held_out))
    return charts


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and math.isfinite(value)


def _thin(points: Points) -> Points:
    """At most MOST_POINTS: means of neighbours, so that noise does not decide what is seen."""
    size = -(-len(points) // MOST_POINTS)
    if size <= 1:
        return points
    groups = [points[i : i + size] for i in range(0, len(points), size)]
    return [
        (sum(x for x, _ in group) / len(group), sum(y for _, y in group) / len(group))
        for group in groups
    ]


def _draw(chart: _Chart) -> str:
    points = [*chart.training, *chart.held_out]
    # The first tenth of training is so far from the rest that it would flatten it.
    calm = [*chart.training[len(chart.training) // 10 :], *chart.held_out]
    right = max(x for x, _ in points) or 1.0
    ticks = _ticks(min(y for _, y in calm), max(y for _, y in calm))
    low, high = ticks[0], ticks[-1]

    def place(x: float, y: float) -> tuple[float, float]:
        part = (min(max(y, low), high) - low) / (high - low)
        return (
            LEFT + x / right * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - part * (HEIGHT - TOP - BOTTOM),
        )

    inside = "".join(_rule(y, place(0, y)[1]) for y in ticks)
    inside += _steps(right, place)
    for curve, kind in ((chart.training, "thin"), (chart.held_out, "thick")):
        line = " ".join("{:.1f},{:.1f}".format(*place(x, y)) for x, y in curve)
        inside += f'<polyline class="{kind}" points="{line}"/>' if line else ""
    said = label_of(chart.key)
    best = ""
    if chart.held_out:
        choose = min if lower_is_better(chart.key) else max
        step, value = choose(chart.held_out, key=lambda point: point[1])
        x, y = place(step, value)
        best = shown(chart.key, value / scale_of(chart.key))
        inside += f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="4"/>'
        said += f", best {best} at step {step:,.0f}"
    name = html.escape(label_of(chart.key))
    return (
        f'<figure class="chart"><figcaption>{name} <b>{best}</b></figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(said)}">'
        f"{inside}</svg></figure>"
    )


def _rule(value: float, y: float) -> str:
    return (
        f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>'
    )


def _steps(right: float, place: Any) -> str:
    marks = ""
    for value in _ticks(0, right):
        if value <= right:
            x = place(value, 0)[0]
            text = f"{value / 1000:g}k" if right >= 2000 and value else f"{value:g}"
            marks += f'<text x="{x:.1f}" y="{HEIGHT - 8}" text-anchor="middle">{text}</text>'
    return marks


def _ticks(low: float, high: float) -> list[float]:
    """Three to six round numbers, the first not above `low` and the last not below `high`."""
    span = high - low or abs(high) * 0.1 or 1.0
    step = 10.0 ** math.floor(math.log10(span / 4))
    step *= next(factor for factor in (1, 2, 2.5, 5, 10) if span / (step * factor) <= 4)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    last = max(last, first + 1)
    return [round(number * step, 12) for number in range(first, last + 1)]
