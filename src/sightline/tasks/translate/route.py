"""`/v1/translate`: a text in, its translation out, and which word came from which."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import Field

from sightline.runtime.describer import Describer
from sightline.tasks.route import Answer, Route, TextJson
from sightline.tasks.translate.alignments import alignment_of
from sightline.types import Description, Inputs

EXAMPLE = Path(__file__).with_name("example.json")  # a request and its answer


class TranslateAnswer(Answer):
    source_words: list[str]
    target_words: list[str]
    alignment: list[tuple[int, int, float]] = Field(
        description="Source word, target word (both from 0), confidence."
    )


def _more(model: Describer, source: Any, parts: list[Inputs], found: Description) -> dict[str, Any]:
    if found.attention is None:
        words = {"source": source.split(), "target": found.text.split(), "links": []}
    else:
        words = alignment_of(model, found).to_json()
    names = {"source_words": "source", "target_words": "target", "alignment": "links"}
    return {name: words[key] for name, key in names.items()}


def route() -> Route:
    return Route(
        path="/v1/translate",
        summary="A text's translation, and the words that each word came from.",
        json=TextJson,
        source="text",
        more=_more,
        answer=TranslateAnswer,
        **json.loads(EXAMPLE.read_text("utf-8")),
    )
