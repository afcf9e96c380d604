"""Tuning: spaces with errors that name lines, workers that share a study, and one that dies."""

import multiprocessing
import os
import signal
import sys
import time

import pytest
from rich.console import Console

from sightline.config.space import Dimension, Range, default_space, read_space
from sightline.errors import ConfigError, UserError
from sightline.tasks import build_task, read_recipe
from sightline.tasks.translate.recipe import TranslateRecipe
from toy_language import write_manifest

optuna = pytest.importorskip("optuna")

RECIPE = """
task: translate
manifest: {manifest}
source: {{kind: word, size: 500}}
target: {{kind: word, size: 500}}
batching: {{kind: token_budget, size: 300}}
encoder: {{embedding: 8, hidden: 12}}
model: {{embedding: 8, hidden: 12, attention: {{size: 8}}}}
search: {{beam: 2, max_length: 12}}
training: {{steps: 12, evaluate_every: 6, save_every: 2, tensorboard: false}}
"""
SPACE = """
training.optimiser.learning_rate: {low: 1e-3, high: 1e-1, log: true}
model.hidden: {low: 8, high: 16, step: 4}
model.context: [[state], [state, every]]
"""


@pytest.fixture
def recipe(tmp_path):
    write_manifest(tmp_path / "toy.jsonl", train=60, dev=6, test=1)
    path = tmp_path / "recipe.yaml"
    path.write_text(RECIPE.format(manifest=tmp_path / "toy.jsonl"))
    return path


def space(path, text):
    file = path.with_name("space.yaml")
    file.write_text(text)
    return read_space(file, TranslateRecipe, lambda more: read_recipe(path, more))


def test_a_space_of_ranges_and_choices(recipe):
    assert space(recipe, SPACE) == [
        Dimension("training.optimiser.learning_rate", Range(1e-3, 0.1, log=True)),
        Dimension("model.hidden", Range(8, 16, step=4), whole=True),
        Dimension("model.context", ("[state]", "[state, every]")),
    ]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("model.hiden: [8, 16]", r"space.yaml:1: model.hiden: unknown key; did you mean .*hidden"),
        ("\nmodel.hidden: 8", "space.yaml:2: model.hidden: expected {low: NUMBER"),
        ("model.hidden: [8]", "two choices or more"),
        ("model.hidden: {low: 16, high: 8}", "low=16 is not below high=8"),
        ("model.hidden: {low: 8, high: 9.5}", "whole number"),
        ("model.hidden: {low: 8}", "needs model.hidden.high"),
        ("model.dropout: {low: 0, high: 1}", "space.yaml:1: model.dropout: expected 0 or more"),
        ("\n\nmodel.cell: [gru, lsd]", "space.yaml:3: model.cell: `lsd` is not one of"),
        ("model.dropout: {low: 0, high: 0.5, log: true}", "a low above 0"),
        ("model.dropout: {low: 0, high: 0.5, lag: true}", "unknown key"),
        ("model.hidden: [8, 9]\nmodel.hidden: [8, 9]", ":2: model.hidden: given twice"),
        ("", "names no key"),
        ("a: [", "not YAML"),
    ],
)
def test_mistakes_in_a_space_name_their_line(recipe, text, error):
    with pytest.raises(ConfigError, match=error):
        space(recipe, text)


def test_the_default_space_is_the_papers():
    soft = read_recipe("src/sightline/recipes/flickr8k-soft.yaml", ["manifest=none.jsonl"])
    assert "model.dropout" in {each.key for each in default_space(soft)}
    hard = read_recipe("src/sightline/recipes/flickr8k-hard.yaml", ["manifest=none.jsonl"])
    assert [each.key for each in default_space(hard)] == ["loss.hard.reward", "loss.hard.entropy"]
    with pytest.raises(ConfigError, match="--space"):
        default_space(read_recipe("src/sightline/recipes/babi.yaml", ["manifest=none.jsonl"]))


def worker(recipe, folder, trials, text=SPACE):
    from sightline import config
    from sightline.training.tuning import Searched, Tuning

    def read(more):
        return read_recipe(recipe, ["training.keep=1", *more])

    about = Searched(config.to_yaml(read(())), space(recipe, text), "loss")
    tuning = Tuning(folder, about, lambda more: build_task(read(more)), Console(quiet=True), 2)
    tuning.work(trials)
    return tuning


def trials_of(folder):
    from sightline.training.tuning import open_study

    return open_study(folder, higher=False).get_trials(deepcopy=False)


def test_workers_share_a_study_and_one_may_die(recipe, tmp_path):
    folder, context = tmp_path / "study", multiprocessing.get_context("fork")
    workers = [context.Process(target=worker, args=(recipe, folder, 8)) for _ in range(2)]
    for each in workers:
        each.start()
    while not list(folder.glob("trials/*/checkpoints/step-00000002")):
        assert any(each.is_alive() for each in workers)
        time.sleep(0.002)
    os.kill(workers[0].pid, signal.SIGKILL)
    for each in workers:
        each.join(120)
    assert workers[1].exitcode == 0
    worker(recipe, folder, 8)  # what the dead one left, if it was the last
    trials = trials_of(folder)
    assert [trial.number for trial in trials] == list(range(8))
    assert {trial.state.name for trial in trials} <= {"COMPLETE", "PRUNED"}
    assert all(trial.intermediate_values for trial in trials)
    assert len({tuple(trial.user_attrs["overrides"]) for trial in trials}) == 8


def test_the_best_recipe_trains_as_its_trial_did(recipe, tmp_path):
    from sightline.training.loop import train

    tuning = worker(recipe, tmp_path / "study", 3)
    task = build_task(read_recipe(tmp_path / "study/best.yaml"))
    outcome = train(task, tmp_path / "again", console=Console(quiet=True))
    assert -outcome.progress.best == tuning.study.best_value


def test_a_study_of_something_else_is_refused(recipe, tmp_path):
    worker(recipe, tmp_path / "study", 1)
    with pytest.raises(UserError, match="another space"):
        worker(recipe, tmp_path / "study", 1, "model.hidden: [8, 16]")


def test_a_line_cut_short_by_a_crash_is_left_out(recipe, tmp_path):
    worker(recipe, tmp_path / "study", 1)
    with open(tmp_path / "study/journal.log", "ab") as file:
        file.write(b'{"op_code": 4, "wor')
    worker(recipe, tmp_path / "study", 2)
    assert len(trials_of(tmp_path / "study")) == 2


def test_the_command_draws_what_it_found(recipe, tmp_path, run_cli):
    (tmp_path / "space.yaml").write_text("model.dropout: {low: 0, high: 0.5}\n")
    given = ["tune", recipe, "training.steps=4", "training.evaluate_every=2"]
    given += ["--space", tmp_path / "space.yaml", "--trials", "3", "-o", tmp_path / "study"]
    ended = run_cli(*given)
    assert ended.returncode == 0, ended.stderr
    assert "best of" in ended.stderr
    assert (tmp_path / "study/history.svg").stat().st_size > 500
    if "optuna_dashboard" not in sys.modules:
        shown = run_cli(*given, "--dashboard")
        assert shown.returncode == 2
        assert "pip install optuna-dashboard" in shown.stderr
