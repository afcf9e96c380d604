"""Learning curves of runs, by minutes of training, steps or epochs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sightline.errors import UserError
from sightline.figures.chart import COLOURS, Curve, chart, is_number
from sightline.figures.files import suffix_of
from sightline.figures.sheet import SUFFIXES
from sightline.metrics import info

AXES = {"minutes": "minutes of training", "step": "step", "epoch": "epoch"}


def draw_curves(
    runs: Sequence[Path], path: Path | str, metric: str = "loss", by: str = "minutes"
) -> None:
    """Held-out `metric` (thick, its best marked) and training (thin) of runs."""
    suffix_of(path, SUFFIXES)
    if by not in AXES:
        raise UserError(f"curves are drawn by {', '.join(AXES)}, not by {by!r}")
    curves = [
        curve for number, run in enumerate(runs) for curve in _curves(run, metric, by, number)
    ]
    label = f"{info(metric).label}: held out (thick), training (thin)"
    chart(curves, x_label=AXES[by], y_label=label).save(path)


def _curves(run: Path, metric: str, by: str, number: int) -> list[Curve]:
    from sightline.training.journal import read_log

    log = run / "log.jsonl"
    if not log.is_file():
        raise UserError(f"{run} has no log.jsonl; give the folder of a run")
    events = [event for event in read_log(log) if is_number(event.get(metric))]
    held_out = [event for event in events if event["kind"] == "evaluation"]
    if not held_out:
        raise UserError(f"{log} has no evaluation of {metric} yet")
    if by == "epoch" and not all(is_number(event.get(by)) for event in events):
        raise UserError(f"{log} was written before epochs were noted; draw it by step")
    minutes = held_out[-1]["training_seconds"] / 60 / held_out[-1]["step"]  # of a step

    def place(event: dict[str, Any]) -> float:
        if by != "minutes":
            return float(event[by])
        seconds = event.get("training_seconds")
        return float(event["step"] * minutes if seconds is None else seconds / 60)

    about, colour = info(metric), COLOURS[number % len(COLOURS)]
    points = [(place(event), event[metric] * about.scale) for event in held_out]
    best = (max if about.higher_is_better else min)(points, key=lambda point: point[1])
    name = f"{run.name}: {about.show(best[1] / about.scale)}"
    training = [(place(e), e[metric] * about.scale) for e in events if e["kind"] == "train"]
    thin = [Curve(training, colour=colour, thick=False)] if training else []
    return [*thin, Curve(points, name, colour, dots=[best])]
