"""Pointer networks (Vinyals et al. 2015): the output is where the attention points."""

from pathlib import Path

from sightline.tasks.point.recipe import PointRecipe
from sightline.tasks.spec import TaskSpec, lazy

SPEC = TaskSpec(
    name="point",
    recipe=PointRecipe,
    data=lazy("sightline.tasks.point.data:PointData"),
    model=lazy("sightline.tasks.point.model:saved_model"),
    reader=lazy("sightline.tasks.point.parts:reader"),
    codec=lazy("sightline.tasks.point.parts:codec"),
    metrics=("exact",),
    evaluate=lazy("sightline.tasks.point.evaluation:evaluate"),
    local_paths=("training.initial",),
    samples=lazy("sightline.tasks.point.problems:sample"),
    commands={"point": "sightline.tasks.point.commands:point"},
    route=lazy("sightline.tasks.point.route:route"),
    panel=Path(__file__).parent / "panel",
)
