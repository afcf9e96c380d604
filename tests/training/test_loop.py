"""The loop: exact resuming, early stopping, best checkpoints, bad losses, interruptions."""

import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace

import pytest
import torch
from rich.console import Console
from safetensors.torch import load_file

from sightline.config import OptimiserConfig, ScheduleConfig, TrainingConfig
from sightline.errors import TrainingError, UserError
from sightline.nn import objectives
from sightline.nn.device import products_in
from sightline.training.averaging import Average
from sightline.training.checkpoint import Run
from sightline.training.journal import read_log
from sightline.training.loop import train
from sightline.training.optimisers import learning_rate_factor
from toy_task import ToyRecipe, ToyTask

QUIET = Console(quiet=True)
TEXT = "the cat sat on the mat. the dog sat on the log; and so it went, on and on.\n" * 60
COMMAND = [sys.executable, "-m", "sightline.cli", "train"]


def toy(**training):
    defaults = {"steps": 30, "evaluate_every": 10, "tensorboard": False}
    return ToyTask(ToyRecipe(examples=300, training=TrainingConfig(**(defaults | training))))


RECIPE = """
task: language_model
text: {text}
{extra}
streams: 8
length: 16
sample_length: 8
model: {{hidden: 16, embedding: 8, layers: 2, dropout: 0.2, attention: {{kind: none}}, context: []}}
training:
  steps: 60
  evaluate_every: 20
  save_every: 7
  ema: 0.9
  scheduled_sampling: 0.3
  tensorboard: false
  optimiser: {{kind: {optimiser}, learning_rate: 0.01, momentum: 0.5}}
  schedule: {{kind: cosine, warmup: 10}}
"""


def environment():
    return os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}


def last_weights(folder):
    newest = Run(folder).newest()
    return newest.name, load_file(newest / "weights.safetensors")


@pytest.mark.parametrize(
    ("extra", "optimiser"),
    [("sequence: stream", "adam"), ("sequence: line\nbatching: {size: 4}", "rmsprop")],
)
def test_killed_and_resumed_equals_uninterrupted_bit_for_bit(tmp_path, extra, optimiser):
    (tmp_path / "text.txt").write_text(TEXT + "".join(TEXT[i : i + 9] + "\n" for i in range(99)))
    recipe = tmp_path / "recipe.yaml"
    recipe.write_text(RECIPE.format(text=tmp_path / "text.txt", extra=extra, optimiser=optimiser))
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    subprocess.run([*COMMAND, recipe, "--out", whole], check=True, env=environment())

    arguments = [*COMMAND, recipe, "--out", killed]
    for kill_after in ("step-00000007", "step-00000042"):
        process = subprocess.Popen(arguments, env=environment(), stderr=subprocess.DEVNULL)
        while not (killed / "checkpoints" / kill_after).exists() and process.poll() is None:
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGKILL)  # anywhere at or after that checkpoint
        process.wait()
        arguments = [*COMMAND, recipe, "--out", killed, "--resume"]
    subprocess.run(arguments, check=True, env=environment(), stderr=subprocess.DEVNULL)

    name, weights = last_weights(killed)
    expected_name, expected = last_weights(whole)
    assert name == expected_name == "step-00000060"
    assert weights.keys() == expected.keys()
    for key in weights:
        assert torch.equal(weights[key], expected[key]), key
    log, expected_log = read_log(killed / "log.jsonl"), read_log(whole / "log.jsonl")
    evaluations = [e["loss"] for e in log if e["kind"] == "evaluation"]
    assert evaluations == [e["loss"] for e in expected_log if e["kind"] == "evaluation"]


@pytest.mark.parametrize("kind", ["sgd", "adagrad", "adadelta", "rmsprop", "adam", "adamw"])
def test_every_optimiser_learns_and_resumes_exactly(tmp_path, kind):
    optimiser = OptimiserConfig(
        kind=kind,
        learning_rate={"sgd": 0.5, "adadelta": 1.0, "adagrad": 0.05}.get(kind, 3e-3),
        momentum=0.9 if kind == "sgd" else 0.0,
        weight_decay=1e-4,
    )
    schedule = ScheduleConfig("linear", 5)
    task = toy(optimiser=optimiser, ema=0.5, schedule=schedule, save_every=17, keep=9)
    train(task, tmp_path / "whole", console=QUIET)

    shutil.copytree(tmp_path / "whole", tmp_path / "half")
    for name in ("step-00000020", "step-00000030"):  # as if it had died after step 17
        shutil.rmtree(tmp_path / "half" / "checkpoints" / name)
    train(task, tmp_path / "half", resume=True, console=QUIET)

    name, weights = last_weights(tmp_path / "half")
    expected_name, expected = last_weights(tmp_path / "whole")
    assert name == expected_name
    assert all(torch.equal(weights[key], expected[key]) for key in expected)
    losses = [e["loss"] for e in read_log(tmp_path / "whole" / "log.jsonl") if e["kind"] == "train"]
    assert losses[-1] < losses[0]


