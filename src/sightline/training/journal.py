"""The reports of a run: a JSONL log, TensorBoard, and the terminal's progress bar and lines."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich import progress
from rich.console import Console

from sightline.data.durable import replace_file
from sightline.errors import TrainingError, install
from sightline.training.checkpoint import Run

LINE_EVERY = 60.0  # seconds, where there is no terminal for a bar


class Journal:
    """Writes events of a run down as they happen."""

    def __init__(self, run: Run, console: Console, steps: int, tensorboard: bool) -> None:
        self.run = run
        self.console = console
        self.tensorboard: Any = None
        self.wants_tensorboard = tensorboard
        self.steps = steps
        self.progress = progress.Progress(
            "training",
            progress.BarColumn(),
            progress.MofNCompleteColumn(),
            "{task.fields[status]}",
            progress.TimeElapsedColumn(),
            "left",
            progress.TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
        )
        self.began: tuple[int, float] | None = None  # the first step seen, and when
        self.told = 0.0  # when the last line was printed
        self.bar = self.progress.add_task("training", total=steps, status="")

    @contextmanager
    def opened(self, step: int) -> Iterator[None]:
        """Continue from `step`: later lines of the log belong to a run that was lost."""
        try:
            kept = read_log(self.run.log) if step and self.run.log.exists() else []
            lines = [json.dumps(event) + "\n" for event in kept if event["step"] <= step]
            replace_file(self.run.log, "".join(lines).encode())
        except OSError as error:
            raise self._failed(error) from None
        if self.wants_tensorboard:
            try:
                from torch.utils.tensorboard.writer import SummaryWriter

                folder = str(self.run.folder / "tensorboard")
                self.tensorboard = SummaryWriter(folder, purge_step=step)
            except ImportError:
                self.say(f"no TensorBoard log: {install('train')}")
        try:
            with self.progress:
                self.advance(step, "")
                yield
        finally:
            if self.tensorboard is not None:
                self.tensorboard.close()

    def advance(self, step: int, status: str) -> None:
        """The bar on a terminal; elsewhere a line from time to time."""
        self.progress.update(self.bar, completed=step, status=status)
        now = time.monotonic()
        if self.began is None:
            self.began, self.told = (step, now), now
        elif not self.console.is_terminal and now - self.told >= LINE_EVERY:
            self.told = now
            left = (self.steps - step) * (now - self.began[1]) / max(1, step - self.began[0])
            shown = f"step {step:,} of {self.steps:,}: {status}"
            self.say(f"{shown} · {left / 60:.0f} min left")

    def record(self, kind: str, step: int, values: dict[str, float]) -> None:
        """One line of the log, and one point per value in TensorBoard."""
        event = {"kind": kind, "step": step, "time": round(time.time(), 1), **values}
        try:
            with self.run.log.open("a", encoding="utf-8") as file:
                file.write(json.dumps(event) + "\n")
            if self.tensorboard is not None:
                for name, value in values.items():
                    self.tensorboard.add_scalar(f"{kind}/{name}", value, step)
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> TrainingError:
        reason = error.strerror or error
        return TrainingError(
            f"could not write the log {self.run.log} ({reason}); --resume continues"
        )

    def say(self, text: str) -> None:
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


class Silence(Journal):
    """Of the processes that leave writing to the first."""

    @contextmanager
    def opened(self, step: int) -> Iterator[None]:
        yield

    def advance(self, step: int, status: str) -> None:
        pass

    def record(self, kind: str, step: int, values: dict[str, float]) -> None:
        pass

    def say(self, text: str) -> None:
        pass


def read_log(path: Path) -> list[dict[str, Any]]:
    """The events of a run; what is not one, such as a line cut short by a crash, is left out."""
    events = []
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict) and {"kind", "step"} <= event.keys():
            events.append(event)
    return events
