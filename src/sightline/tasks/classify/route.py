"""`/v1/classify`: a text in, its class out, with every class's probability."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from pydantic import Field

from sightline.runtime.describer import Describer
from sightline.tasks.route import Answer, Route, TextJson
from sightline.types import Description, Inputs

EXAMPLE = Path(__file__).with_name("example.json")  # a request and its answer


class ClassifyAnswer(Answer):
    probabilities: dict[str, float] = Field(
        description="Of the n_best likeliest classes, by name, the likeliest first."
    )


def _more(model: Describer, source: Any, parts: list[Inputs], found: Description) -> dict[str, Any]:
    every = [found, *found.alternatives] if found.tokens else []
    return {"probabilities": {each.text: math.exp(each.score) for each in every}}


def route() -> Route:
    return Route(
        path="/v1/classify",
        summary="A text's class, how likely it is, and the words that it was read from.",
        json=TextJson,
        source="text",
        more=_more,
        answer=ClassifyAnswer,
        **json.loads(EXAMPLE.read_text("utf-8")),
    )
