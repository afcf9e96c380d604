"""A model that was calibrated says how often descriptions like this one are right."""

import json
import shutil
from importlib import import_module

import numpy as np
import pytest
from PIL import Image

import sightline
from sightline.data.manifest import Example, write_manifest
from sightline.errors import CheckpointError, UserError
from sightline.export.write import export
from sightline.figures import draw_reliability
from sightline.metrics.calibration import calibration_error, discrimination, logistic, reliability
from sightline.runtime.confidence import CONFIDENCE, FEATURES, Confidence, features, read_confidence
from sightline.training.merging import average_models
from sightline.types import Description
from small_models import pictures, save_captioner

MODEL = Confidence(0.1, dict(zip(FEATURES, (1.0, -2.0, 3.0, 0.05), strict=True)))


def described(**log_probs):
    return Description(" ".join(log_probs), tuple(log_probs), 0.0, tuple(log_probs.values()))


def test_features_are_probabilities_of_words():
    found = features(described(a=-0.1, dog=-1.0, on=-2.0, the=-0.2, grass=-0.5))
    expected = [np.exp(-3.8 / 5), np.exp(-1.5 / 2), np.exp(-1.0), 5]
    np.testing.assert_allclose(found, expected)
    np.testing.assert_allclose(features(described(on=-2.0)), [*[np.exp(-2.0)] * 3, 1])
    assert not features(described()).any()
    assert np.isfinite(features(described(a=-np.inf, dog=-1.0))).all()  # a prefix it never writes


def test_a_confidence_is_the_logistic_function_of_them():
    description = described(a=-0.1, dog=-1.0)
    logit = 0.1 + np.exp(-0.55) - 2 * np.exp(-1) + 3 * np.exp(-1) + 0.05 * 2
    assert MODEL.of(description) == pytest.approx(1 / (1 + np.exp(-logit)), abs=1e-4)
    for bias, sure in ((1e300, 1.0), (-1e300, 0.0)):
        assert Confidence(bias, MODEL.weights).of(description) == sure


def test_logistic_regression_finds_the_weights_that_made_the_data():
    rng = np.random.default_rng(1)
    rows = rng.normal(3, 2, (40_000, 2))
    p = 1 / (1 + np.exp(-(0.5 + rows @ [1.0, -1.5])))
    bias, weights = logistic(rows, (rng.random(len(p)) < p).astype(float))
    assert bias == pytest.approx(0.5, abs=0.1)
    np.testing.assert_allclose(weights, [1.0, -1.5], atol=0.05)
    with pytest.raises(UserError, match="some right and some wrong"):
        logistic(rows, np.ones(len(rows)))


def test_reliability_by_hand():
    confidence = np.array([0.1, 0.9, 0.2, 0.7])
    right = np.array([0.0, 1.0, 1.0, 0.0])
    np.testing.assert_allclose(reliability(confidence, right, 2), [[0.15, 0.5, 2], [0.8, 0.5, 2]])
    assert calibration_error(confidence, right, 2) == pytest.approx((0.35 + 0.3) / 2)
    assert discrimination(confidence, right) == 3 / 4  # 0.9 above both, 0.2 above one of them
    assert discrimination(np.full(4, 0.5), right) == 0.5


@pytest.fixture(scope="module")
def calibrated(tmp_path_factory, run_cli):
    """An untrained captioner whose captions are right for half of the pictures, calibrated."""
    folder = tmp_path_factory.mktemp("calibrated")
    checkpoint = save_captioner(folder / "captioner")
    export(checkpoint, folder / "export")
    model = sightline.load(folder / "export")
    assert model.describe(next(pictures(1))).confidence is None
    examples = []
    for number, pixels in enumerate(pictures(24)):
        path = folder / f"{number}.png"
        Image.fromarray(pixels).save(path)
        written = model.describe(path)
        targets = (written.text,) if written.text and number % 3 else ("nothing like it at all",)
        split = "dev" if number < 16 else "test"
        examples.append(Example(str(number), split, targets, "image", path))
    write_manifest(folder / "data.jsonl", examples)
    figure = folder / "reliability.svg"
    made = run_cli(
        "calibrate", folder / "export", "--data", folder / "data.jsonl", "--figure", figure
    )
    assert made.returncode == 0, made.stderr
    return folder, made.stdout


