"""Learning curves of runs, by minutes of training."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sightline.errors import UserError
from sightline.figures.files import write
from sightline.metrics.base import lower_is_better


def draw_curves(runs: Sequence[Path], path: Path | str, metric: str = "loss") -> None:
    """Training loss (thin) and held-out `metric` (thick, its best marked) of runs, by minutes."""
    plt = _matplotlib()
    from sightline.training.journal import read_log

    figure, axes = plt.subplots(figsize=(8, 4.5), layout="constrained")
    for number, run in enumerate(runs):
        log = run / "log.jsonl"
        if not log.is_file():
            raise UserError(f"{run} has no log.jsonl; give the folder of a run")
        events = read_log(log)
        held_out = [e for e in events if e["kind"] == "evaluation" and metric in e]
        if not held_out:
            raise UserError(f"{log} has no evaluation of {metric} yet")
        colour = f"C{number}"
        minutes = [e["training_seconds"] / 60 for e in held_out]
        values = [e[metric] for e in held_out]
        best = (min if lower_is_better(metric) else max)(held_out, key=lambda e: e[metric])
        label = f"{run.name}: {best[metric]:.3f}"
        axes.plot(minutes, values, color=colour, linewidth=2, label=label)
        axes.plot(best["training_seconds"] / 60, best[metric], "o", color=colour)
        train = [e for e in events if e["kind"] == "train" and metric in e]
        if train:
            scale = minutes[-1] / held_out[-1]["step"]
            x, y = [e["step"] * scale for e in train], [e[metric] for e in train]
            axes.plot(x, y, color=colour, linewidth=0.7, alpha=0.5)
    axes.set_ylim(*_limits([line.get_ydata() for line in axes.lines]))
    axes.set_xlabel("minutes of training")
    axes.set_ylabel(metric)
    axes.legend(title="held out (thick), training (thin)", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    write(path, lambda file: figure.savefig(file, dpi=140))
    plt.close(figure)


def _limits(curves: list[Sequence[float]]) -> tuple[float, float]:
    """From the lowest point to where the highest curve is after its first tenth."""
    lowest = min(min(curve) for curve in curves)
    highest = max(max(curve[len(curve) // 10 :]) for curve in curves)
    return lowest - 0.05 * (highest - lowest), highest + 0.05 * (highest - lowest)


def _matplotlib() -> Any:
    try:
        import matplotlib
    except ImportError:
        raise UserError("this figure needs matplotlib: pip install 'sightline[train]'") from None
    matplotlib.use("Agg")
    from matplotlib import pyplot

    return pyplot
