"""Captions for pictures (Xu et al.): a convolutional encoder, attention, one sentence."""

import json
from pathlib import Path

from sightline.tasks.caption.recipe import CaptionRecipe
from sightline.tasks.spec import TaskSpec, lazy

FOLDER = Path(__file__).parent

SPEC = TaskSpec(
    name="caption",
    recipe=CaptionRecipe,
    data=lazy("sightline.tasks.caption.data:CaptionData"),
    model=lazy("sightline.tasks.caption.model:saved_model"),
    reader=lazy("sightline.tasks.caption.parts:reader"),
    codec=lazy("sightline.tasks.caption.parts:codec"),
    about=lazy("sightline.tasks.caption.model:about"),
    auto=lazy("sightline.tasks.caption.finetune:choices"),
    thawed=lazy("sightline.tasks.caption.model:thawed"),
    medium="image",
    metrics=("bleu", "bleu_nobp", "meteor", "rouge_l", "cider"),
    right=(
        "cider",
        0.4,
    ),  # where half of Flickr8k's expert judgements say so: docs/lab/confidence.md
    published=json.loads((FOLDER / "published.json").read_text("utf-8")),  # Xu et al. table 1, ×100
    local_paths=("manifest", "features", "encoder.weights", "training.initial"),
    samples=lazy("sightline.tasks.caption.parts:sample_photos"),
    route=lazy("sightline.tasks.caption.route:route"),
    panel=FOLDER / "panel",
)