def test_calibrating_gives_every_description_a_confidence(calibrated, run_cli):
    folder, said = calibrated
    assert "CIDEr of at least 40" in said
    assert "data test: 8 items" in said
    assert "data test" in (folder / "reliability.svg").read_text()
    model = sightline.load(folder / "export")
    found = model.describe([folder / f"{n}.png" for n in range(6)], n_best=2)
    assert len({each.confidence for each in found}) > 2
    for each in (*found, found[0].alternatives[0]):
        assert each.confidence == model.confidence.of(each)
    shown = run_cli("describe", folder / "3.png", "--model", folder / "export", "--json")
    assert json.loads(shown.stdout)["confidence"] == found[3].confidence


def test_a_batch_has_the_confidences_of_its_singles(calibrated):
    folder, _ = calibrated
    model = sightline.load(folder / "export")
    paths = [folder / f"{n}.png" for n in range(10)]
    together = [each.confidence for each in model.describe(paths)]
    assert together == [model.describe(path).confidence for path in paths]
    *_, streamed = model.stream(paths[4])
    assert streamed.confidence == together[4]


def test_given_texts_and_ensembles_have_none(calibrated):
    folder, _ = calibrated
    model = sightline.load(folder / "export")
    assert model.force([folder / "0.png"], ["a dog"])[0].confidence is None
    assert model.ensemble(model).describe(folder / "0.png").confidence is None


def test_an_export_knows_its_confidence_by_its_hash(calibrated, tmp_path):
    folder, _ = calibrated
    shutil.copytree(folder / "export", tmp_path / "export")
    path = tmp_path / "export" / CONFIDENCE
    path.write_text(path.read_text().replace('"bias": ', '"bias": 1'))
    with pytest.raises(CheckpointError, match="damaged or was changed"):
        sightline.load(tmp_path / "export")


def test_a_run_keeps_its_confidence_in_an_export_but_not_in_a_mean(calibrated, tmp_path):
    folder, _ = calibrated
    shutil.copytree(folder / "captioner", tmp_path / "run")
    MODEL.save(tmp_path / "run", {})
    assert sightline.load(tmp_path / "run").confidence == MODEL
    export(tmp_path / "run", tmp_path / "export")
    assert sightline.load(tmp_path / "export").confidence == MODEL
    average_models([tmp_path / "run"] * 2, tmp_path / "mean")
    assert sightline.load(tmp_path / "mean").confidence is None


@pytest.mark.parametrize(
    "content", ["", "[]", '{"bias": 0}', '{"bias": NaN, "weights": {}}', "[" * 100_000]
)
def test_a_damaged_confidence_is_an_error(tmp_path, content):
    (tmp_path / CONFIDENCE).write_text(content)
    with pytest.raises(CheckpointError, match="is damaged"):
        read_confidence(tmp_path)


def test_a_task_without_a_bar_cannot_be_calibrated(run_cli):
    refused = run_cli("calibrate", "shakespeare", "--data", "pairs.jsonl")
    assert refused.returncode == 2
    assert "does not say which of its outputs are right" in refused.stderr


def test_the_bar_of_captions_is_where_most_experts_agree():
    rising = import_module("benchmarks.human_judgements").rising
    scores = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    assert rising(scores, np.array([0, 1, 0, 1, 1])) == [(0.1, 0, 1), (0.2, 0.5, 2), (0.4, 1, 2)]


def test_a_figure_has_a_curve_for_each_data_set(tmp_path):
    rng = np.random.default_rng(0)
    sets = {name: (rng.random(50), rng.integers(0, 2, 50) * 1.0) for name in ("one", "two")}
    draw_reliability(sets, tmp_path / "figure.svg")
    text = (tmp_path / "figure.svg").read_text()
    assert "one: 50 items" in text
    assert "two: 50 items" in text
