"""`/v1/language_model`: the beginning of a text in, its continuation out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from sightline.runtime.describer import Describer
from sightline.tasks.route import Route, TextJson

EXAMPLE = Path(__file__).with_name("example.json")  # a request and its answer
LONGEST = 1000  # tokens of an answer
UNITS = {"char": "characters", "word": "words", "bpe": "pieces of words"}


class PromptJson(TextJson):
    """The beginning, and how it is continued."""

    length: Annotated[int, Field(ge=1, le=LONGEST)] = Field(
        500, description="Tokens to write at most."
    )
    temperature: Annotated[float, Field(ge=0, le=5)] = Field(
        1.0, description="Of drawing; 0 takes the likeliest token each time."
    )
    top_k: Annotated[int, Field(ge=0, le=1_000_000)] = Field(
        0, description="Draw from so many likeliest tokens; 0 is all."
    )
    seed: Annotated[int, Field(ge=0, lt=2**32)] = Field(
        0, description="The same seed gives the same text."
    )


def _about(model: Describer) -> dict[str, Any]:
    return {"unit": UNITS[model.recipe.unit]}


def route() -> Route:
    return Route(
        path="/v1/language_model",
        summary="A text's continuation, drawn token by token.",
        json=PromptJson,
        source="text",
        about=_about,
        **json.loads(EXAMPLE.read_text("utf-8")),
    )
