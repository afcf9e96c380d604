"""`/v1/describe`: a picture in, its caption out, and where each word looked."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, ValidatorFunctionWrapHandler, field_validator

from sightline.errors import UserError
from sightline.media.focus import check_focus, parse_focus
from sightline.runtime.describer import Describer, Options
from sightline.tasks.route import MAX_BEAM, Answer, Route, SearchFields
from sightline.types import Description, Inputs

EXAMPLE = Path(__file__).with_name("example.json")  # a request and its answer

Fraction = Annotated[float, Field(ge=0, le=1)]


class DescribeFields(SearchFields):
    """What may be said about a picture, in a form or in JSON."""

    groups: Annotated[int, Field(ge=1, le=MAX_BEAM)] = Field(
        1, description="Diverse beam search: the beam in so many groups."
    )
    repeats: bool = Field(False, description="Allow a content word to be written twice.")
    prefix: Annotated[str, Field(max_length=200)] = Field(
        "", description="Words that the caption has to begin with."
    )
    focus: Annotated[list[Fraction], Field(min_length=4, max_length=4)] | None = Field(
        None, description="Where to look: x, y, width, height as fractions of the picture."
    )

    @field_validator("focus", mode="wrap")
    @classmethod
    def _region(cls, value: Any, check: ValidatorFunctionWrapHandler) -> list[float] | None:
        """A form has it as `x,y,w,h`."""
        try:
            if isinstance(value, str):
                value = list(parse_focus(value)) if value.strip() else None
            region = check(value)
            return None if region is None else list(check_focus(region))
        except UserError as error:
            raise ValueError(str(error)) from None

    def options(self, defaults: Options) -> Options:
        return replace(super().options(defaults), words_once=False if self.repeats else None)

    def reading(self, max_pixels: int) -> dict[str, Any]:
        return {"focus": self.focus and tuple(self.focus), "max_pixels": max_pixels}


class DescribeJson(DescribeFields):
    """A picture in base64 and what is asked of it."""

    image: str = Field(description="The picture file's bytes in base64.")


class DescribeAnswer(Answer):
    visible_box: list[float] = Field(
        description="Left, top, right, bottom of what the model saw, as fractions of the picture."
    )
    width: int
    height: int


def _more(model: Describer, source: Any, parts: list[Inputs], found: Description) -> dict[str, Any]:
    (layout,) = parts[0].layouts
    assert layout is not None
    width, height = layout.size
    box = [round(edge, 6) for edge in layout.box]
    return {"visible_box": box, "width": width, "height": height}


def route() -> Route:
    return Route(
        path="/v1/describe",
        summary="A picture's caption, and where each word looked.",
        json=DescribeJson,
        source="image",
        form=DescribeFields,
        more=_more,
        answer=DescribeAnswer,
        **json.loads(EXAMPLE.read_text("utf-8")),
    )
