"""Language models (D §II): p(w_1 … w_T) by characters, words or BPE pieces of a text file."""

from pathlib import Path

from sightline.tasks.language_model.recipe import LanguageModelRecipe
from sightline.tasks.spec import TaskSpec, lazy

SPEC = TaskSpec(
    name="language_model",
    recipe=LanguageModelRecipe,
    data=lazy("sightline.tasks.language_model.data:TextData"),
    model=lazy("sightline.tasks.language_model.model:saved_model"),
    reader=lazy("sightline.tasks.language_model.parts:reader"),
    codec=lazy("sightline.tasks.language_model.parts:codec"),
    metrics=("loss", "bits", "perplexity"),
    defaults={"temperature": 1.0, "length": 500},
    evaluate=lazy("sightline.tasks.language_model.parts:evaluate"),
    local_paths=("text", "held_out_text", "like", "training.initial"),
    demo=lazy("sightline.tasks.language_model.demo:demo"),
    commands={
        "sample": "sightline.tasks.language_model.commands:sample",
        "gradients": "sightline.tasks.language_model.commands:gradients",
    },
    route=lazy("sightline.tasks.language_model.route:route"),
    panel=Path(__file__).parent / "panel",
)
