"""Classes: a sentence to one of a few names (many-to-one), with the words that it looked at."""

from pathlib import Path

from sightline.tasks.classify.recipe import ClassifyRecipe
from sightline.tasks.spec import TaskSpec, lazy

SPEC = TaskSpec(
    name="classify",
    recipe=ClassifyRecipe,
    data=lazy("sightline.tasks.classify.data:ClassData"),
    model=lazy("sightline.tasks.classify.model:saved_model"),
    reader=lazy("sightline.tasks.classify.parts:reader"),
    codec=lazy("sightline.tasks.classify.parts:codec"),
    metrics=("accuracy",),
    local_paths=("manifest", "training.initial"),
    samples=lambda recipe: (
        "How far is the moon?",
        "Who wrote the first opera?",
        "Why is the sky blue?",
    ),
    commands={"classify": "sightline.tasks.classify.commands:classify"},
    route=lazy("sightline.tasks.classify.route:route"),
    panel=Path(__file__).parent / "panel",
    published={
        "trec": {"Kim 2014": {"accuracy": 91.2}},
        "polarity": {"Kim 2014, ten folds": {"accuracy": 76.1}},
        "subjectivity": {"Kim 2014, ten folds": {"accuracy": 89.6}},
    },
)
