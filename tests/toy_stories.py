"""Stories in the manner of bAbI's first task, and a memory network trained on them in seconds."""

import json
import random

from rich.console import Console

from sightline.tasks import build_task, read_recipe
from sightline.training.loop import train

PEOPLE, PLACES = ["Mary", "John", "Sandra"], ["garden", "kitchen", "office", "hallway"]
VERBS = ["went to", "moved to", "travelled to"]


def story(rng):
    """Facts, a question, its answer, and the fact that supports it."""
    facts, where = [], {}
    for number in range(rng.randint(1, 6)):
        person, place = rng.choice(PEOPLE), rng.choice(PLACES)
        facts.append(f"{person} {rng.choice(VERBS)} the {place}.")
        where[person] = (place, number)
    person = rng.choice(sorted(where))
    return facts, f"Where is {person}?", *where[person]


def write_manifest(path, count=700, seed=0):
    rng = random.Random(seed)
    with open(path, "w") as file:
        for number in range(count):
            facts, question, answer, support = story(rng)
            split = "test" if number % 10 == 1 else "train"
            line = {"id": f"s{number}", "source": "\n".join([*facts, question]), "split": split}
            line |= {"targets": [answer], "meta": {"supports": [support]}}
            file.write(json.dumps(line) + "\n")
    return path


RECIPE = {
    "task": "answer",
    "model": {"size": 16, "hops": 2, "memory": 8, "longest": 8},
    "training": {
        "steps": 250,
        "evaluate_every": 250,
        "select": "training_loss",
        "tensorboard": False,
        "optimiser": {"learning_rate": 0.02},
    },
}


def train_reader(folder, name="run", *overrides):
    """A run in folder/name, on the folder's manifest."""
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps(RECIPE | {"manifest": str(folder / "toy.jsonl")}))  # JSON is YAML
    recipe = read_recipe(path, overrides)
    return train(build_task(recipe), folder / name, console=Console(quiet=True))
