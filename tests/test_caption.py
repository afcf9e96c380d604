"""Captioning whole: pictures that the test draws, a manifest, training, and descriptions."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image
from rich.console import Console

import sightline
from shape_pictures import COLOURS, SHAPES
from sightline.config import AttentionConfig, BatchingConfig
from sightline.errors import DataError, UserError
from sightline.tasks.caption.data import CaptionData
from sightline.training.journal import read_log
from sightline.training.loop import train


def test_it_learns_to_name_colour_and_shape(shapes):
    folder, _, outcome = shapes
    assert outcome.progress.metrics["cider"] > 5  # of 10: colour and shape are nearly always right
    model = sightline.load(folder / "run")
    right = 0
    for number in range(84, 96):
        text = model.describe(folder / f"{number}.png").text
        right += list(COLOURS)[number % 3] in text and SHAPES[(number // 3) % 2] in text
    assert right >= 10


def test_a_batch_equals_its_singles(shapes):
    folder, _, _ = shapes
    model = sightline.load(folder / "run")
    paths = [folder / f"{number}.png" for number in range(84, 90)]
    together = model.describe(paths)
    for path, mine in zip(paths, together, strict=True):
        alone = model.describe(path)
        assert alone.text == mine.text
        np.testing.assert_allclose(alone.attention, mine.attention, atol=1e-3)


def test_lossless_copies_and_pixels_give_the_same_caption(shapes):
    folder, _, _ = shapes
    model = sightline.load(folder / "run")
    picture = Image.open(folder / "90.png")
    bitmap, webp = io.BytesIO(), io.BytesIO()
    picture.save(bitmap, "BMP")
    picture.save(webp, "WEBP", lossless=True)
    expected = model.describe(folder / "90.png")
    for other in (bitmap.getvalue(), webp.getvalue(), np.asarray(picture)):
        assert model.describe(other).to_json() == expected.to_json()


def test_a_description_says_where_it_looked(shapes):
    folder, _, _ = shapes
    description = sightline.load(folder / "run").describe(folder / "91.png", n_best=2)
    rows, columns = description.layout.shape
    assert description.attention.shape == (len(description.tokens), rows * columns)
    np.testing.assert_allclose(description.attention.sum(1), 1, rtol=1e-4)
    assert " ".join(description.tokens) == description.text
    assert len(description.alternatives) == 1
    assert description.alternatives[0].score <= description.score
    json.dumps(description.to_json())


def test_the_prefix_is_honoured_and_an_unknown_word_refused(shapes):
    folder, _, _ = shapes
    model = sightline.load(folder / "run")
    assert model.describe(folder / "92.png", prefix="There is").text.startswith("there is a ")
    with pytest.raises(UserError, match="'purple'"):
        model.describe(folder / "92.png", prefix="a purple")


@pytest.mark.parametrize(
    "changes",
    [
        {"attention": AttentionConfig(kind="none"), "context": ("first",)},
        {"cell": "rnn", "attention": AttentionConfig(kind="none"), "context": ("every",)},
        {"layers": 2, "attention": AttentionConfig(kind="none"), "context": ("every",)},
        {"attention": AttentionConfig(size=16, hard=True)},
    ],
)
def test_the_other_captioners_of_2015_are_only_configuration(shapes, tmp_path, changes):
    _, recipe, _ = shapes
    recipe = replace(
        recipe,
        model=replace(recipe.model, **changes),
        training=replace(recipe.training, steps=40, evaluate_every=40),
    )
    outcome = train(CaptionData(recipe), tmp_path / "run", console=Console(quiet=True))
    assert outcome.progress.metrics["bleu_1"] > 0.3


def test_self_critical_training_begins_with_a_model_and_raises_its_reward(shapes, tmp_path):
    folder, recipe, before = shapes
    training = replace(
        recipe.training,
        steps=40,
        evaluate_every=40,
        initial=str(folder / "run"),
        optimiser=replace(recipe.training.optimiser, learning_rate=1e-3),
    )
    recipe = replace(recipe, self_critical=4, training=training, batching=BatchingConfig(size=16))
    outcome = train(CaptionData(recipe), tmp_path / "run", console=Console(quiet=True))
    rewards = [e["reward"] for e in read_log(outcome.run.log) if e["kind"] == "train"]
    assert rewards[-1] > rewards[0]
    assert outcome.progress.metrics["cider"] >= 0.95 * before.progress.metrics["cider"]


def test_hard_attention_begins_with_soft_attention(shapes, tmp_path):
    folder, recipe, before = shapes
    hard = replace(recipe.model, attention=replace(recipe.model.attention, hard=True))
    training = replace(recipe.training, steps=20, evaluate_every=20, initial=str(folder / "run"))
    recipe = replace(recipe, model=hard, training=training)
    outcome = train(CaptionData(recipe), tmp_path / "run", console=Console(quiet=True))
    assert outcome.progress.metrics["cider"] >= 0.9 * before.progress.metrics["cider"]
    log = [entry for entry in read_log(outcome.run.log) if entry["kind"] == "train"]
    assert {"reward", "baseline", "gradient_norm", "entropy"} <= set(log[-1])


def test_a_manifest_without_a_dev_split_is_refused(shapes, tmp_path):
    folder, recipe, _ = shapes
    line = {"id": "1", "image": str(folder / "1.png"), "targets": ["a"], "split": "train"}
    (tmp_path / "bad.jsonl").write_text(json.dumps(line))
    with pytest.raises(DataError, match='no item of split "dev"'):
        CaptionData(replace(recipe, manifest=str(tmp_path / "bad.jsonl")))
