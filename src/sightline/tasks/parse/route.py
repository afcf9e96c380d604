"""`/v1/parse`: a sentence in, its tree out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import Field

from sightline.runtime.describer import Describer
from sightline.tasks.parse.parts import tree_of
from sightline.tasks.route import Answer, Route, TextJson
from sightline.types import Description, Inputs

EXAMPLE = Path(__file__).with_name("example.json")  # a request and its answer


class ParseAnswer(Answer):
    words: list[str] = Field(description="The sentence as it was cut.")
    tree: dict[str, Any] | None = Field(
        description="Nested: `label` and `children`, or `label` and `word`. `steps` are the "
        "tokens that opened and closed a phrase; of a word, the token that is its tag."
    )


def _more(model: Describer, source: Any, parts: list[Inputs], found: Description) -> dict[str, Any]:
    tree = tree_of(found)
    if tree is None:
        return {"words": [], "tree": None}
    return {"words": [leaf.word for leaf in tree.leaves()], "tree": tree.to_json(steps=True)}


def route() -> Route:
    return Route(
        path="/v1/parse",
        summary="A sentence's tree, and where each bracket looked.",
        json=TextJson,
        source="text",
        more=_more,
        answer=ParseAnswer,
        **json.loads(EXAMPLE.read_text("utf-8")),
    )
