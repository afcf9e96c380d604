"""`/v1/describe`: a picture in, its caption out, and where each word looked."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field, field_validator

from sightline.errors import UserError
from sightline.media.focus import Region, check_focus, parse_focus
from sightline.runtime.describer import Describer, Options
from sightline.tasks.route import Answer, Route, SearchFields
from sightline.types import Description, Inputs


class DescribeFields(SearchFields):
    """What may be said about a picture, in a form or in JSON."""

    prefix: Annotated[str, Field(max_length=200)] = Field(
        "", description="Words that the caption has to begin with."
    )
    focus: (
        Annotated[list[Annotated[float, Field(ge=0, le=1)]], Field(min_length=4, max_length=4)]
        | None
    ) = Field(None, description="Where to look: x, y, width, height as fractions of the picture.")

    @field_validator("focus", mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        """A form has it as `x,y,w,h`."""
        if isinstance(value, str):
            try:
                return list(parse_focus(value)) if value.strip() else None
            except UserError as error:
                raise ValueError(str(error)) from None
        return value

    @field_validator("focus")
    @classmethod
    def _is_a_region(cls, value: list[float] | None) -> list[float] | None:
        if value is not None:
            try:
                check_focus(value)
            except UserError as error:
                raise ValueError(str(error)) from None
        return value

    def options(self, defaults: Options) -> Options:
        return Options.of(
            {"beam": self.beam, "n_best": self.n_best, "prefix": self.prefix}, defaults
        )

    def reading(self, max_pixels: int) -> dict[str, Any]:
        region: Region | None = None if self.focus is None else check_focus(self.focus)
        return {"focus": region, "max_pixels": max_pixels}


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
    return {
        "visible_box": [round(edge, 6) for edge in layout.box],
        "width": width,
        "height": height,
    }


def route() -> Route:
    return Route(
        path="/v1/describe",
        summary="A picture's caption, and where each word looked.",
        json=DescribeJson,
        source="image",
        form=DescribeFields,
        more=_more,
        answer=DescribeAnswer,
        request={"image": "/9j/4AAQSkZJRg…", "beam": 5, "focus": [0.5, 0, 0.5, 1]},
        example={
            "request_id": "5f0c1de2a3b4c5d6",
            "model": "flickr8k",
            "task": "caption",
            "text": "a dog runs",
            "score": -4.2,
            "tokens": ["a", "dog", "runs"],
            "log_probs": [-0.7, -1.2, -1.4],
            "attention": [[0.1, 0.2, 0.3, 0.4], [0.0, 0.1, 0.1, 0.8], [0.1, 0.1, 0.4, 0.4]],
            "layout": {"kind": "grid", "shape": [2, 2]},
            "alternatives": [],
            "visible_box": [0.17, 0.06, 0.83, 0.94],
            "width": 640,
            "height": 480,
            "seconds": 0.21,
        },
    )
