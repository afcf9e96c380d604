"""A pointer network without PyTorch: its reader of points, and the positions that it writes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sightline.data.vocabulary import SPECIALS, Vocabulary
from sightline.errors import DataError
from sightline.runtime.codec import Codec
from sightline.search.constraints import Constraint
from sightline.search.pointing import ConvexOutline, Permutation, Triangles
from sightline.tasks.point.problems import DIMENSIONS
from sightline.tasks.point.recipe import PointRecipe
from sightline.types import Inputs, Layout, Stream

NO_WORDS = Vocabulary("word", SPECIALS)  # a pointer's tokens are positions
FARTHEST = 1e100  # of a coordinate
TRIANGLE = 3  # tokens that make one outline of a triangulation


@dataclass(frozen=True)
class PointReader:
    """Points as text, as a list or as an array, scaled to a square; read in the recipe's order."""

    recipe: PointRecipe
    takes: Literal["file", "text"] = "text"
    batch: int = 64

    def read(self, source: Any, *, whole: bool = False) -> list[Inputs]:
        points = points_of(source, DIMENSIONS[self.recipe.problem])
        order = reading_order(points, self.recipe)
        stream = Stream.ragged([scaled(points[order]).astype(np.float32)])
        return [Inputs(1, {"points": stream}, (self._layout(points, order),))]

    def _layout(self, points: NDArray[np.float64], order: NDArray[np.int64]) -> Layout:
        coordinates = tuple(tuple(float(x) for x in point) for point in points[order])
        outline = (TRIANGLE,) if self.recipe.problem == "delaunay" else ()
        labels = tuple(str(i) for i in order)
        return Layout("points", shape=outline, labels=labels, coordinates=coordinates)


def points_of(source: Any, dimensions: int) -> NDArray[np.float64]:
    """(n, dimensions), of points to be sorted their x; a DataError says what is wrong with them."""
    wanted = "numbers" if dimensions == 1 else "points: x,y x,y …"
    try:
        if isinstance(source, str):
            source = _numbers(source)
        points = np.array(source, dtype=np.float64)
    except (ValueError, TypeError, RecursionError):
        raise DataError(f"these are no {wanted}") from None
    if points.size == 0:
        raise DataError(f"there is nothing to point at; give {wanted}")
    if points.ndim == 1 and points.size % dimensions == 0:
        points = points.reshape(-1, dimensions)
    elif points.ndim == 2 and dimensions == 1:
        points = points[:, :1]
    if points.ndim != 2 or points.shape[1] != dimensions:
        raise DataError(f"an array of shape {points.shape} holds no {wanted}")
    if not (np.isfinite(points).all() and np.abs(points).max() <= FARTHEST):
        raise DataError("a coordinate is not a finite number")
    return points


def _numbers(text: str) -> Any:
    """A JSON list, or numbers between blanks, commas and semicolons; of a line of the published
    test sets, what is before `output`."""
    text = text.partition("output")[0].strip()
    if text.startswith("["):
        return json.loads(text)
    return [float(word) for word in re.split(r"[\s,;]+", text) if word]


def reading_order(points: NDArray[np.float64], recipe: PointRecipe) -> NDArray[np.int64]:
    """The positions in the order in which they are read."""
    if recipe.order == "given":
        return np.arange(len(points))
    return np.lexsort(points.T[::-1])  # by x, then by y


def scaled(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """(…, n, d) moved and enlarged to fill [-1, 1], which changes no answer; in proportion."""
    low, high = points.min(-2, keepdims=True), points.max(-2, keepdims=True)
    # halved before they are added: large numbers stay finite
    reach = (high / 2 - low / 2).max(-1, keepdims=True)
    middle = low / 2 + high / 2
    result: NDArray[np.float64] = (points - middle) / np.where(reach > 0, reach, 1.0)
    return result


class PointCodec(Codec):
    """A token is the number, as given and from 0, of the point that it points at."""

    banned = ()

    def __init__(self, recipe: PointRecipe) -> None:
        super().__init__(NO_WORDS, recipe.search)
        self.recipe = recipe

    def max_length(self, size: int) -> int:
        return 1 + (2 * TRIANGLE * size if self.recipe.problem == "delaunay" else size)

    def constraints(self, layouts: Sequence[Layout | None], longest: int) -> list[Constraint]:
        if not self.recipe.constrained:
            return []
        known = [layout for layout in layouts if layout is not None]
        if self.recipe.problem == "hull":
            return [ConvexOutline([np.array(layout.coordinates) for layout in known])]
        counts = [len(layout) for layout in known]
        return [Triangles(counts) if self.recipe.problem == "delaunay" else Permutation(counts)]

    def names(self, layout: Layout | None) -> Sequence[str]:
        assert layout is not None
        return (*SPECIALS, *layout.labels)


def positions(text: str) -> list[int]:
    """The positions that a description's text names."""
    return [int(word) for word in text.split()]


def reader(folder: Path, recipe: PointRecipe, about: Mapping[str, Any]) -> PointReader:
    return PointReader(recipe)


def codec(folder: Path, recipe: PointRecipe) -> PointCodec:
    return PointCodec(recipe)
