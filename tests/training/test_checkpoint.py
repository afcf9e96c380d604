"""Checkpoints: whole or not there, data only, and clear about what is wrong with them."""

import json

import pytest
import torch
from rich.console import Console

from sightline.config import TrainingConfig
from sightline.errors import CheckpointError, TrainingError
from sightline.training import checkpoint as files
from sightline.training.checkpoint import Checkpoint, Run
from sightline.training.loop import train
from toy_task import ToyRecipe, ToyTask


def small(step=1, **tensors):
    return Checkpoint(step, {"config.yaml": "a: 1\n"}, tensors or {"w": torch.ones(3)}, {}, {})


def test_a_checkpoint_comes_back_as_it_was(tmp_path):
    run = Run(tmp_path / "run")
    run.create()
    weights = {"a": torch.randn(3, 4), "b": torch.arange(5)}
    folder = run.save(small(7, **weights), is_best=True, keep=1)
    assert run.newest() == run.best() == folder
    again = files.load_tensors(folder / files.WEIGHTS)
    assert all(torch.equal(again[name], weights[name]) for name in weights)
    assert files.load_training(folder)["step"] == 7


def test_a_failed_write_leaves_the_last_checkpoint_alone(tmp_path, monkeypatch):
    run = Run(tmp_path / "run")
    run.create()
    good = run.save(small(1), is_best=True, keep=2)

    def full_disk(*arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files, "save_file", full_disk)
    with pytest.raises(
        TrainingError, match=r"No space left.*last good checkpoint is .*step-00000001"
    ):
        run.save(small(2), is_best=True, keep=2)
    assert run.newest() == run.best() == good
    assert [path.name for path in run.checkpoints.iterdir()] == ["step-00000001"]


def test_a_half_written_checkpoint_is_not_one(tmp_path):
    run = Run(tmp_path / "run")
    run.create()
    (run.checkpoints / ".partial-step-00000009").mkdir()
    assert run.newest() is None
    run.save(small(9), is_best=False, keep=2)
    assert run.newest().name == "step-00000009"


def test_best_cannot_point_outside_the_run(tmp_path):
    run = Run(tmp_path / "run")
    run.create()
    (tmp_path / "elsewhere").mkdir()
    (run.folder / "best").write_text("../../elsewhere")
    assert run.best() is None


def test_no_file_of_a_checkpoint_is_a_pickle(tmp_path):
    task = ToyTask(ToyRecipe(examples=70, training=TrainingConfig(steps=2, tensorboard=False)))
    run = train(task, tmp_path / "run", console=Console(quiet=True)).run
    for path in run.newest().iterdir():
        if path.suffix == ".safetensors":
            header = int.from_bytes(path.read_bytes()[:8], "little")
            json.loads(path.read_bytes()[8 : 8 + header])
        else:
            path.read_text(encoding="utf-8")


def test_weights_of_another_model_are_named(tmp_path):
    run = Run(tmp_path / "run")
    run.create()
    folder = run.save(small(1, weight=torch.ones(2, 3), extra=torch.ones(1)), is_best=False, keep=1)
    with pytest.raises(
        CheckpointError,
        match=r"bias is missing; extra is not in this model; weight has shape \(2, 3\)",
    ):
        files.load_weights(torch.nn.Linear(4, 2), folder)


def test_a_newer_format_is_refused(tmp_path):
    run = Run(tmp_path / "run")
    run.create()
    folder = run.save(small(1), is_best=False, keep=1)
    content = json.loads((folder / files.TRAINING).read_text())
    (folder / files.TRAINING).write_text(json.dumps(content | {"format": files.FORMAT + 1}))
    with pytest.raises(CheckpointError, match="newer Sightline"):
        files.load_training(folder)


@pytest.mark.parametrize("cut", [0, 7, 60])
def test_a_file_cut_short_is_refused(tmp_path, cut):
    run = Run(tmp_path / "run")
    run.create()
    path = run.save(small(1), is_best=False, keep=1) / files.WEIGHTS
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(CheckpointError, match="damaged or cut short"):
        files.load_tensors(path)
