"""`/v1/classify`: a text in, its class out, with every class's probability."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from pydantic import Field

from sightline.data.vocabulary import SPECIALS
from sightline.runtime.describer import Describer
from sightline.tasks.route import Answer, Route, TextJson
from sightline.types import Description, Inputs

MOST = 12  # classes that are named in its limits
EXAMPLE = Path(__file__).with_name("example.json")  # a request and its answer


class ClassifyAnswer(Answer):
    probabilities: dict[str, float] = Field(
        description="Of the n_best likeliest classes, by name, the likeliest first."
    )


def _more(model: Describer, source: Any, parts: list[Inputs], found: Description) -> dict[str, Any]:
    every = [found, *found.alternatives] if found.tokens else []
    return {"probabilities": {each.text: math.exp(each.score) for each in every}}


def _about(model: Describer) -> dict[str, Any]:
    classes = list(model.codec.vocab.tokens[len(SPECIALS) :])
    shown = ", ".join(classes[:MOST]) + (" …" if len(classes) > MOST else "")
    limits = (
        f"It knows {len(classes)} classes ({shown}) and gives one of them to any text, also to one "
        "that fits none. Texts unlike those that it was trained on are classified badly."
    )
    return {"classes": classes, "limits": limits}


def route() -> Route:
    return Route(
        path="/v1/classify",
        summary="A text's class, how likely it is, and the words that it was read from.",
        json=TextJson,
        source="text",
        more=_more,
        about=_about,
        answer=ClassifyAnswer,
        **json.loads(EXAMPLE.read_text("utf-8")),
    )
