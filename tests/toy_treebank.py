"""Trees of a toy grammar, and parsers trained on them in seconds."""

import json
import random

from rich.console import Console

from sightline.data.trees import Tree
from sightline.tasks import build_task, read_recipe
from sightline.training.loop import train

LEXICON = {
    "DT": ["the", "a", "every"],
    "NN": ["dog", "cat", "house", "garden", "man"],
    "VBZ": ["sees", "likes", "finds"],
    "IN": ["in", "behind"],
}
RULES = {
    "S": [["NP", "VP", "."]],
    "NP": [["DT", "NN"], ["DT", "NN"], ["NP", "PP"]],
    "VP": [["VBZ", "NP"]],
    "PP": [["IN", "NP"]],
}


def grow(rng, label="S", depth=0):
    if label == ".":
        return Tree(".", word=".")
    if label in LEXICON:
        return Tree(label, word=rng.choice(LEXICON[label]))
    rule = rng.choice(RULES[label][: 2 if depth > 3 else None])
    return Tree(label, tuple(grow(rng, part, depth + 1) for part in rule))


def write_manifest(path, count=400, seed=0):
    rng = random.Random(seed)
    with open(path, "w") as file:
        for number in range(count):
            tree = grow(rng)
            split = "dev" if number % 10 == 0 else "test" if number % 10 == 1 else "train"
            words = " ".join(str(leaf.word) for leaf in tree.leaves())
            line = {"id": f"t{number}", "source": words, "targets": [tree.brackets()]}
            file.write(json.dumps(line | {"split": split}) + "\n")
    return path


RECIPE = {
    "task": "parse",
    "min_count": 1,
    "longest": 60,
    "batching": {"kind": "token_budget", "size": 1200},
    "encoder": {"cell": "gru", "embedding": 16, "hidden": 24},
    "model": {
        "cell": "lstm",
        "embedding": 16,
        "hidden": 32,
        "attention": {"size": 24},
        "gate": False,
    },
    "search": {"beam": 2, "max_length": 300},
    "training": {
        "steps": 200,
        "evaluate_every": 200,
        "select": "bracket_f1",
        "tensorboard": False,
        "optimiser": {"learning_rate": 0.01},
    },
}


def train_parser(folder, name="run", *overrides):
    """A run in folder/name, on the folder's manifest."""
    path = folder / f"{name}.yaml"
    path.write_text(json.dumps(RECIPE | {"manifest": str(folder / "toy.jsonl")}))  # JSON is YAML
    recipe = read_recipe(path, overrides)
    return train(build_task(recipe), folder / name, console=Console(quiet=True))
