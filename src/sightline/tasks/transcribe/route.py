"""`/v1/transcribe`: a recording in, what was said out, with the time of every phone or word."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from sightline.runtime.describer import Describer
from sightline.tasks.route import Answer, Route, SearchFields
from sightline.tasks.transcribe.timing import spans
from sightline.types import Description, Inputs

EXAMPLE = Path(__file__).with_name("example.json")  # a request and its answer
MOST_SECONDS = 120.0  # of a recording that is sent; longer ones are for the command


class SpeechFields(SearchFields):
    """What may be said about a recording, in a form or in JSON."""

    def reading(self, max_pixels: int) -> dict[str, Any]:
        return {"most": MOST_SECONDS}


class SpeechJson(SpeechFields):
    """A recording in base64 and what is asked of it."""

    sound: str = Field(description="The sound file's bytes in base64.")


class SpanAnswer(BaseModel):
    text: str
    start: float = Field(description="Seconds, read from where attention looked.")
    end: float
    probability: float


class SpeechAnswer(Answer):
    spans: list[SpanAnswer] = Field(description="Each phone or word, and when it was said.")


def _more(model: Describer, source: Any, parts: list[Inputs], found: Description) -> dict[str, Any]:
    return {"spans": [each.to_json() for each in spans(found, model.codec.vocab.kind)]}


def route() -> Route:
    return Route(
        path="/v1/transcribe",
        summary="What a recording says, and when.",
        json=SpeechJson,
        source="sound",
        form=SpeechFields,
        more=_more,
        answer=SpeechAnswer,
        **json.loads(EXAMPLE.read_text("utf-8")),
    )
