"""Descriptions of video clips (Cho et al. §IV-C): vectors of frames and of motion, attention over
time, one sentence. Words, decoder and search are those of captions for pictures."""

import json
from pathlib import Path

from sightline.tasks.clip.recipe import ClipRecipe
from sightline.tasks.spec import TaskSpec, lazy

FOLDER = Path(__file__).parent

SPEC = TaskSpec(
    name="clip",
    recipe=ClipRecipe,
    data=lazy("sightline.tasks.clip.data:ClipData"),
    model=lazy("sightline.tasks.clip.model:saved_model"),
    reader=lazy("sightline.tasks.clip.parts:reader"),
    codec=lazy("sightline.tasks.caption.parts:codec"),
    about=lazy("sightline.tasks.clip.model:about"),
    medium="video",
    metrics=("bleu", "meteor", "rouge_l", "cider", "perplexity"),
    published=json.loads((FOLDER / "published.json").read_text("utf-8")),  # Cho et al. table IV
    local_paths=("manifest", "features", "encoder.weights", "clip.weights", "training.initial"),
    samples=lazy("sightline.tasks.clip.parts:sample_clips"),
    route=lazy("sightline.tasks.clip.route:route"),
    panel=FOLDER / "panel",
)
