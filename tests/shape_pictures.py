"""Pictures of coloured shapes, and a captioner that learns to name them in seconds."""

import json

import numpy as np
from PIL import Image, ImageDraw
from rich.console import Console

from sightline.config import (
    AttentionConfig,
    BatchingConfig,
    DecoderConfig,
    ImageEncoderConfig,
    OptimiserConfig,
    SearchConfig,
    TrainingConfig,
)
from sightline.tasks.caption.data import CaptionData
from sightline.tasks.caption.recipe import CaptionRecipe
from sightline.training.loop import train

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


def train_shapes(folder):
    """Draw pictures of coloured shapes, train a captioner on them for seconds: recipe, outcome."""
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
    outcome = train(CaptionData(recipe), folder / "run", console=Console(quiet=True))
    return recipe, outcome
