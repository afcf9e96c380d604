"""The small models that the page is tested with, trained on the spot."""

from dataclasses import replace

from rich.console import Console

from sightline.tasks import build_task
from sightline.training.loop import train
from toy_language import train_toy


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
