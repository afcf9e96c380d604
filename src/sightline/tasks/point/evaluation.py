"""How good a pointer network is: on generated instances, or on a file of published ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.data.manifest import Example
from sightline.errors import DataError
from sightline.media.text import read_lines
from sightline.metrics import bootstrap
from sightline.runtime.describer import Describer
from sightline.tasks.evaluation import Evaluation
from sightline.tasks.point.parts import points_of, positions
from sightline.tasks.point.problems import DIMENSIONS, Answer, draw, score, solve
from sightline.tasks.point.recipe import PointRecipe, Problem
from sightline.types import Description


@dataclass(frozen=True)
class Instance:
    points: NDArray[np.float64]  # (n, 1 or 2)
    answer: Answer  # the exact one


def evaluate(
    describer: Describer, data: Path | None, split: str, beam: int | None, intervals: bool = True
) -> Evaluation:
    """Scores on `--data`, lines `x1 y1 x2 y2 … output i1 i2 … i1`, or on the recipe's `test`."""
    recipe: PointRecipe = describer.recipe
    instances = generated(recipe) if data is None else published(data, recipe.problem)
    found = describer.describe([each.points for each in instances], beam=beam, progress=True)
    values = scores_of(recipe.problem, instances, found)
    names = [str(number) for number in range(len(instances))]
    scores: dict[str, Any] = {
        "corpus": {key: float(np.mean(each)) for key, each in values.items()},
        "per_item": {
            name: {key: each[row] for key, each in values.items()} for row, name in enumerate(names)
        },
    }
    if intervals:
        table = np.array(list(values.values())).T  # (N, K)
        drawn = bootstrap.draws(len(table))
        means = np.concatenate([counts @ table / len(table) for counts in drawn])
        scores["intervals"] = dict(zip(values, bootstrap.interval(means).T.tolist(), strict=True))
    examples = [
        Example(name, "test", (_text(each.answer),), "source", None, _shown(each.points))
        for name, each in zip(names, instances, strict=True)
    ]
    sizes = sorted({len(each.points) for each in instances})
    size = f"{sizes[0]}" if len(sizes) == 1 else f"{sizes[0]} to {sizes[-1]}"
    return Evaluation(f"{len(instances)} of {size} points", scores, examples, found)


def scores_of(
    problem: Problem, instances: Sequence[Instance], found: Sequence[Description]
) -> dict[str, list[float]]:
    """By score, the value of each instance."""
    rows = [
        score(problem, each.points, positions(one.text), each.answer)
        for each, one in zip(instances, found, strict=True)
    ]
    return {key: [row[key] for row in rows] for key in rows[0]}


def generated(recipe: PointRecipe) -> list[Instance]:
    """The recipe's test instances, the same for every model of the problem."""
    test = recipe.test
    points = draw(recipe.problem, test.examples, test.size, [0, test.seed, test.size])
    return [Instance(p, a) for p, a in zip(points, solve(recipe.problem, points), strict=True)]


def published(path: Path, problem: Problem) -> list[Instance]:
    """A test set as Vinyals et al. published theirs: positions from 1, the first one again."""
    instances = []
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        given, _, answer = line.partition("output")
        try:
            points = points_of(given, DIMENSIONS[problem])
            places = [int(word) - 1 for word in answer.split()]
        except (DataError, ValueError) as error:
            raise DataError(f"{path}:{number}: {error}") from None
        if len(places) > 1 and places[0] == places[-1]:
            places.pop()
        if not places or not 0 <= min(places) <= max(places) < len(points):
            raise DataError(f"{path}:{number}: positions after `output` are 1 to {len(points)}")
        instances.append(Instance(points, places))
    if not instances:
        raise DataError(f"{path} is empty")
    return instances


def _text(answer: Answer) -> str:
    return " ".join(map(str, answer))


def _shown(points: NDArray[np.float64]) -> str:
    return " ".join(",".join(f"{x:.6g}" for x in point) for point in points)
