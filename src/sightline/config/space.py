"""What `sightline tune` searches: keys of a recipe, each with a range or with choices.

training.optimiser.learning_rate: {low: 1e-4, high: 1e-2, log: true}
model.dropout: {low: 0, high: 0.7}
model.hidden: [256, 512, 1024]
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from sightline.config.files import compose_file
from sightline.config.reader import Reader, base_type, key_paths, sections_in
from sightline.errors import ConfigError


@dataclass(frozen=True)
class Range:
    """Numbers from `low` to `high`: alike by their logarithm, or in steps, where it says so."""

    low: float
    high: float
    log: bool = False
    step: float | None = None


@dataclass(frozen=True)
class Dimension:
    """One key that is searched; a choice is the text of an override."""

    key: str
    values: Range | tuple[str, ...]
    whole: bool = False  # whole numbers

    def to_json(self) -> Any:
        values = self.values
        return vars(values) if isinstance(values, Range) else list(values)


def read_space(
    path: Path | str, schema: type[Any], check: Callable[[Sequence[str]], Any]
) -> list[Dimension]:
    """The dimensions that a file names, for recipes of this schema.

    `check` reads the recipe with overrides: the ends of each range and each choice are tried.
    """
    root = compose_file(Path(path))
    reader = Reader(str(path), key_paths(schema))
    found: dict[str, Dimension] = {}
    for key_node, node in root.value:
        key = str(key_node.value)
        if key not in reader.paths:
            raise reader.fail(key_node, key, f"unknown key; {reader.suggest(key, [])}")
        if key in found:
            raise reader.fail(key_node, key, "given twice")
        found[key] = _dimension(reader, key, node, whole=_is_whole(schema, key.split(".")))
        for text in _ends(found[key]):
            try:
                check([f"{key}={text}"])
            except ConfigError as error:
                problem = str(error).removeprefix(f"override {key}: ")
                raise reader.fail(node, key, problem) from None
    if not found:
        raise ConfigError(f"{path}: names no key to search, as in `model.dropout: [0.1, 0.5]`")
    return list(found.values())


def _dimension(reader: Reader, key: str, node: yaml.Node, *, whole: bool) -> Dimension:
    if isinstance(node, yaml.SequenceNode):
        choices = tuple(dict.fromkeys(_text(each) for each in node.value))
        if len(choices) < 2:
            raise reader.fail(node, key, "give two choices or more")
        return Dimension(key, choices)
    if not isinstance(node, yaml.MappingNode):
        problem = "expected {low: NUMBER, high: NUMBER} or a list of choices"
        raise reader.fail(node, key, problem)
    values = reader.build(node, Range, key)
    if not values.low < values.high:
        raise reader.fail(node, key, f"low={values.low:g} is not below high={values.high:g}")
    if values.log and (values.low <= 0 or values.step is not None):
        problem = "log: true needs a low above 0" if values.low <= 0 else "log and step exclude"
        raise reader.fail(node, key, problem + ("" if values.low <= 0 else " each other"))
    if values.step is not None and not values.step > 0:
        raise reader.fail(node, key, "step has to be more than 0")
    numbers = [values.low, values.high, *([] if values.step is None else [values.step])]
    if whole and any(not number.is_integer() for number in numbers):
        raise reader.fail(node, key, "is a whole number; give whole numbers for its range")
    return Dimension(key, values, whole)


def _text(node: yaml.Node) -> str:
    """A choice as an override's value."""
    if isinstance(node, yaml.ScalarNode):
        return str(node.value)
    return yaml.serialize(_flowing(node)).strip()


def _flowing(node: yaml.Node) -> yaml.Node:
    if isinstance(node, yaml.CollectionNode):
        node.flow_style = True
        for each in node.value:
            for part in each if isinstance(each, tuple) else (each,):
                _flowing(part)
    return node


def _ends(dimension: Dimension) -> list[str]:
    values = dimension.values
    if not isinstance(values, Range):
        return list(values)
    return [written(value, dimension.whole) for value in (values.low, values.high)]


def written(value: Any, whole: bool = False) -> str:
    """A value as an override has it."""
    return str(int(value)) if whole else str(value)


def _is_whole(schema: Any, path: list[str]) -> bool:
    hint = typing.get_type_hints(schema, include_extras=True).get(path[0])
    if path[1:]:
        return any(_is_whole(section, path[1:]) for section in sections_in(hint))
    return base_type(hint) is int


SIZES = ("256", "512", "1024")
# Xu et al. searched on soft attention and Flickr8k, and took what they found to the other sets
SOFT = (
    Dimension("training.optimiser.learning_rate", Range(1e-4, 1e-2, log=True)),
    Dimension("model.dropout", Range(0.0, 0.7)),
    Dimension("model.embedding", SIZES),
    Dimension("model.hidden", SIZES),
    Dimension("model.attention.size", SIZES),
    Dimension("loss.doubly_stochastic", Range(0.0, 2.0)),
)
# and for hard attention λ_r and λ_e
HARD = (
    Dimension("loss.hard.reward", Range(0.01, 10.0, log=True)),
    Dimension("loss.hard.entropy", Range(1e-4, 0.1, log=True)),
)


def default_space(recipe: Any) -> list[Dimension]:
    """What is searched where no file says it, of a recipe with the decoder of Xu et al."""
    known = key_paths(type(recipe))
    attention = getattr(getattr(recipe, "model", None), "attention", None)
    wanted = HARD if getattr(attention, "hard", False) else SOFT
    found = [each for each in wanted if each.key in known]
    if attention is None or len(found) < len(wanted):
        raise ConfigError("this recipe has no usual space; name its keys in a file with --space")
    return found
