"""Parsing as translation (Vinyals et al. 2015): a sentence in, its linearised tree out."""

from pathlib import Path

from sightline.tasks.parse.recipe import ParseRecipe
from sightline.tasks.spec import TaskSpec, lazy

SPEC = TaskSpec(
    name="parse",
    recipe=ParseRecipe,
    data=lazy("sightline.tasks.parse.data:TreeData"),
    model=lazy("sightline.tasks.parse.data:saved_model"),
    reader=lazy("sightline.tasks.parse.parts:reader"),
    codec=lazy("sightline.tasks.parse.parts:codec"),
    metrics=("brackets",),
    local_paths=("manifest", "training.initial"),
    samples=lambda recipe: ("The old man saw a dog in the park.",),
    commands={"parse": "sightline.tasks.parse.commands:parse"},
    route=lazy("sightline.tasks.parse.route:route"),
    panel=Path(__file__).parent / "panel",
)