def test_scheduled_sampling_grows_from_nothing_to_its_share(tmp_path, monkeypatch):
    shares, sample = [], objectives.scheduled_sampling

    def recorded(decoder, before, state, share):
        shares.append(share)
        return sample(decoder, before, state, share)

    monkeypatch.setattr(objectives, "scheduled_sampling", recorded)
    train(toy(scheduled_sampling=0.6), tmp_path / "run", console=QUIET)
    assert shares == pytest.approx([0.6 * step / 30 for step in range(30)])


def test_weights_that_are_kept_are_the_averaged_ones(tmp_path):
    outcome = train(toy(ema=0.5), tmp_path / "run", console=QUIET)
    folder = outcome.run.newest()
    weights = load_file(folder / "weights.safetensors")
    trained = load_file(folder / "optimiser.safetensors")
    key = "decoder.output.weight"
    assert not torch.equal(weights[key], trained[f"trained.{key}"])


def test_the_average_leaves_what_does_not_learn_as_it_is():
    model = torch.nn.Linear(2, 2)
    torch.nn.init.constant_(model.weight, -0.0)  # whose sign an average of it would lose
    model.weight.requires_grad_(False)
    average = Average(model, 0.5)
    with torch.no_grad():
        model.bias.add_(1)
    before = model.bias.clone()
    average.update(100)
    with average.in_place():
        assert bool(torch.signbit(model.weight).all())
        assert bool((model.bias < before).all())


def test_early_stopping_keeps_the_best(tmp_path):
    task = toy(steps=200, patience=2, select="exact")
    scores = iter([1.0, 3.0, 2.0, 2.5, 9.0])
    task.evaluate = lambda model: {"exact": next(scores)}
    outcome = train(task, tmp_path / "run", console=QUIET)
    assert outcome.reason == "stopped early"
    assert outcome.progress.step == 40
    assert outcome.run.best().name == "step-00000020"
    assert outcome.run.newest().name == "step-00000040"


def test_less_is_better_for_losses(tmp_path):
    task = toy(select="loss")
    values = iter([5.0, 3.0, 4.0])
    task.evaluate = lambda model: {"loss": next(values)}
    assert train(task, tmp_path / "run", console=QUIET).progress.best_step == 20


def test_a_metric_that_is_not_there_is_an_error(tmp_path):
    with pytest.raises(TrainingError, match=r"training\.select=bleu .* loss, exact"):
        train(toy(select="bleu"), tmp_path / "run", console=QUIET)


@pytest.mark.parametrize("device", ["meta", "cuda:99", "nonsense"])
def test_a_device_that_cannot_be_used_is_refused_and_leaves_no_folder(tmp_path, device):
    with pytest.raises(UserError, match=f"training.device={device} cannot be used here"):
        train(toy(device=device), tmp_path / "run", console=QUIET)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("config.yaml", 'text: "half'),
        ("config.yaml", None),
        ("config.yaml", ""),
        ("training.json", '{"format": 1, "data": ""}'),
        ("training.json", '{"format": 1, "progress": {"steps": 3}}'),
        ("vocab.json", '{"kind": "char", "tokens": ["<pad>"], "merges": []}'),
        ("optimiser.safetensors", "cut"),
        ("optimiser.safetensors", None),
    ],
)
def test_a_damaged_checkpoint_is_not_resumed_and_not_touched(tmp_path, name, content):
    task = toy(steps=10)
    folder = train(task, tmp_path / "run", console=QUIET).run.newest()
    (folder / name).unlink()
    if content is not None:
        (folder / name).write_text(content)
    before = sorted(path.name for path in folder.iterdir())
    with pytest.raises(UserError):
        train(task, tmp_path / "run", resume=True, console=QUIET)
    assert sorted(path.name for path in folder.iterdir()) == before


def test_a_log_with_rubbish_in_it_does_not_stop_a_resume(tmp_path):
    task = toy(steps=20)
    run = train(task, tmp_path / "run", console=QUIET).run
    good = read_log(run.log)
    with run.log.open("ab") as file:
        file.write(b'\xff\x00\n[1]\n{"step": "x"\n{"kind": "tr')
    assert read_log(run.log) == good
    train(task, tmp_path / "run", resume=True, console=QUIET)
    assert read_log(run.log) == good


