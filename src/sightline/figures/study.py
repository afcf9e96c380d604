"""What a study found: its values by trial with the best so far, and which keys mattered."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sightline.figures.chart import BLUE, ORANGE, Curve, chart
from sightline.figures.sheet import FAINT, INK, Line, Polyline, Sheet, Text

WIDTH, ROW, SIZE, LEFT = 1120, 44, 19, 420  # of the bars; LEFT of them are the keys


def history(values: Sequence[tuple[int, float]], label: str, *, higher: bool) -> Sheet:
    """Trials that were finished, by number, and the best of each and all before it."""
    points = [(float(number), value) for number, value in values]
    best = [points[0]]
    for number, value in points[1:]:
        last = best[-1][1]
        best.append((number, max(last, value) if higher else min(last, value)))
    curves = [
        Curve(best, "the best so far", ORANGE, dots=best[-1:]),
        Curve(points, "each trial", BLUE, thick=False, dots=points),
    ]
    return chart(curves, x_label="trial", y_label=label)


def importance(shares: Mapping[str, float]) -> Sheet:
    """A bar for each key, the share of what was found that it explains."""
    most = max(shares.values()) or 1.0
    texts, bars = [], []
    for row, (key, share) in enumerate(sorted(shares.items(), key=lambda item: -item[1])):
        y = (row + 1) * ROW
        end = LEFT + (WIDTH - LEFT - 5 * SIZE) * share / most
        texts.append(Text(LEFT - SIZE, y + 0.33 * SIZE, key, SIZE, INK, "end"))
        texts.append(Text(end + 0.5 * SIZE, y + 0.33 * SIZE, f"{share:.2f}", SIZE, FAINT))
        bars.append(Polyline(((LEFT, y), (end, y)), BLUE, 0.9 * SIZE))
    height = (len(shares) + 1) * ROW
    rule = Line(LEFT, ROW / 2, LEFT, height - ROW / 2)
    title = "how much each key mattered"
    return Sheet(WIDTH, height, title, lines=(rule,), polylines=tuple(bars), texts=tuple(texts))
