"""A study: trainings of one recipe with other values of some keys, chosen by Optuna's TPE.

    STUDY/
      journal.log             what was tried and found, shared by all workers (Optuna's journal)
      recipe.yaml space.json  what is searched
      trials/0007/            the run of a trial
      best.yaml history.svg importance.svg

A worker holds a trial's lock while it trains it. A trial that is not finished and whose lock nobody
holds was a dead or an interrupted worker's: the next free worker resumes its run.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import optuna
from optuna.samplers import TPESampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileSymlinkLock
from optuna.trial import FrozenTrial, Trial, TrialState
from rich.console import Console

from sightline import config as recipes
from sightline.config.space import Dimension, Range, written
from sightline.data.durable import locked, replace_file
from sightline.errors import TrainingError, UserError
from sightline.metrics import info
from sightline.training.checkpoint import Run
from sightline.training.loop import Outcome, train
from sightline.training.task import TrainingTask

NAME = "sightline"
DONE = (TrialState.COMPLETE, TrialState.PRUNED)
OVERRIDES = "overrides"  # of a trial, as they were given to the recipe
STARTUP = 5  # trials drawn by chance, and finished before any is pruned


@dataclass(frozen=True)
class Searched:
    """What a study is about; workers of one study have to agree."""

    recipe: str  # YAML, before any trial's overrides
    space: Sequence[Dimension]
    select: str  # the metric that is raised or lowered

    def to_json(self) -> str:
        keys = {each.key: each.to_json() for each in self.space}
        return json.dumps({"select": self.select, "space": keys}, indent=1) + "\n"


class Tuning:
    """One worker's view of a study."""

    def __init__(
        self,
        folder: Path,
        searched: Searched,
        build: Callable[[Sequence[str]], TrainingTask],
        console: Console,
        startup: int = STARTUP,
    ) -> None:
        self.folder = folder
        self.searched = searched
        self.build = build  # the recipe's task with a trial's overrides
        self.console = console
        self.higher = info(searched.select).higher_is_better
        with self._alone():
            self._same()
            self.study = open_study(folder, startup, self.higher)

    def _same(self) -> None:
        """The first worker writes down what is searched; the others compare."""
        for name, text in (
            ("recipe.yaml", self.searched.recipe),
            ("space.json", self.searched.to_json()),
        ):
            path = self.folder / name
            if not path.exists():
                replace_file(path, text.encode())
            elif path.read_text(encoding="utf-8") != text:
                what = "recipe" if name == "recipe.yaml" else "space"
                raise UserError(
                    f"{self.folder} is a study of another {what} ({path}); go on with that one, "
                    "or give another --out"
                )

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """No other worker opens the study or takes a trial meanwhile."""
        (self.folder / "trials").mkdir(parents=True, exist_ok=True)
        with ExitStack() as stack:
            while True:
                try:
                    stack.enter_context(locked(self.folder / ".lock"))
                    break
                except BlockingIOError:
                    time.sleep(0.05)
            yield

    def work(self, trials: int) -> str:
        """Train trials until the study has so many; why it ended: finished or interrupted."""
        while True:
            with ExitStack() as stack:
                with self._alone():
                    trial = self._take(trials, stack)
                if trial is None:
                    return "finished"
                if not self._train(trial):
                    return "interrupted"
            self.write_best()

    def _take(self, trials: int, stack: ExitStack) -> Trial | None:
        """A trial that another worker left, or a new one; its lock is held by `stack`."""
        known = self.study.get_trials(deepcopy=False)
        for frozen in known:
            if frozen.state == TrialState.RUNNING and self._hold(frozen.number, stack):
                return Trial(self.study, frozen._trial_id)
        if sum(trial.state != TrialState.FAIL for trial in known) >= trials:
            return None
        trial = self.study.ask()
        if not self._hold(trial.number, stack):  # a file of the user's, at most
            raise UserError(f"{self.run_of(trial.number)} is locked; give another --out")
        return trial

    def _hold(self, number: int, stack: ExitStack) -> bool:
        run = self.run_of(number)
        run.mkdir(exist_ok=True)
        try:
            stack.enter_context(locked(run / ".worker"))
        except BlockingIOError:
            return False
        return True

    def run_of(self, number: int) -> Path:
        return self.folder / "trials" / f"{number:04d}"

    def _train(self, trial: Trial) -> bool:
        """Whether the trial was finished; where it was interrupted it waits for a worker."""
        overrides = trial.user_attrs.get(OVERRIDES)
        if overrides is None:
            overrides = suggested(trial, self.searched.space)
            trial.set_user_attr(OVERRIDES, overrides)
        run = self.run_of(trial.number)
        resume = Run(run).newest() is not None
        shown = " ".join(overrides)
        self._say(f"trial {trial.number}{' goes on' if resume else ''}: {shown}")
        try:
            outcome = self._run(trial, self.build(overrides), run, resume)
        except optuna.TrialPruned:
            self.study.tell(trial, state=TrialState.PRUNED)
            self._say(f"trial {trial.number}: pruned")
        except TrainingError as error:  # such as a loss that exploded: a bad place of the space
            trial.set_user_attr("stopped", str(error))
            self.study.tell(trial, state=TrialState.PRUNED)
            self._say(f"trial {trial.number}: {error}")
        else:
            if outcome is None or outcome.progress.best is None:
                return False
            best = outcome.progress.best if self.higher else -outcome.progress.best
            self.study.tell(trial, best)
            about = info(self.searched.select)
            self._say(f"trial {trial.number}: {about.label} {about.show(best)}")
        return True

    def _run(self, trial: Trial, task: TrainingTask, run: Path, resume: bool) -> Outcome | None:
        reported = set(self.study.get_trials(deepcopy=False)[trial.number].intermediate_values)

        def watch(step: int, metrics: Mapping[str, float]) -> None:
            if step not in reported:
                trial.report(metrics[self.searched.select], step)
            if trial.should_prune():
                raise optuna.TrialPruned

        quiet = Console(quiet=True)
        outcome = train(task, run, resume=resume, console=quiet, watch=watch)
        return None if outcome.reason == "interrupted" else outcome

    def write_best(self) -> FrozenTrial | None:
        """The best trial so far, its recipe beside the journal as `best.yaml`."""
        done = [t for t in self.study.get_trials(deepcopy=False) if t.state == TrialState.COMPLETE]
        if not done:
            return None
        best = self.study.best_trial
        recipe = self.build(best.user_attrs[OVERRIDES]).recipe
        about = info(self.searched.select)
        shown = f"{about.label} {about.show(best.values[0])}"
        head = f"# trial {best.number} of {self.folder}: {shown}\n"
        replace_file(self.folder / "best.yaml", (head + recipes.to_yaml(recipe)).encode())
        return best

    def _say(self, text: str) -> None:
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


