"""The training loop, for every task: steps, evaluations, checkpoints, and exact resuming."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console

from sightline import config as recipes
from sightline.data.durable import replace_file
from sightline.data.loading import ahead
from sightline.errors import CheckpointError, TrainingError
from sightline.metrics import info
from sightline.nn.device import pick_device, products_in
from sightline.nn.kernels.malloc import keep_freed_memory
from sightline.nn.losses import Loss
from sightline.nn.model import Batch
from sightline.runtime.command import COMMAND, Command
from sightline.runtime.model_folder import find_model
from sightline.training import checkpoint as files
from sightline.training.averaging import Average
from sightline.training.checkpoint import Checkpoint, Run
from sightline.training.journal import Journal
from sightline.training.machine import describe_machine, differences
from sightline.training.opening import opening
from sightline.training.optimisers import (
    build_optimiser,
    clip_gradient,
    learning_rate_factor,
    set_learning_rate,
)
from sightline.training.task import Epoch, TrainingTask

LOG_EVERY = 20  # steps per line of the log
# What may differ when a run is resumed.
_FREE = "steps evaluate_every save_every keep patience explode tensorboard device"
FREE_TO_CHANGE = ("description", "benchmark", *(f"training.{key}" for key in _FREE.split()))


@dataclass
class Progress:
    """The loop's own numbers; saved with every checkpoint."""

    step: int = 0
    epoch: int = 0
    position: int = 0
    best: float | None = None
    best_step: int = 0
    stale: int = 0  # evaluations since the best one
    first_loss: float | None = None
    seconds: float = 0.0  # of training, evaluations included
    metrics: dict[str, float] = field(default_factory=dict)  # of the last evaluation


@dataclass(frozen=True)
class Outcome:
    progress: Progress
    run: Run
    reason: str  # finished, stopped early, interrupted


def train(
    task: TrainingTask,
    out: Path | str,
    *,
    resume: bool = False,
    console: Console | None = None,
    local_paths: Sequence[str] = (),  # recipe keys that may name another place when resumed
    command: Command | None = None,  # that began it, kept for resuming
) -> Outcome:
    """Train a task into the folder `out`, or resume the run in it."""
    run = Run(out)
    _check_folder(run, resume)
    free = (*FREE_TO_CHANGE, *local_paths)
    with products_in(task.recipe.training.precision):
        trainer = Trainer(task, run, console or Console(stderr=True), free)
        return trainer.run_all(resume, command)


