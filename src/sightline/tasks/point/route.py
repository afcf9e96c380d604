"""`/v1/point`: points in, the numbers of those that were pointed at out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from sightline.runtime.describer import Describer
from sightline.tasks.point.parts import positions
from sightline.tasks.route import Answer, Route, SearchFields
from sightline.types import Description, Inputs

EXAMPLE = Path(__file__).with_name("example.json")  # a request and its answer
MOST = 500  # points of a request

Coordinates = Annotated[list[float], Field(min_length=1, max_length=2)]


class PointJson(SearchFields):
    """Points and what is asked of them."""

    points: Annotated[list[Coordinates], Field(min_length=1, max_length=MOST)] = Field(
        description="Each [x, y]; for a model that sorts numbers each [number]."
    )


class PointAnswer(Answer):
    problem: str = Field(description="What the model does: sort, hull, delaunay or tour.")
    positions: list[int] = Field(description="The points that were pointed at, from 0.")


def _more(model: Describer, source: Any, parts: list[Inputs], found: Description) -> dict[str, Any]:
    return {"problem": model.recipe.problem, "positions": positions(found.text)}


def _about(model: Describer) -> dict[str, Any]:
    least, most = model.recipe.sizes
    limits = (
        f"It was trained on {least} to {most} points, drawn at random in a square. The more there "
        "are beyond that, the worse it does. It guesses where to point; it does not compute."
    )
    return {"problem": model.recipe.problem, "limits": limits}


def route() -> Route:
    return Route(
        path="/v1/point",
        summary="A hull, a triangulation, a tour or numbers in order, by pointing.",
        json=PointJson,
        source="points",
        more=_more,
        about=_about,
        answer=PointAnswer,
        **json.loads(EXAMPLE.read_text("utf-8")),
    )