def open_study(folder: Path, startup: int = STARTUP, higher: bool = True) -> optuna.Study:
    """The study of a folder, begun if there is none."""
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna.create_study(
        storage=storage_of(folder),
        study_name=NAME,
        direction="maximize" if higher else "minimize",
        load_if_exists=True,
        # workers side by side: what others are training counts as bad, so that nobody repeats it
        sampler=TPESampler(n_startup_trials=2 * startup, constant_liar=True),
        pruner=optuna.pruners.MedianPruner(n_startup_trials=startup),
    )


def storage_of(folder: Path) -> JournalStorage:
    """The journal; what a crash wrote of its last line is cut off."""
    path = folder / "journal.log"
    lock = JournalFileSymlinkLock(str(path))
    if path.exists():
        lock.acquire()
        try:
            content = path.read_bytes()
            os.truncate(path, content.rfind(b"\n") + 1)
        finally:
            lock.release()
    return JournalStorage(JournalFileBackend(str(path), lock))


def suggested(trial: Trial, space: Sequence[Dimension]) -> list[str]:
    """Overrides of the recipe, `key=value`."""
    overrides = []
    for each in space:
        values: Any = each.values
        if not isinstance(values, Range):
            value: Any = trial.suggest_categorical(each.key, list(values))
        elif each.whole:
            low, high, step = int(values.low), int(values.high), int(values.step or 1)
            value = trial.suggest_int(each.key, low, high, step=step, log=values.log)
        else:
            ends = values.low, values.high
            value = trial.suggest_float(each.key, *ends, step=values.step, log=values.log)
        overrides.append(f"{each.key}={written(value)}")
    return overrides


def importances(study: optuna.Study) -> dict[str, float]:
    """How much each key explains of what was found (PED-ANOVA), the largest first."""
    try:
        return optuna.importance.get_param_importances(study)
    except (ValueError, RuntimeError):  # too few trials to tell
        return {}