class Trainer:
    """One run of one task."""

    def __init__(
        self,
        task: TrainingTask,
        run: Run,
        console: Console,
        free_to_change: Sequence[str] = FREE_TO_CHANGE,
    ) -> None:
        self.task = task
        self.run = run
        self.free_to_change = free_to_change
        self.config = task.recipe.training
        if self.config.select not in task.metrics:
            raise TrainingError(
                f"training.select={self.config.select} is not a metric of this task; it has "
                + ", ".join(task.metrics)
            )
        keep_freed_memory()
        self.device = pick_device(self.config.device, "training.device")
        torch.manual_seed(self.config.seed)
        task.prepare()
        torch.manual_seed(self.config.seed)  # whatever was left to prepare
        model: Any = task.build_model()
        self.model = model.to(self.device)
        if self.config.initial is not None:
            source = find_model(self.config.initial)
            optional = self.model.optional_weights
            files.load_weights(self.model, source, optional, getattr(task, "grown", ()))
        self.optimiser = build_optimiser(self.config.optimiser, self.model)
        self.machine = describe_machine(self.device)
        self.average = Average(self.model, self.config.ema)
        self.progress = Progress()
        self.epoch_length = 1  # steps
        self.carry: Any = None  # the state that truncated BPTT carries over
        self.journal = Journal(run, console, self.config.steps, self.config.tensorboard)
        self.recent: list[dict[str, float]] = []  # since the last line of the log

    def run_all(self, resume: bool, command: Command | None = None) -> Outcome:
        self.run.create()
        with self.run.lock():
            _check_folder(self.run, resume)  # another training may have ended meanwhile
            if resume:
                self.restore()
                self.journal.say(f"resuming at step {self.progress.step} of {self.run.folder}")
            elif command is not None:
                replace_file(self.run.folder / COMMAND, command.to_json().encode())
            if not self.journal.console.quiet:
                self.journal.say(opening(self))
            with self.journal.opened(self.progress.step), _interruptions() as interrupted:
                reason = self._steps(interrupted)
        return Outcome(self.progress, self.run, reason)

    def _steps(self, interrupted: dict[str, bool]) -> str:
        progress = self.progress
        began = time.perf_counter() - progress.seconds
        while progress.step < self.config.steps:
            epoch = self.task.epoch(progress.epoch)
            reason = self._epoch(epoch, began, interrupted)
            if reason:
                return reason
            if progress.position >= len(epoch):
                progress.epoch, progress.position, self.carry = progress.epoch + 1, 0, None
        return "finished"

    def _epoch(self, epoch: Epoch, began: float, interrupted: dict[str, bool]) -> str:
        """The rest of an epoch, or of the run; why it has to stop, if it has to."""
        progress, config = self.progress, self.config
        self.epoch_length = max(1, len(epoch))
        with closing(ahead(epoch.__getitem__, range(progress.position, len(epoch)))) as batches:
            for batch in batches:
                self._step(batch)
                progress.position += 1
                progress.step += 1
                progress.seconds = time.perf_counter() - began
                last = progress.step == config.steps
                if last or progress.step % config.evaluate_every == 0:
                    self._evaluate()
                    if config.patience and progress.stale >= config.patience:
                        return "stopped early"
                elif config.save_every and progress.step % config.save_every == 0:
                    self.save(is_best=False)
                if interrupted["yes"]:
                    self.save(is_best=False)
                    return "interrupted"
                if last:
                    break
        return ""

    # ---------------------------------------------------------------------------- one step

    def _step(self, batch: Batch) -> None:
        config, began = self.config, time.perf_counter()
        factor = learning_rate_factor(config.schedule, self.progress.step, config.steps)
        rate = config.optimiser.learning_rate * factor
        set_learning_rate(self.optimiser, rate)
        self.model.train()
        batch = replace(batch.to(self.device), progress=self.progress.step / config.steps)
        loss, state = self.model.loss(batch, self.carry)
        self._check(loss, batch)
        self.optimiser.zero_grad(set_to_none=True)
        loss.total.backward()
        optimiser = config.optimiser
        norm = clip_gradient(self.model.parameters(), optimiser.clip_norm, optimiser.clip_value)
        if not math.isfinite(norm):
            self._stop(f"the gradient became {norm}", batch)
        self.optimiser.step()
        self.average.update(self.progress.step)
        self.carry = state.detach() if state is not None and self.task.carries_state else None
        self._log(loss, norm, rate, time.perf_counter() - began)

    def _check(self, loss: Loss, batch: Batch) -> None:
        """Stop before a bad loss reaches the weights."""
        value = loss.nats / max(1, loss.tokens)
        if not math.isfinite(value) or not bool(torch.isfinite(loss.total)):
            self._stop(f"the loss became {value}", batch)
        if self.progress.first_loss is None:
            self.progress.first_loss = value
        if value > self.config.explode * self.progress.first_loss:
            self._stop(f"the loss exploded to {value:.3g} nats per token", batch)

    def _stop(self, what: str, batch: Batch) -> None:
        last = self.run.newest()
        kept = f"the last good checkpoint is {last}" if last else "no checkpoint was written yet"
        raise TrainingError(
            f"{what} at step {self.progress.step}, in {batch.name or 'an unnamed batch'}; {kept}; "
            "try a lower optimiser.learning_rate or optimiser.clip_norm, or look at that batch"
        )

    def _log(self, loss: Loss, norm: float, rate: float, seconds: float) -> None:
        numbers = {"nats": loss.nats, "tokens": loss.tokens, "seconds": seconds}
        self.recent.append({**numbers, "gradient_norm": norm, **loss.parts})
        step = self.progress.step + 1
        if step % LOG_EVERY and step != self.config.steps:
            return
        columns: dict[str, list[float]] = {}  # a part that only begins later has fewer numbers
        for row in self.recent:
            for key, value in row.items():
                columns.setdefault(key, []).append(value)
        total = {key: sum(column) for key, column in columns.items()}
        mean = {key: total[key] / len(column) for key, column in columns.items()}
        values = {
            "epoch": self._epochs(progressed=1),
            "loss": total["nats"] / max(1, total["tokens"]),
            "tokens_per_second": total["tokens"] / max(1e-9, total["seconds"]),
            "gradient_norm": mean["gradient_norm"],
            "learning_rate": rate,
            **{key: mean[key] for key in loss.parts},
        }
        self.recent = []
        self.journal.record("train", step, values)
        speed = f"{values['tokens_per_second']:,.0f} tokens/s"
        self.journal.advance(step, f"loss {values['loss']:.3f} · {speed}")

    def _epochs(self, progressed: int = 0) -> float:
        """How often the data was seen, in the middle of a step or after it."""
        position = self.progress.position + progressed
        return round(self.progress.epoch + position / self.epoch_length, 4)

    # ------------------------------------------------------------- evaluation and checkpoints

    def _evaluate(self) -> None:
        progress, select = self.progress, self.config.select
        began = time.perf_counter()
        with self.average.in_place(), torch.random.fork_rng(devices=[]), torch.no_grad():
            self.model.eval()
            metrics = self.task.evaluate(self.model)
            samples = self.task.samples(self.model)
        value = metrics[select] if info(select).higher_is_better else -metrics[select]
        is_best = progress.best is None or value > progress.best
        if is_best:
            progress.best, progress.best_step, progress.stale = value, progress.step, 0
        else:
            progress.stale += 1
        progress.metrics = metrics
        progress.seconds += time.perf_counter() - began
        recorded = {"epoch": self._epochs(), **metrics, "training_seconds": progress.seconds}
        self.journal.record("evaluation", progress.step, recorded)
        shown = {info(name).label: info(name).show(number) for name, number in metrics.items()}
        numbers = " · ".join(f"{label} {number}" for label, number in shown.items())
        self.journal.say(f"step {progress.step}: {numbers}{'  (best)' if is_best else ''}")
        if samples:
            self.journal.say("\n".join(samples))
        self.save(is_best=is_best)

    def save(self, *, is_best: bool) -> Path:
        tensors = files.optimiser_tensors(self.optimiser) | self.average.tensors()
        tensors["random"] = torch.get_rng_state()
        if self.carry is not None:
            tensors |= {f"carry.{i}": part for i, part in enumerate(self.carry.tensors)}
        with self.average.in_place():
            snapshot = Checkpoint(
                step=self.progress.step,
                texts={files.CONFIG: recipes.to_yaml(self.task.recipe), **self.task.files},
                weights=self.model.state_dict(),
                training={
                    "progress": asdict(self.progress),
                    "data": self.task.fingerprint,
                    "machine": self.machine,
                },
                tensors=tensors,
            )
            return self.run.save(snapshot, is_best=is_best, keep=self.config.keep)

    def restore(self) -> None:
        """Continue exactly from the newest checkpoint that is not damaged."""
        folder, damaged = self.run.newest_good()
        training = files.load_training(folder)
        self._check_same(folder, training)
        files.load_weights(self.model, folder)
        tensors = files.load_tensors(folder / files.OPTIMISER)
        try:
            files.restore_optimiser(self.optimiser, tensors)
            self.average.restore(tensors)
            torch.set_rng_state(tensors["random"])
            self.progress = Progress(**training["progress"])
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise CheckpointError(
                f"{folder} does not hold the whole state of this training ({error}); "
                "delete it to resume from the checkpoint before it"
            ) from None
        carry = [tensors[f"carry.{i}"].to(self.device) for i in range(2) if f"carry.{i}" in tensors]
        if carry:
            self.carry = self.model.carried(carry)
        changes = differences(training.get("machine", {}), self.machine)
        if changes:
            self.journal.say(
                f"warning: {'; '.join(changes)}: the result may differ in its last bits from that "
                "of a run that was never stopped"
            )
        for _, reason in damaged:
            self.journal.say(f"warning: {reason}; set aside, resuming from {folder.name}")
        best_step = None if self.progress.best is None else self.progress.best_step
        self.run.fall_back(folder, [path for path, _ in damaged], best_step)

    def _check_same(self, folder: Path, training: dict[str, Any]) -> None:
        recipe = self.task.recipe
        before = recipes.to_dict(recipes.parse_file(folder / files.CONFIG, type(recipe)))
        changed = _differences(before, recipes.to_dict(recipe))
        refused = [key for key in changed if key not in self.free_to_change]
        if refused:
            raise TrainingError(
                f"{folder} was trained with another {', '.join(refused)}; "
                "resume with the same recipe, or train into another --out"
            )
        # texts, and for other media also the files: digests that runs before today's do not have
        stored, now = str(training.get("data")).split("+"), self.task.fingerprint.split("+")
        files_differ = any(_text(folder / name) != text for name, text in self.task.files.items())
        if files_differ or any(one != other for one, other in zip(stored, now, strict=False)):
            replaced = " (files were replaced)" if stored[0] == now[0] and not files_differ else ""
            raise TrainingError(
                f"{folder} was trained on other data than this{replaced}; "
                "resume with the same files"
            )


def _check_folder(run: Run, resume: bool) -> None:
    used = run.newest() is not None
    if used and not resume:
        raise TrainingError(
            f"{run.folder} already holds a run; --resume continues it, --out names another folder"
        )
    if resume and not used:
        raise TrainingError(f"{run.folder} holds no checkpoint to resume; leave --resume out")


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise CheckpointError(f"{path} is missing or damaged ({error})") from None


def _differences(before: Any, after: Any, prefix: str = "") -> list[str]:
    if not (isinstance(before, dict) and isinstance(after, dict)):
        return [] if before == after else [prefix.removesuffix(".")]
    changed = []
    for key in dict.fromkeys([*before, *after]):
        changed += _differences(before.get(key), after.get(key), f"{prefix}{key}.")
    return changed


@contextmanager
def _interruptions() -> Iterator[dict[str, bool]]:
    """Ctrl-C and SIGTERM ask the loop to stop after its step; a second Ctrl-C stops at once."""
    asked = {"yes": False}

    def ask(number: int, frame: Any) -> None:
        if asked["yes"]:
            raise KeyboardInterrupt
        asked["yes"] = True

    try:
        before = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    except ValueError:  # not in the main thread: nobody can press Ctrl-C here
        before = {}
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