@pytest.mark.parametrize("poison", ["nan", "gradient", "explode"])
def test_a_bad_loss_stops_with_the_batch_and_keeps_the_last_checkpoint(tmp_path, poison):
    task = toy()
    model = task.build_model()
    right = model.loss

    def poisoned(batch, state=None):
        loss, state = right(batch, state)
        poisoned.calls += model.training
        if poisoned.calls < 16:
            return loss, state
        if poison == "explode":
            return replace(loss, nats=loss.nats * 1e6), state
        zero = loss.total - loss.total.detach()
        spoilt = zero * float("nan") if poison == "nan" else zero.sqrt()  # slope ∞ at 0
        return replace(loss, total=loss.total + spoilt), state

    poisoned.calls = 0
    model.loss = poisoned
    task.build_model = lambda: model
    with pytest.raises(TrainingError) as error:
        train(task, tmp_path / "run", console=QUIET)
    message = str(error.value)
    assert "step 15" in message
    assert "and others" in message  # the batch's name
    assert "step-00000010" in message
    kept = load_file(Run(tmp_path / "run").newest() / "weights.safetensors")
    assert all(torch.isfinite(tensor).all() for tensor in kept.values())


def test_evaluating_more_often_changes_nothing(tmp_path):
    train(toy(evaluate_every=30), tmp_path / "seldom", console=QUIET)
    train(toy(evaluate_every=3), tmp_path / "often", console=QUIET)
    seldom, often = last_weights(tmp_path / "seldom")[1], last_weights(tmp_path / "often")[1]
    assert all(torch.equal(seldom[key], often[key]) for key in seldom)


def test_old_checkpoints_go_but_the_best_stays(tmp_path):
    task = toy(steps=50, keep=2, select="exact")
    values = iter([1.0, 5.0, 2.0, 3.0, 4.0])
    task.evaluate = lambda model: {"exact": next(values)}
    run = train(task, tmp_path / "run", console=QUIET).run
    names = sorted(path.name for path in run.checkpoints.iterdir())
    assert names == ["step-00000020", "step-00000040", "step-00000050"]


def test_an_lstm_overfits_one_batch_to_almost_no_loss():
    torch.manual_seed(0)
    recipe = ToyRecipe()
    task = ToyTask(
        replace(recipe, model=replace(recipe.model, cell="lstm", hidden=64), examples=16)
    )
    model = task.build_model().train()
    batch = task.epoch(0)[0]
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(150):
        optimiser.zero_grad()
        loss, _ = model.loss(batch)
        loss.total.backward()
        optimiser.step()
    assert loss.nats / loss.tokens < 0.02


@pytest.mark.parametrize(
    ("schedule", "expected"),
    [
        (ScheduleConfig(), {0: 1.0, 99: 1.0}),
        (ScheduleConfig("linear", final=0.1), {0: 1.0, 50: 0.55, 100: 0.1}),
        (ScheduleConfig("cosine", warmup=10), {0: 0.1, 9: 1.0, 10: 1.0, 55: 0.5, 100: 0.0}),
        (ScheduleConfig("exponential", final=0.01), {0: 1.0, 50: 0.1, 100: 0.01}),
        (ScheduleConfig("inverse_sqrt", warmup=16), {7: 0.5, 15: 1.0, 63: 0.5}),
    ],
)
def test_the_learning_rate_follows_its_schedule(schedule, expected):
    for step, factor in expected.items():
        assert learning_rate_factor(schedule, step, 100) == pytest.approx(factor)


def test_bfloat16_rounds_the_factors_of_products_in_training_only():
    a, b = torch.randn(64, 256), torch.randn(256, 64)
    exact = a.double() @ b.double()
    with products_in("bfloat16"):
        error = float((a @ b - exact).abs().max())
    assert float((a @ b - exact).abs().max()) < 1e-4  # as before
    rounded = a.bfloat16().double() @ b.bfloat16().double()
    expected = float((rounded - exact).abs().max())
    # a processor without the type computes in float32
    assert error < 1e-4 or abs(error - expected) < 0.1 * expected


def test_bfloat16_trains_to_the_same_loss(tmp_path):
    losses = [
        train(toy(precision=precision), tmp_path / precision, console=QUIET).progress.metrics[
            "loss"
        ]
        for precision in ("float32", "bfloat16")
    ]
    assert losses[1] == pytest.approx(losses[0], rel=0.05)
