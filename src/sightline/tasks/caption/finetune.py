"""What a recipe's `auto` stands for: a captioner that is trained on, with as much data as there is.

The rules were tried on two sets of 160 pictures (docs/lab/finetuning.md), not on larger ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from sightline import config
from sightline.config import DataConfig
from sightline.data.manifest import read_data
from sightline.errors import ConfigError
from sightline.runtime.model_folder import find_model
from sightline.tasks.caption.recipe import INITIAL, CaptionRecipe
from sightline.tasks.spec import Choice

PICTURES_AT_ONCE = 8  # small batches: more steps of few pictures
EVALUATIONS = 4


def choices(given: Mapping[str, Any]) -> list[Choice]:
    """For every key of a captioner's recipe that may be `auto`."""
    before = _initial(given.get("training", {}).get("initial"))
    examples = read_data(_manifest(given.get("manifest")), medium="image")
    train = [example for example in examples if example.split == "train"]
    pictures, captions = len(train), sum(len(example.targets) for example in train)
    size = f"{pictures:,} pictures, {captions:,} captions"
    length = steps(pictures)
    encoder = {**asdict(before.encoder), "weights": INITIAL, "learning": "frozen"}
    encoder["mirror"] = pictures <= MIRRORED
    model = {**config.to_dict(before.model), "dropout": dropout(captions)}
    return [
        Choice(
            "encoder", encoder, "as it is, frozen", f"{before.encoder.name} of training.initial"
        ),
        Choice("model", model, size, f"that of training.initial, dropout {model['dropout']}"),
        Choice("search", config.to_dict(before.search), "unchanged", "that of training.initial"),
        Choice("min_count", min_count(captions), "how often a new word has to occur"),
        Choice("batching.size", PICTURES_AT_ONCE, "pictures, each with its captions"),
        Choice("training.steps", length, f"{epochs(pictures):.0f} epochs of {size}"),
        Choice("training.evaluate_every", -(-length // EVALUATIONS), f"{EVALUATIONS} times"),
        Choice("training.schedule.warmup", max(1, length // 10), "a tenth of the steps"),
        Choice("training.ema", average(length), "an average of about the last quarter"),
    ]


def epochs(pictures: int) -> float:
    """How often to see each picture: a few are seen often, until they would be learnt by heart."""
    return min(10.0, max(2.0, 1600 / pictures))


def steps(pictures: int) -> int:
    return math.ceil(epochs(pictures) * pictures / PICTURES_AT_ONCE)


MIRRORED = 2000  # pictures, up to which each is also seen mirrored: it takes as long again to read


def dropout(captions: int) -> float:
    """Less of what is known can be spoilt where there is more to learn from."""
    return 0.5 if captions < 5000 else 0.3


def min_count(captions: int) -> int:
    """A word that was seen once is learnt by heart; rare ones of a large set are often misspelt."""
    return 2 if captions < 5000 else 4


def average(steps: int) -> float:
    """The decay of a moving average whose memory is a quarter of the training."""
    return round(1 - 4 / max(steps, 8), 4)


def _initial(name: str | None) -> CaptionRecipe:
    from sightline.tasks import read_recipe

    if name is None:
        raise ConfigError(
            "a recipe with `auto` needs training.initial, which it is trained on from"
        )
    recipe = read_recipe(find_model(name) / "config.yaml")
    if not isinstance(recipe, CaptionRecipe):
        raise ConfigError(f"training.initial={name} is a model for another task, {recipe.task}")
    return recipe


def _manifest(given: Any) -> config.Manifest:
    if given is None:
        raise ConfigError("this recipe needs a manifest; set it there or as manifest=FILE")
    if isinstance(given, str):
        return given
    return tuple(each if isinstance(each, str) else DataConfig(**each) for each in given)
