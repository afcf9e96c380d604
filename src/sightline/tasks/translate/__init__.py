"""Translation (D §IV-A): a recurrent encoder of the source, attention, and the same decoder."""

import json
from pathlib import Path

from sightline.tasks.spec import TaskSpec, lazy
from sightline.tasks.translate.recipe import TranslateRecipe

FOLDER = Path(__file__).parent

SPEC = TaskSpec(
    name="translate",
    recipe=TranslateRecipe,
    data=lazy("sightline.tasks.translate.data:TranslationData"),
    model=lazy("sightline.tasks.translate.model:saved_model"),
    reader=lazy("sightline.tasks.translate.parts:reader"),
    codec=lazy("sightline.tasks.translate.parts:codec"),
    metrics=("sacrebleu", "chrf", "perplexity"),
    # Cho et al. tables I and II
    published=json.loads((FOLDER / "published.json").read_text("utf-8")),
    right=("chrf", 50),  # about half of everyday sentences: docs/lab/confidence.md
    local_paths=("manifest", "fusion.translator", "fusion.language_model", "training.initial"),
    files=("lexicon.json",),
    samples=lambda recipe: (
        "A brown dog runs on the beach.",
        "Hi. Where is the train station?",
        "My sister is reading a book.",
    ),
    commands={
        "translate": "sightline.tasks.translate.commands:translate",
        "align": "sightline.tasks.translate.commands:align",
    },
    route=lazy("sightline.tasks.translate.route:route"),
    panel=FOLDER / "panel",
)
