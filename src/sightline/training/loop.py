"""The training loop, for every task: steps, evaluations, checkpoints, and exact resuming."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from torch import Tensor

from sightline import config as recipes
from sightline.data.durable import replace_file
from sightline.data.loading import ahead
from sightline.errors import CheckpointError, TrainingError
from sightline.metrics import info
from sightline.nn.device import pick_device, products_in
from sightline.nn.kernels.malloc import keep_freed_memory
from sightline.nn.model import Batch
from sightline.runtime.command import COMMAND, Command
from sightline.runtime.model_folder import find_model
from sightline.training import checkpoint as files
from sightline.training import distributed
from sightline.training.averaging import Average
from sightline.training.checkpoint import Checkpoint, Run
from sightline.training.journal import Journal, Silence
from sightline.training.machine import describe_machine, differences
from sightline.training.opening import opening
from sightline.training.optimisers import (
    build_optimiser,
    clip_gradient,
    learning_rate_factor,
    set_learning_rate,
)
from sightline.training.parts import Found, seed_of, shared_gradient, whole_carry, whole_gradient
from sightline.training.resuming import check_folder, check_same
from sightline.training.task import Epoch, TrainingTask

Watch = Callable[[int, dict[str, float]], None]  # told of each evaluation; may raise to stop
LOG_EVERY = 20  # steps per line of the log
# What may differ when a run is resumed.
_FREE = "steps evaluate_every save_every keep patience explode tensorboard device accumulate"
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
    watch: Watch | None = None,
) -> Outcome:
    """Train a task into the folder `out`, or resume the run in it."""
    run = Run(out)
    if distributed.is_first():  # others may not see its disk
        check_folder(run, resume)
    free = (*FREE_TO_CHANGE, *local_paths)
    with products_in(task.recipe.training.precision):
        trainer = Trainer(task, run, console or Console(stderr=True), free, watch)
        return trainer.run_all(resume, command)


class Trainer:
    """One run of one task."""

    def __init__(
        self,
        task: TrainingTask,
        run: Run,
        console: Console,
        free_to_change: Sequence[str] = FREE_TO_CHANGE,
        watch: Watch | None = None,
    ) -> None:
        self.task = task
        self.watch = watch
        self.run = run
        self.free_to_change = free_to_change
        self.config = task.recipe.training
        if self.config.select not in task.metrics:
            raise TrainingError(
                f"training.select={self.config.select} is not a metric of this task; it has "
                + ", ".join(task.metrics)
            )
        keep_freed_memory()
        self.device = pick_device(distributed.device_name(self.config.device), "training.device")
        torch.manual_seed(self.config.seed)
        with distributed.first_alone():
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
        journal = Journal if distributed.is_first() else Silence
        self.journal = journal(run, console, self.config.steps, self.config.tensorboard)
        self.recent: list[dict[str, float]] = []  # since the last line of the log

    def run_all(self, resume: bool, command: Command | None = None) -> Outcome:
        first = distributed.is_first()  # the only one that writes
        if first:
            self.run.create()
        with self.run.lock() if first else nullcontext():
            if first:
                check_folder(self.run, resume)  # another training may have ended meanwhile
            if resume:
                self.restore()
                self.journal.say(f"resuming at step {self.progress.step} of {self.run.folder}")
            elif first and command is not None:
                replace_file(self.run.folder / COMMAND, command.to_json().encode())
            self.agree()
            if first and not self.journal.console.quiet:
                self.journal.say(opening(self))
            with self.journal.opened(self.progress.step), _interruptions() as interrupted:
                reason = self._steps(interrupted)
        return Outcome(self.progress, self.run, reason)

    def agree(self) -> None:
        """All processes go on from what the first has."""
        if distributed.size() == 1:
            return
        tensors = files.optimiser_tensors(self.optimiser) | self.average.tensors()
        carried = whole_carry(self.carry)
        with self.average.in_place():
            mine = files.savable(self.model.state_dict()), files.savable(tensors), carried
            weights, tensors, carried = distributed.from_first(mine)
        self.progress = distributed.from_first(self.progress)
        if not distributed.is_first():
            self.model.load_state_dict(weights)
            files.restore_optimiser(self.optimiser, tensors)
            self.average.restore(tensors)
            self._carry_on(carried)

    def _carry_on(self, tensors: Sequence[Tensor]) -> None:
        if tensors:
            self.carry = self.model.carried([tensor.to(self.device) for tensor in tensors])

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
                stop = self._step(batch, interrupted)
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
                if stop or (interrupted["yes"] and distributed.size() == 1):
                    self.save(is_best=False)
                    return "interrupted"
                if last:
                    break
        return ""

    # ---------------------------------------------------------------------------- one step

    def _step(self, batch: Batch, interrupted: dict[str, bool]) -> bool:
        """Whether any process was asked to stop: all of them stop after the same step."""
        config, began = self.config, time.perf_counter()
        factor = learning_rate_factor(config.schedule, self.progress.step, config.steps)
        rate = config.optimiser.learning_rate * factor
        set_learning_rate(self.optimiser, rate)
        self.model.train()
        self.optimiser.zero_grad(set_to_none=True)
        found = self._gradient(batch, interrupted)
        self._check(found, batch)
        optimiser = config.optimiser
        norm = clip_gradient(self.model.parameters(), optimiser.clip_norm, optimiser.clip_value)
        if not math.isfinite(norm):
            self._stop(f"the gradient became {norm}", batch)
        self.optimiser.step()
        self.average.update(self.progress.step)
        self._log(found, norm, rate, time.perf_counter() - began)
        return found.stop

    def _gradient(self, batch: Batch, interrupted: dict[str, bool]) -> Found:
        step, seed = self.progress.step, self.config.seed
        batch = replace(batch, progress=step / self.config.steps, seed=seed_of(seed, step))
        parts, before, carries = self.parts, self.carry, self.task.carries_state
        if parts == 1:
            found, state = whole_gradient(self.model, batch.to(self.device), before)
            self.carry = state.detach() if state is not None and carries else None
            return found
        given = batch, before, parts, self.device, (seed, step)
        found, states = shared_gradient(self.model, *given, stop=interrupted["yes"])
        self.carry = {i: state.detach() for i, state in states.items()} if carries else None
        return found

    @property
    def parts(self) -> int:
        """Into how many a batch is cut."""
        accumulate: int = self.config.accumulate
        return max(accumulate, distributed.size())

    def _check(self, loss: Found, batch: Batch) -> None:
        """Stop before a bad loss reaches the weights."""
        value = loss.nats / max(1, loss.tokens)
        if not math.isfinite(value) or not loss.finite:
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

    def _log(self, loss: Found, norm: float, rate: float, seconds: float) -> None:
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
            metrics = distributed.from_first(self.task.evaluate(self.model))
            samples = self.task.samples(self.model) if distributed.is_first() else []
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
        if self.watch is not None:
            self.watch(progress.step, metrics)

    def save(self, *, is_best: bool) -> None:
        carried = whole_carry(self.carry)
        if not distributed.is_first():
            return
        tensors = files.optimiser_tensors(self.optimiser) | self.average.tensors()
        tensors["random"] = torch.get_rng_state()
        tensors |= {f"carry.{i}": part for i, part in enumerate(carried)}
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
            self.run.save(snapshot, is_best=is_best, keep=self.config.keep)

    def restore(self) -> None:
        """Continue exactly from the newest checkpoint that is not damaged."""
        if not distributed.is_first():
            return
        folder, damaged = self.run.newest_good()
        training = files.load_training(folder)
        check_same(folder, training, self.task, self.free_to_change)
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
        self._carry_on([tensors[f"carry.{i}"] for i in range(2) if f"carry.{i}" in tensors])
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
