"""`/v1/answer`: a story with a question in, the answer out, and the facts that it used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from sightline.runtime.describer import Describer
from sightline.tasks.answer.parts import sentences_of, used_facts
from sightline.tasks.route import Answer, Route, SearchFields
from sightline.types import Description, Inputs

EXAMPLE = Path(__file__).with_name("example.json")  # a request and its answer


class StoryJson(SearchFields):
    text: Annotated[str, Field(max_length=10_000)] = Field(
        description="The facts, a sentence or a line each, and last the question."
    )


class QuestionAnswer(Answer):
    question: str
    facts: list[str] = Field(description="The columns of `attention`; its rows are the hops.")
    used: list[tuple[str, float]] = Field(description="Each hop's main fact, and its weight.")


def _more(model: Describer, source: Any, parts: list[Inputs], found: Description) -> dict[str, Any]:
    facts = list(found.layout.labels) if found.layout else []
    question = [*sentences_of(source)[-1:], ""][0]
    return {"question": question, "facts": facts, "used": used_facts(found)}


def route() -> Route:
    return Route(
        path="/v1/answer",
        summary="The answer to a question about a story, and the facts it looked at.",
        json=StoryJson,
        source="text",
        more=_more,
        answer=QuestionAnswer,
        **json.loads(EXAMPLE.read_text("utf-8")),
    )
