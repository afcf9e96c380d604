"""Reliability: how often descriptions of some confidence are right."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sightline.figures.chart import COLOURS, Curve, chart
from sightline.figures.files import suffix_of
from sightline.figures.sheet import FAINT, SUFFIXES
from sightline.metrics.base import Floats
from sightline.metrics.calibration import calibration_error, reliability


def draw_reliability(sets: Mapping[str, tuple[Floats, Floats]], path: Path | str) -> None:
    """A curve per data set (its confidences and outcomes), beside the diagonal of a perfect one."""
    suffix_of(path, SUFFIXES)
    diagonal = Curve([(0.0, 0.0), (1.0, 1.0)], colour=FAINT, thick=False)
    curves = []
    for number, (name, (confidence, right)) in enumerate(sets.items()):
        points = [(x, y) for x, y, _ in reliability(confidence, right).tolist()]
        error = calibration_error(confidence, right)
        label = f"{name}: {len(right):,} items, calibration error {error:.3f}"
        curves.append(Curve(points, label, COLOURS[number % len(COLOURS)], dots=points))
    chart(
        [diagonal, *curves],
        width=900,
        height=900,
        x_label="confidence",
        y_label="share that is right, by tenths of the items",
        from_zero=True,
    ).save(path)
