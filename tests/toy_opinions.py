"""Opinions of good and bad words, and a classifier trained on them in seconds."""

import json
from pathlib import Path

import numpy as np
from rich.console import Console

import sightline
from sightline.tasks import build_task, read_recipe
from sightline.training.loop import train

RECIPE = Path(sightline.__file__).parent / "recipes" / "polarity.yaml"
GOOD, BAD = ("fine", "bright", "lovely"), ("dull", "grey", "clumsy")
FILLERS = ("the", "film", "was", "and", "rather", "quite", ",", "acting")


def sentences(count, seed=0):
    """Texts and their classes."""
    rng = np.random.default_rng(seed)
    for _ in range(count):
        label = int(rng.integers(2))
        words = [str(word) for word in rng.choice(FILLERS, rng.integers(2, 9))]
        words.insert(int(rng.integers(len(words) + 1)), str(rng.choice((BAD, GOOD)[label])))
        yield " ".join(words), ("very bad", "good")[label]


def write_manifest(path):
    with open(path, "w") as file:
        for number, (text, label) in enumerate(sentences(500)):
            split = "train" if number < 400 else "dev" if number < 450 else "test"
            line = {"id": str(number), "source": text, "targets": [label], "split": split}
            file.write(json.dumps(line) + "\n")
    return path


SMALL = (
    *("vocabulary.min_count=1", "encoder.embedding=12", "encoder.hidden=8"),
    *("model.hidden=12", "model.attention.size=8", "training.steps=120", "training.seed=3"),
    *("training.evaluate_every=60", "training.tensorboard=false", "training.ema=0.9"),
    *("training.optimiser.learning_rate=0.02", "encoder.dropout=0.1"),
)


def train_classifier(folder, name="run", *overrides):
    """A run in folder/name, on the folder's data.jsonl."""
    recipe = read_recipe(RECIPE, [f"manifest={folder}/data.jsonl", *SMALL, *overrides])
    train(build_task(recipe), folder / name, console=Console(quiet=True))
    return folder / name
