"""Means of several models' weights."""

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

pytest.importorskip("torch", reason="the train extra is not installed")

from sightline.errors import CheckpointError
from sightline.training.merging import average_models


def model(folder, seed, vocab="{}", size=3):
    folder.mkdir()
    weights = np.random.default_rng(seed).normal(size=(size, 2)).astype(np.float32)
    save_file({"weights": weights}, folder / "weights.safetensors")
    (folder / "vocab.json").write_text(vocab)
    (folder / "config.yaml").write_text(f"seed: {seed}\n")
    return folder


def test_the_mean_of_models_has_all_else_from_the_last(tmp_path):
    several = [model(tmp_path / str(seed), seed) for seed in range(3)]
    assert average_models(several, tmp_path / "mean") == several
    each = [load_file(path / "weights.safetensors")["weights"] for path in several]
    mean = load_file(tmp_path / "mean" / "weights.safetensors")["weights"]
    np.testing.assert_allclose(mean, np.mean(each, axis=0), atol=1e-7)
    assert (tmp_path / "mean" / "config.yaml").read_text() == "seed: 2\n"


def test_what_all_share_stays_bit_for_bit(tmp_path):
    several = [model(tmp_path / str(number), seed=1) for number in range(3)]
    for folder in several:
        save_file({"weights": np.float32([[-0.0, 0.1]])}, folder / "weights.safetensors")
    average_models(several, tmp_path / "mean")
    mean = load_file(tmp_path / "mean" / "weights.safetensors")["weights"]
    assert mean.tobytes() == np.float32([[-0.0, 0.1]]).tobytes()


@pytest.mark.parametrize("other", [{"vocab": "[]"}, {"size": 4}])
def test_models_that_do_not_fit_together_are_refused(tmp_path, other):
    several = [model(tmp_path / "a", 0), model(tmp_path / "b", 1, **other)]
    with pytest.raises(CheckpointError):
        average_models(several, tmp_path / "mean")
    assert not (tmp_path / "mean").exists()


def test_models_that_began_differently_are_pointed_out(tmp_path):
    said = []
    several = [model(tmp_path / str(seed), seed, size=50) for seed in range(2)]
    average_models(several, tmp_path / "unrelated", said.append)
    assert len(said) == 1
    assert "were not trained on from the same model" in said[0]
    near = load_file(several[0] / "weights.safetensors")["weights"]
    moved = near + np.random.default_rng(9).normal(size=near.shape).astype(np.float32) / 2
    save_file({"weights": moved}, several[1] / "weights.safetensors")
    average_models(several, tmp_path / "related", said.append)
    assert len(said) == 1
