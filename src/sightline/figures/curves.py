"""Learning curves of runs, by minutes of training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from sightline.errors import UserError
from sightline.figures.chart import COLOURS, Curve, chart, is_number
from sightline.figures.files import suffix_of
from sightline.figures.sheet import SUFFIXES
from sightline.metrics import info


def draw_curves(runs: Sequence[Path], path: Path | str, metric: str = "loss") -> None:
    """Held-out `metric` (thick, its best marked) and training (thin) of runs, by minutes."""
    suffix_of(path, SUFFIXES)
    curves = [curve for number, run in enumerate(runs) for curve in _curves(run, metric, number)]
    label = f"{info(metric).label}: held out (thick), training (thin)"
    chart(curves, x_label="minutes of training", y_label=label).save(path)


def _curves(run: Path, metric: str, number: int) -> list[Curve]:
    from sightline.training.journal import read_log

    log = run / "log.jsonl"
    if not log.is_file():
        raise UserError(f"{run} has no log.jsonl; give the folder of a run")
    events = [event for event in read_log(log) if is_number(event.get(metric))]
    held_out = [event for event in events if event["kind"] == "evaluation"]
    if not held_out:
        raise UserError(f"{log} has no evaluation of {metric} yet")
    about, colour = info(metric), COLOURS[number % len(COLOURS)]
    points = [(e["training_seconds"] / 60, e[metric] * about.scale) for e in held_out]
    best = (max if about.higher_is_better else min)(points, key=lambda point: point[1])
    name = f"{run.name}: {about.show(best[1] / about.scale)}"
    minutes = points[-1][0] / held_out[-1]["step"]  # of a step
    training = [
        (e["step"] * minutes, e[metric] * about.scale) for e in events if e["kind"] == "train"
    ]
    thin = [Curve(training, colour=colour, thick=False)] if training else []
    return [*thin, Curve(points, name, colour, dots=[best])]
