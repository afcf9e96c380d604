"""`/v1/clip`: a clip in, what happens in it out, and when each word looked."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pydantic import Field

from sightline.tasks.route import Route, SearchFields

EXAMPLE = Path(__file__).with_name("example.json")  # a request and its answer
MOST_SECONDS = 120.0  # of a clip that is sent; longer films are for the command


class ClipFields(SearchFields):
    """What may be said about a clip, in a form or in JSON."""

    def reading(self, max_pixels: int) -> dict[str, Any]:
        return {"longest": MOST_SECONDS}


class ClipJson(ClipFields):
    """A clip in base64 and what is asked of it."""

    video: str = Field(description="The video file's bytes in base64.")


def route() -> Route:
    return Route(
        path="/v1/clip",
        summary="What happens in a clip, and when each word looked.",
        json=ClipJson,
        source="video",
        form=ClipFields,
        **json.loads(EXAMPLE.read_text("utf-8")),
    )
