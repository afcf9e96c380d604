"""What a training says before it begins: where it computes, how large it is, how long it takes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import torch

from sightline.training import distributed

if TYPE_CHECKING:
    from sightline.training.loop import Trainer


def opening(trainer: Trainer) -> str:
    """The lines that are printed first."""
    parameters = list(trainer.model.parameters())
    weights = sum(each.numel() for each in parameters)
    learned = sum(each.numel() for each in parameters if each.requires_grad)
    device = trainer.machine["device"]
    where = f"{device}, threads: {trainer.machine['threads']}" if device == "cpu" else device
    if distributed.size() > 1:
        where = f"{distributed.size()} processes: {where}"
    steps = trainer.config.steps - trainer.progress.step
    epoch = max(1, len(trainer.task.epoch(trainer.progress.epoch)))
    lines = [
        f"{where}; {weights:,} weights" + (f", {learned:,} learn" if learned < weights else ""),
        "; ".join(f"{value:,} {name}" for name, value in sizes(trainer).items()),
        f"{steps:,} steps, {steps / epoch:.3g} times through the data; evaluated every "
        f"{trainer.config.evaluate_every:,}",
        expected_time(trainer, steps),
    ]
    return "\n".join(line for line in lines if line)


def sizes(trainer: Trainer) -> dict[str, int]:
    """What the task says of its data."""
    return dict(getattr(trainer.task, "sizes", {}))


def expected_time(trainer: Trainer, steps: int) -> str:
    """By two trial steps and some samples, which change nothing."""
    model, task, seconds = trainer.model, trainer.task, []
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with torch.random.fork_rng(devices=[]):
        batch = task.epoch(trainer.progress.epoch)[0]
        if trainer.parts > 1:
            batch = batch.part(0, trainer.parts)
        batch = batch.to(trainer.device)
        for _ in range(2):  # the first has things to set up
            began = time.perf_counter()
            model.train()
            model.loss(batch, None)[0].total.backward()
            seconds.append(time.perf_counter() - began)
        evaluation = _evaluation_seconds(trainer)
    model.load_state_dict(before)  # such as the baseline of hard attention
    model.zero_grad(set_to_none=True)
    evaluations = -(-steps // trainer.config.evaluate_every)
    shares = -(-trainer.parts // distributed.size())  # of a batch, for this process
    seconds[-1] *= shares
    total = steps * seconds[-1] + evaluations * evaluation / distributed.size()
    told = f" and evaluations of {evaluation:.0f} s" if evaluation >= 1 else ""
    return f"about {duration(total)}: steps of {seconds[-1]:.2g} s{told}"


def _evaluation_seconds(trainer: Trainer) -> float:
    """Of describing the held-out items, where there are some."""
    held_out = sizes(trainer).get("held out", 0)
    if not held_out:
        return 0.0
    began = time.perf_counter()
    with torch.no_grad():
        trainer.model.eval()
        shown = len(trainer.task.samples(trainer.model))
    return (time.perf_counter() - began) / shown * held_out if shown else 0.0


def duration(seconds: float) -> str:
    """In the unit that people would use."""
    for unit, size in (("hour", 3600.0), ("minute", 60.0)):
        if seconds >= 1.5 * size:
            return f"{seconds / size:.{1 if unit == 'hour' else 0}f} {unit}s"
    return "a minute" if seconds >= 30 else "half a minute"
