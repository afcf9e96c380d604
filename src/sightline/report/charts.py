"""Training curves inside the page: one small chart per quantity of the log."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sightline.figures.chart import BLUE, Curve, Point, chart, is_number, pale
from sightline.figures.sheet import FAINT, RULE, svg_parts
from sightline.metrics import info

WIDTH, HEIGHT = 360, 210
MOST_POINTS = 240  # of a drawn curve
_NOT_DRAWN = {"kind", "step", "time", "epoch", "training_seconds", "tokens_per_second"}
_FIRST = ("loss", "perplexity", "bleu_4", "meteor", "rouge_l", "cider")
# The page has colours for light and for dark.
_COLOURS = {
    BLUE: "var(--accent)",
    pale(BLUE): "var(--pale)",
    FAINT: "var(--quiet)",
    RULE: "var(--rule)",
}


@dataclass(frozen=True)
class _Series:
    key: str
    training: list[Point]
    held_out: list[Point]


def curves_section(events: Sequence[Mapping[str, Any]]) -> str:
    charts = _charts(events)
    if not charts:
        return ""
    main = [each for each in charts if each.held_out or each.key == "loss"]
    main.sort(key=lambda each: _rank(each.key))
    other = [each for each in charts if each not in main]
    drawn, more = ("".join(map(_draw, each)) for each in (main[:6], [*main[6:], *other]))
    inside = f'<div class="charts">{more}</div>'
    rest = f"<details><summary>More curves</summary>{inside}</details>" if more else ""
    return (
        '<section aria-labelledby="training"><h2 id="training">Training</h2>'
        '<p class="quiet legend"><span class="key thick"></span> held out, its best marked '
        '<span class="key thin"></span> training, by steps</p>'
        f'<div class="charts">{drawn}</div>{rest}</section>'
    )


def _rank(key: str) -> tuple[int, str]:
    return (_FIRST.index(key) if key in _FIRST else len(_FIRST), key)


def _charts(events: Sequence[Mapping[str, Any]]) -> list[_Series]:
    keys = dict.fromkeys(key for event in events for key in event if key not in _NOT_DRAWN)
    charts = []
    for key in keys:
        training, held_out = (
            [
                (float(event["step"]), float(event[key]) * info(key).scale)
                for event in events
                if event.get("kind") == kind and "step" in event and is_number(event.get(key))
            ]
            for kind in ("train", "evaluation")
        )
        if len(training) > 1 or held_out:
            charts.append(_Series(key, _thin(training), held_out))
    return charts


def _thin(points: list[Point]) -> list[Point]:
    """At most MOST_POINTS: means of neighbours, so that noise does not decide what is seen."""
    size = -(-len(points) // MOST_POINTS)
    if size <= 1:
        return points
    groups = [points[i : i + size] for i in range(0, len(points), size)]
    return [
        (sum(x for x, _ in group) / len(group), sum(y for _, y in group) / len(group))
        for group in groups
    ]


def _draw(series: _Series) -> str:
    about = info(series.key)
    curves = [Curve(series.training, thick=False)] if series.training else []
    label, best = about.label, ""
    if series.held_out:
        choose = max if about.higher_is_better else min
        step, value = choose(series.held_out, key=lambda point: point[1])
        curves.append(Curve(series.held_out, dots=[(step, value)]))
        best = about.show(value / about.scale)
        label += f", best {best} at step {step:,.0f}"
    inside = "".join(svg_parts(chart(curves, width=WIDTH, height=HEIGHT, size=12), _COLOURS))
    return (
        f'<figure class="chart"><figcaption>{html.escape(about.label)} <b>{best}</b></figcaption>'
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{html.escape(label)}">'
        f"{inside}</svg></figure>"
    )
