"""`/v1/translate`: a text in, its translation out, and which word came from which."""

from __future__ import annotations

from typing import Any

from pydantic import Field

from sightline.runtime.describer import Describer
from sightline.tasks.route import Answer, Route, TextJson
from sightline.tasks.translate.alignments import alignment_of
from sightline.types import Description, Inputs


class TranslateAnswer(Answer):
    source_words: list[str]
    target_words: list[str]
    alignment: list[tuple[int, int, float]] = Field(
        description="Source word, target word (both from 0), confidence."
    )


def _more(model: Describer, source: Any, parts: list[Inputs], found: Description) -> dict[str, Any]:
    if found.attention is None:
        words = {"source_words": source.split(), "target_words": found.text.split()}
        return {**words, "alignment": []}
    alignment = alignment_of(model, found)
    links = [[s, t, round(sure, 4)] for s, t, sure in sorted(alignment.links())]
    words = {"source_words": list(alignment.source), "target_words": list(alignment.target)}
    return {**words, "alignment": links}


def route() -> Route:
    return Route(
        path="/v1/translate",
        summary="A text's translation, and the words that each word came from.",
        json=TextJson,
        source="text",
        more=_more,
        answer=TranslateAnswer,
        request={"text": "ein Hund", "beam": 5, "n_best": 2},
        example={
            "request_id": "5f0c1de2a3b4c5d6",
            "model": "multi30k-de-en",
            "task": "translate",
            "text": "a dog",
            "score": -0.9,
            "tokens": ["a", "dog"],
            "log_probs": [-0.1, -0.3],
            "attention": [[0.9, 0.1, 0.0], [0.1, 0.9, 0.0]],
            "layout": {"kind": "words", "labels": ["ein", "Hund", "<end>"]},
            "alternatives": [],
            "seconds": 0.08,
            "source_words": ["ein", "Hund"],
            "target_words": ["a", "dog"],
            "alignment": [[0, 0, 0.9], [1, 1, 0.9]],
        },
    )
