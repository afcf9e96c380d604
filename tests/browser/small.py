"""The small models that the page is tested and shown with, trained on the spot."""

from dataclasses import replace
from pathlib import Path

from rich.console import Console

import sightline
import toy_stories
import toy_treebank
from sightline.tasks import build_task
from sightline.training.loop import train
from toy_language import train_toy

RECIPES = Path(sightline.__file__).parent / "recipes"


def train_others(folder, recipe, hard_steps=60, toy_steps=160):
    """In addition to the soft captioner of shapes in folder/run (with this recipe) a hard one, and
    a translator of a toy language; all three folders by name."""
    attention = replace(recipe.model.attention, hard=True)
    hard = replace(
        recipe,
        model=replace(recipe.model, attention=attention),
        training=replace(recipe.training, steps=hard_steps),
    )
    train(build_task(hard), folder / "hard", console=Console(quiet=True))
    (folder / "toy").mkdir()
    train_toy(folder / "toy", steps=toy_steps)
    return {
        "shapes": folder / "run",
        "shapes-hard": folder / "hard",
        "toy": folder / "toy" / "run",
    }


def described(what):
    return f"description=A small model of {what}, trained to show this page"


def train_parser(folder):
    folder.mkdir()
    toy_treebank.write_manifest(folder / "toy.jsonl")
    fewer = ("training.steps=120", "training.evaluate_every=120")
    toy_treebank.train_parser(folder, "run", *fewer, described("short sentences"))
    return folder / "run"


def train_reader(folder):
    folder.mkdir()
    toy_stories.write_manifest(folder / "toy.jsonl")
    toy_stories.train_reader(folder, "run", described("stories of one fact"))
    return folder / "run"
