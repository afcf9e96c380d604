"""Question answering (Sukhbaatar et al. 2015): facts as the context set, attended in hops."""

from pathlib import Path

from sightline.tasks.answer.recipe import AnswerRecipe
from sightline.tasks.spec import TaskSpec, lazy

SPEC = TaskSpec(
    name="answer",
    recipe=AnswerRecipe,
    data=lazy("sightline.tasks.answer.data:StoryData"),
    model=lazy("sightline.tasks.answer.data:saved_model"),
    reader=lazy("sightline.tasks.answer.parts:reader"),
    codec=lazy("sightline.tasks.answer.parts:codec"),
    metrics=("accuracy",),
    reference=lambda answer: answer.strip().lower(),
    local_paths=("manifest", "training.initial"),
    samples=lambda recipe: (
        "Mary went to the kitchen.\nJohn went to the garden.\nWhere is Mary?",
        "Daniel took the apple.\nDaniel went to the kitchen.\nMary went to the office.\n"
        "Where is the apple?",
        "John moved to the bedroom.\nMary went to the kitchen.\nIs John in the kitchen?",
    ),
    commands={"answer": "sightline.tasks.answer.commands:answer"},
    route=lazy("sightline.tasks.answer.route:route"),
    panel=Path(__file__).parent / "panel",
)
