"""The lecture's small things: min-char-rnn, the toy of "hello", and gradients over time."""

import re
from pathlib import Path

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

from sightline.cli import app
from sightline.commands.recipes import find_recipe
from sightline.errors import UserError
from sightline.tasks import build_task, read_recipe
from sightline.training.optimisers import build_optimiser, clip_gradient


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.output


def refused(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert isinstance(result.exception, UserError)
    return str(result.exception)


@pytest.fixture(scope="module")
def hello(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hello")
    (folder / "hello.txt").write_text("hello")
    text = folder / "hello.txt"
    run(
        "train", "hello", f"text={text}", f"held_out_text={text}", "training.tensorboard=false",
        "--out", folder / "run",
    )  # fmt: skip
    return folder


def test_four_letters_are_learned_in_seconds(hello):
    said = run("sample", hello / "run", "--prompt", "h", "--temperature", 0, "--length", 10)
    assert said.strip() == "hello"


def test_min_char_rnn_is_the_lectures(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("the quick brown fox jumps over the lazy dog\n" * 30)
    task = build_task(read_recipe(find_recipe(Path("min-char-rnn")), [f"text={text}"]))
    recipe = task.recipe
    model = task.build_model()
    assert model.decoder.recurrent.weights(0)[1].shape == (100, 100)
    assert task.carries_state
    batch = task.epoch(0)[0]
    assert batch.targets.shape == (1, 26)
    loss, _ = model.loss(batch)
    assert float(loss.total.detach()) == pytest.approx(loss.nats, rel=1e-5)  # summed, not the mean
    # one step by hand: θ ← θ − 0.1 g / √(g²), with g cut to ±5
    (100 * loss.total).backward()  # so that some numbers are cut
    optimiser = build_optimiser(recipe.training.optimiser, model)
    before = [p.detach().clone() for p in model.parameters()]
    gradients = [p.grad.clone() for p in model.parameters()]
    assert max(float(g.abs().max()) for g in gradients) > 5
    config = recipe.training.optimiser
    norm = clip_gradient(model.parameters(), config.clip_norm, config.clip_value)
    assert norm == pytest.approx(
        float(torch.cat([g.flatten() for g in gradients]).norm()), rel=1e-4
    )
    optimiser.step()
    for parameter, old, g in zip(model.parameters(), before, gradients, strict=True):
        cut = g.clamp(-5, 5)
        expected = old - 0.1 * cut / (cut.square().sqrt() + 1e-10)
        torch.testing.assert_close(parameter.detach(), expected, rtol=1e-4, atol=1e-5)
        torch.testing.assert_close(parameter.grad, cut)


def test_gradients_of_new_cells_and_of_a_run(hello, tmp_path):
    picture = tmp_path / "g.png"
    table = run("gradients", "--steps", 12, "--out", picture)
    assert picture.stat().st_size > 5_000
    rows = [re.split(r"\s{2,}", line.strip()) for line in table.splitlines()[1:6]]
    assert [row[0] for row in rows] == ["vanilla"] * 3 + ["GRU", "LSTM"]
    fading, _, exploding = (float(row[-1]) for row in rows[:3])
    assert fading < 0.5**11
    assert exploding > 100
    text = tmp_path / "text.txt"
    text.write_text("hello" * 5)
    table = run("gradients", hello / "run", "--text", text, "--steps", 20, "--out", picture)
    values = [float(x) for x in table.splitlines()[1].split()[2:]]
    assert len(values) == 4  # σ(U), and after 1, 10, 20 steps
    assert np.isfinite(values).all()


def test_what_has_no_gradients_is_refused(hello, tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("hello")
    out = ("--out", tmp_path / "g.png")
    short = refused("gradients", hello / "run", "--text", text, "--steps", 20, *out)
    assert "5 tokens" in short
    assert "an export" in refused("gradients", "shakespeare", *out)
    assert "g.docx" in refused("gradients", "--steps", 2, "--out", tmp_path / "g.docx")
