"""The scores of a report: ours with their intervals, alongside the published ones."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from typing import Any

from sightline.metrics import info

WIDTH, HEIGHT = 320, 26  # of the drawing in each row

_LEGEND = "dot and bar: this model; strokes: published"


def scores_section(metrics: Mapping[str, Any], paper: Mapping[str, Mapping[str, float]]) -> str:
    """A row per metric: our value, its interval, the published values, and all of them drawn."""
    corpus: Mapping[str, float] = metrics.get("corpus", {})
    if not corpus:
        return ""
    intervals: Mapping[str, Any] = metrics.get("intervals", {})
    heads = ["Metric", "This model", "95 % interval", *paper]
    head = "".join(f'<th scope="col">{html.escape(name)}</th>' for name in heads)
    reach = _reach(corpus, intervals, paper)
    published = {key: {name: row.get(key) for name, row in paper.items()} for key in corpus}
    body = "".join(
        _row(key, value, intervals.get(key), published[key], reach) for key, value in corpus.items()
    )
    notes = "".join(f"<p>{html.escape(note)}</p>" for note in metrics.get("notes", ()))
    return (
        '<section aria-labelledby="scores"><h2 id="scores">Scores</h2>'
        '<div class="scroll" tabindex="0" role="region" aria-labelledby="scores"><table>'
        f'<thead><tr>{head}<th scope="col"><span class="quiet">{_LEGEND}</span>'
        f"</th></tr></thead><tbody>{body}</tbody></table></div>{notes}"
        f"{_signatures(metrics.get('signatures', {}))}</section>"
    )


def _reach(
    corpus: Mapping[str, float],
    intervals: Mapping[str, Any],
    paper: Mapping[str, Mapping[str, float]],
) -> float:
    """The right end of the axis that all rows share: the greatest number that is shown."""
    numbers = [value * info(key).scale for key, value in corpus.items()]
    numbers += [bounds[1] * info(key).scale for key, bounds in intervals.items()]
    numbers += [number for row in paper.values() for key, number in row.items() if key in corpus]
    return max((number for number in numbers if math.isfinite(number)), default=0.0) or 1.0


def _row(
    key: str, value: float, interval: Any, published: Mapping[str, float | None], reach: float
) -> str:
    about = info(key)
    scale = about.scale
    between = " – ".join(map(about.show, interval)) if interval else ""
    cells = [
        f'<td class="ours">{about.show(value)}</td>',
        f'<td class="quiet">{between}</td>',
        *(f"<td>{_printed(number)}</td>" for number in published.values()),
    ]
    others = {name: number for name, number in published.items() if number is not None}
    bounds = [bound * scale for bound in interval] if interval else [value * scale] * 2
    drawing = _drawing(value * scale, bounds[0], bounds[1], others, reach)
    name = html.escape(about.label)
    return f'<tr><th scope="row">{name}</th>{"".join(cells)}<td class="drawing">{drawing}</td></tr>'


def _printed(number: float | None) -> str:
    """As the paper has it, with at least one decimal."""
    return "" if number is None else max(f"{number:.1f}", f"{round(number, 2):g}", key=len)


def _drawing(
    value: float, low: float, high: float, others: Mapping[str, float], reach: float
) -> str:
    """The interval as a bar, our value as a dot in it, published values as upright strokes."""
    if not all(map(math.isfinite, (value, low, high))):
        return ""

    def x(number: float) -> float:
        return 6 + max(0.0, number) / reach * (WIDTH - 12)

    strokes = "".join(
        f'<line class="other" x1="{x(number):.1f}" x2="{x(number):.1f}" y1="5" y2="{HEIGHT - 5}">'
        f"<title>{html.escape(name)}: {number:g}</title></line>"
        for name, number in others.items()
    )
    width = max(1.0, x(high) - x(low))
    return (
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
        f'aria-hidden="true"><line class="axis" x1="6" x2="{WIDTH - 6}" y1="{HEIGHT / 2}" '
        f'y2="{HEIGHT / 2}"/><rect class="interval" x="{x(low):.1f}" y="{HEIGHT / 2 - 6}" '
        f'width="{width:.1f}" height="12" rx="2"/>{strokes}'
        f'<circle class="dot" cx="{x(value):.1f}" cy="{HEIGHT / 2}" r="2.5"/></svg>'
    )


def _signatures(signatures: Mapping[str, str]) -> str:
    if not signatures:
        return ""
    by_text: dict[str, list[str]] = {}
    for key, text in signatures.items():
        by_text.setdefault(text, []).append(info(key).label)
    rows = "".join(
        f"<dt>{html.escape(', '.join(keys))}</dt><dd><code>{html.escape(text)}</code></dd>"
        for text, keys in by_text.items()
    )
    return (
        f'<details><summary>How they were computed</summary><dl class="how">{rows}</dl></details>'
    )
