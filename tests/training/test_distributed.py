"""Several processes train as one does: the same batches, the same weights to rounding."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from benchmarks import processes
from rich.console import Console
from safetensors.torch import load_file

from given import given, vectors
from sightline.config import (
    AttentionConfig,
    BatchingConfig,
    DecoderConfig,
    HardConfig,
    LossConfig,
    OptimiserConfig,
    TrainingConfig,
)
from sightline.data.vocabulary import BEGIN, END
from sightline.nn.decoder import Decoder
from sightline.nn.model import Batch, EncoderDecoder, pad
from sightline.nn.objectives import Likelihood
from sightline.tasks.caption.data import CaptionData
from sightline.tasks.language_model.data import TextData
from sightline.tasks.language_model.recipe import LanguageModelRecipe
from sightline.tasks.translate.data import TranslationData
from sightline.training.checkpoint import Run
from sightline.training.journal import read_log
from sightline.training.loop import train
from sightline.training.parts import shared_gradient, whole_gradient
from toy_language import recipe as translator
from toy_language import write_manifest

STEPS = 12
CLOSE = 2e-5  # of weights around 0.1 after a dozen steps


def training(steps=STEPS, **changes):
    options = {"steps": steps, "evaluate_every": steps // 2, "tensorboard": False}
    # SGD: Adam makes whole steps of gradients that are zero but for rounding
    options["optimiser"] = OptimiserConfig("sgd", learning_rate=0.3, clip_norm=1.0)
    return TrainingConfig(**{**options, **changes})


def run_of(task, out, resume=False):
    train(task, out, resume=resume, console=Console(quiet=True))


def weights(folder):
    return load_file(Run(folder).newest() / "weights.safetensors")


def apart(one, other):
    one, other = weights(one), weights(other)
    assert one.keys() == other.keys()
    return max(float((one[key].float() - other[key].float()).abs().max()) for key in one)


@pytest.fixture(scope="module")
def sentences(tmp_path_factory):
    path = tmp_path_factory.mktemp("sentences") / "toy.jsonl"
    write_manifest(path, train=120, dev=10, test=1)
    return path


def translation(sentences, **changes):
    return TranslationData(translator(sentences, training=training(**changes)))


@pytest.fixture(scope="module")
def pictures(shapes):
    """The recipe of a captioner whose pictures are read already."""
    _, recipe, _ = shapes
    return replace(recipe, batching=BatchingConfig(size=15), training=training(select="cider"))


def captioning(recipe):
    return CaptionData(recipe)


def hard(recipe):
    attention = AttentionConfig(size=32, hard=True)
    loss = LossConfig(hard=HardConfig(samples=2, entropy=0.01))
    return replace(recipe, model=replace(recipe.model, attention=attention), loss=loss)


def self_critical(recipe):
    return replace(recipe, self_critical=3)


LONG = pytest.param(50, marks=pytest.mark.slow)


@pytest.mark.parametrize("steps", [STEPS, LONG])
@pytest.mark.parametrize("count", [2, 4])
def test_translation_has_the_weights_of_one_process(sentences, tmp_path, count, steps):
    task = translation(sentences, steps=steps, evaluate_every=steps // 2)
    for processes_count, name in ((1, "one"), (count, "many")):
        processes.run(processes_count, run_of, task, tmp_path / name)
    assert apart(tmp_path / "one", tmp_path / "many") < CLOSE
    one, many = (read_log(tmp_path / name / "log.jsonl") for name in ("one", "many"))
    assert len(one) == len(many)
    for before, after in zip(one, many, strict=True):  # evaluations and losses too
        for key in {"loss", "sacrebleu", "chrf", "gradient_norm"} & before.keys():
            assert after[key] == pytest.approx(before[key], rel=1e-4), key


@pytest.mark.parametrize("steps", [STEPS, LONG])
@pytest.mark.parametrize("kind", [captioning, hard, self_critical])
def test_captioning_has_the_weights_of_one_process(pictures, tmp_path, kind, steps):
    recipe = pictures if kind is captioning else kind(pictures)
    recipe = replace(recipe, training=replace(recipe.training, steps=steps))
    for count, name in ((1, "one"), (2, "two")):
        processes.run(count, run_of, CaptionData(recipe), tmp_path / name)
    assert apart(tmp_path / "one", tmp_path / "two") < CLOSE


def test_streams_carry_their_state_on_any_number_of_processes(tmp_path):
    (tmp_path / "text.txt").write_text("the cat sat on the mat; so it went, on and on.\n" * 60)
    model = DecoderConfig(
        hidden=16, embedding=8, attention=AttentionConfig("none"), context=(), layers=2
    )
    task = TextData(
        LanguageModelRecipe(
            str(tmp_path / "text.txt"), model=model, streams=6, length=16, sample_length=4,
            training=training(),
        )
    )  # fmt: skip
    run_of(task, tmp_path / "one")
    processes.run(2, run_of, task, tmp_path / "two")
    assert apart(tmp_path / "one", tmp_path / "two") < CLOSE
    # and what is carried over is saved whole: two processes go on where four stopped
    shorter = replace(task.recipe, training=training(evaluate_every=4, save_every=4, keep=9))
    task = TextData(shorter)
    processes.run(4, run_of, task, tmp_path / "four")
    for step in (8, 12):
        folder = tmp_path / "four" / "checkpoints" / f"step-{step:08d}"
        folder.rename(folder.with_name(f"later-{step}"))
    processes.run(2, run_of, task, tmp_path / "four", True)
    assert apart(tmp_path / "one", tmp_path / "four") < CLOSE


def kill_one_and_resume(task, out, count, then, at):
    """Kill a process when the checkpoint `at` is there; the others end by themselves."""
    workers = processes.start(count, run_of, task, out)
    while not (out / "checkpoints" / f"step-{at:08d}").exists():
        assert any(worker.is_alive() for worker in workers)
        time.sleep(0.002)
    os.kill(workers[-1].pid, signal.SIGKILL)
    for worker in workers:
        worker.join(60)
    codes = [worker.exitcode for worker in workers]
    assert codes[-1] == -signal.SIGKILL
    assert all(code not in (0, None) for code in codes), codes
    processes.run(then, run_of, task, out, True)


def test_a_killed_process_ends_all_and_the_run_goes_on(sentences, tmp_path):
    """With dropout: what is drawn belongs to the part, and the parts are as many as before."""
    recipe = translator(sentences, training=training(steps=30, save_every=3, evaluate_every=15))
    recipe = replace(recipe, model=replace(recipe.model, dropout=0.2))
    task = TranslationData(recipe)
    processes.run(2, run_of, task, tmp_path / "whole")
    kill_one_and_resume(task, tmp_path / "killed", count=2, then=2, at=6)
    assert apart(tmp_path / "whole", tmp_path / "killed") == 0.0


def test_one_that_is_asked_to_stop_stops_all(sentences, tmp_path):
    task = translation(sentences, steps=2000)
    workers = processes.start(2, run_of, task, tmp_path)
    while not (tmp_path / "log.jsonl").exists() or not read_log(tmp_path / "log.jsonl"):
        assert all(worker.is_alive() for worker in workers)
        time.sleep(0.01)
    os.kill(workers[-1].pid, signal.SIGTERM)
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    step = int(Run(tmp_path).newest().name.removeprefix("step-"))
    assert 20 <= step < 2000


def test_another_number_of_processes_goes_on(sentences, tmp_path):
    task = translation(sentences, steps=30, save_every=3, evaluate_every=15)
    run_of(task, tmp_path / "whole")
    kill_one_and_resume(task, tmp_path / "killed", count=2, then=1, at=6)
    assert apart(tmp_path / "whole", tmp_path / "killed") < CLOSE


def test_parts_of_one_process_are_those_of_many(sentences, tmp_path):
    """Dropout too: `accumulate` is the number of parts, whoever computes them."""
    recipe = translator(sentences, training=training(accumulate=4))
    recipe = replace(recipe, model=replace(recipe.model, dropout=0.3))
    task = TranslationData(recipe)
    run_of(task, tmp_path / "one")
    processes.run(2, run_of, task, tmp_path / "two")
    assert apart(tmp_path / "one", tmp_path / "two") < CLOSE


def likelihood(**loss):
    torch.manual_seed(1)
    config = DecoderConfig(
        embedding=5, hidden=6, attention=AttentionConfig(size=4, hard="hard" in loss)
    )
    objective = Likelihood(LossConfig(**loss))
    return EncoderDecoder(given(3), Decoder(config, 8, 3), objective).double().train()


def a_batch(examples, seed=5):
    rng = np.random.default_rng(seed)
    rows = [[BEGIN, *rng.integers(4, 8, rng.integers(1, 5)), END] for _ in range(2 * examples)]
    values = torch.from_numpy(rng.normal(size=(examples, 4, 3)))
    mask = torch.ones(examples, 4).bool()
    trust = torch.from_numpy(rng.uniform(0.1, 2, 2 * examples))
    return Batch(pad(rows), vectors(values, mask), weights=trust, seed=3)


@pytest.mark.parametrize("per", ["token", "sequence"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("more", [{}, {"hard": HardConfig(samples=3, expectation=0.4)}])
def test_the_gradients_of_parts_add_up(per, weighted, more):
    """Also of more parts than examples: those without any add nothing."""
    batch = a_batch(5)
    if not weighted:
        batch = replace(batch, weights=None)
    gradients, baselines = [], []
    for parts in (1, 3, 8):
        model = likelihood(per=per, doubly_stochastic=0.5, label_smoothing=0.1, **more)
        if parts == 1:
            whole_gradient(model, batch, None)
        else:
            shared_gradient(model, batch, None, parts, torch.device("cpu"), (1, 0))
        gradients.append(torch.cat([p.grad.flatten() for p in model.parameters()]))
        baselines.append(float(model.hard.baseline) if model.hard is not None else 0.0)
    for gradient in gradients[1:]:
        torch.testing.assert_close(gradient, gradients[0])
    assert baselines == pytest.approx([baselines[0]] * 3)
    assert not more or baselines[0] != 0


RECIPE = """
task: translate
manifest: {manifest}
source: {{kind: word, size: 500}}
target: {{kind: word, size: 500}}
batching: {{kind: token_budget, size: 400}}
encoder: {{embedding: 12, hidden: 16}}
model: {{embedding: 12, hidden: 16, dropout: 0.1, attention: {{size: 12}}}}
training: {{steps: 400, evaluate_every: 200, save_every: 10, tensorboard: false}}
"""


@pytest.mark.slow
def test_torchrun_restarts_what_was_killed(sentences, tmp_path, cli_environment):
    """The command itself: one process writes and speaks, and a killed one costs a few steps."""
    (tmp_path / "recipe.yaml").write_text(RECIPE.format(manifest=sentences))
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    command += ["--max-restarts=1", "-m", "sightline", "train", "recipe.yaml", "-o", "run"]
    run = subprocess.Popen(
        command, cwd=tmp_path, env=cli_environment, stderr=subprocess.PIPE, text=True
    )
    while not (tmp_path / "run/checkpoints/step-00000020").exists():
        assert run.poll() is None, run.stderr.read()
        time.sleep(0.01)
    kill_a_worker(run.pid)
    _, said = run.communicate(timeout=120)
    assert run.returncode == 0, said
    assert "resuming at step" in said
    assert said.count("finished at step 400") == 1
    assert "2 processes: cpu" in said


def kill_a_worker(agent):
    (*_, last) = Path(f"/proc/{agent}/task/{agent}/children").read_text().split()
    os.kill(int(last), signal.SIGKILL)
