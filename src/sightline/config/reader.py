"""YAML nodes → any frozen dataclass, by its type hints.

An error gives the line (or the override) and the key, and suggests the nearest known key.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import textwrap
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

import yaml

from sightline.errors import ConfigError

NULL = "tag:yaml.org,2002:null"
T = TypeVar("T")
_WORDS: dict[Any, str] = {
    str: "text",
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    type(None): "null",
}


class Check(NamedTuple):
    """Which values of its type a key takes, as in `Annotated[int, Check(…)]`."""

    holds: Callable[[Any], bool]
    wanted: str


class _OutOfRange(ConfigError):
    """A value of the right type that its Check refuses."""


@dataclass(frozen=True)
class Reader:
    """Fills dataclasses from the nodes of one file."""

    name: str  # of the file
    paths: list[str]  # every key of the whole recipe, to suggest from

    def fail(self, node: yaml.Node, key: str, problem: str) -> ConfigError:
        mark, key = node.start_mark, textwrap.shorten(key, 80)  # a quoted key may have newlines
        where = f"override {key}" if mark is None else f"{self.name}:{mark.line + 1}: {key}"
        return ConfigError(f"{where}: {problem}")

    def build(
        self, node: yaml.Node, schema: type[T], section: str = "", default: T | None = None
    ) -> T:
        """A dataclass from a mapping node; keys that it lacks are as `default` has them."""
        if not isinstance(node, yaml.MappingNode):
            raise self.fail(node, section, "expected keys below it, as in `key: value`")
        hints = typing.get_type_hints(schema, include_extras=True)
        prefix = f"{section}." if section else ""
        values: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                raise self.fail(key_node, section or "the recipe", "a key is one word")
            key = key_node.value
            full = prefix + key
            if key not in hints:
                raise self.fail(key_node, full, f"unknown key; {self.suggest(full, list(hints))}")
            if key in values:
                raise self.fail(key_node, full, "given twice")
            inner = _default(schema, key) if default is None else getattr(default, key)
            values[key] = self.convert(value_node, hints[key], full, inner)
        if default is not None:
            return dataclasses.replace(default, **values)  # type: ignore[type-var]
        for item in dataclasses.fields(schema):  # type: ignore[arg-type]  # T is a dataclass
            required = item.default is item.default_factory is dataclasses.MISSING
            if required and item.name not in values:
                full = prefix + item.name
                raise ConfigError(f"{self.name}: needs {full}; set it there or as {full}=VALUE")
        return schema(**values)

    def suggest(self, full: str, known: list[str]) -> str:
        section, dot, key = full.rpartition(".")
        here = [section + dot + name for name in known]

        def likeness(path: str) -> float:
            return difflib.SequenceMatcher(None, key, path.rpartition(".")[2]).ratio()

        nearest = max([*here, *self.paths], key=likeness)  # of equals the first: in this section
        if likeness(nearest) < 0.6:
            return f"known here: {', '.join(known)}"
        return f"did you mean `{nearest}`?"

    def convert(self, node: yaml.Node, hint: Any, key: str, default: Any = None) -> Any:
        """A value of the type `hint`; a section is completed from its default."""
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if dataclasses.is_dataclass(hint):
            return self.build(node, typing.cast(type, hint), key, default)
        if origin is Annotated:
            value, check = self.convert(node, arguments[0], key), arguments[1]
            if not check.holds(value):
                problem = f"expected {check.wanted}, got {_shown(node)}"
                raise _OutOfRange(str(self.fail(node, key, problem)))
            return value
        if _is_union(hint):
            return self.convert_union(node, arguments, key)
        if origin is tuple:
            items = node.value if isinstance(node, yaml.SequenceNode) else [node]
            if arguments[-1] is Ellipsis:
                arguments = (arguments[0],) * len(items)
            if len(items) != len(arguments):
                problem = f"expected {len(arguments)} values, got {len(items)}"
                raise self.fail(node, key, problem)
            return tuple(self.convert(i, a, key) for i, a in zip(items, arguments, strict=True))
        try:
            return _choose(node, arguments) if origin is Literal else _scalar(node, hint)
        except ValueError as error:
            raise self.fail(node, key, str(error)) from None

    def convert_union(self, node: yaml.Node, arms: tuple[Any, ...], key: str) -> Any:
        """A value of the first arm that can read it, the narrowest arms first."""
        if node.tag == NULL and type(None) in arms:
            return None
        arms = tuple(arm for arm in arms if arm is not type(None))
        errors: dict[Any, ConfigError] = {}
        for arm in sorted(arms, key=lambda arm: _breadth(arm, node)):
            if arm is str and any(isinstance(error, _OutOfRange) for error in errors.values()):
                continue  # a number out of range is a mistake, not text
            try:
                return self.convert(node, arm, key)
            except ConfigError as error:
                errors[arm] = error
        possible = [arm for arm in arms if _fits(arm, node)]
        if len(possible) == 1 or len(arms) == 1:  # its own error says more, and where
            raise errors[(possible or arms)[0]]
        raise self.fail(node, key, f"expected {type_words(*arms)}, got {_shown(node)}")


def _default(schema: Any, key: str) -> Any:
    """The section that a recipe has at `key` where none is written."""
    (item,) = (each for each in dataclasses.fields(schema) if each.name == key)
    factory: Any = item.default_factory
    return None if factory is dataclasses.MISSING else factory()


def _is_union(hint: Any) -> bool:
    return typing.get_origin(hint) in (typing.Union, types.UnionType)


def _breadth(hint: Any, node: yaml.Node) -> int:
    """The order in which the arms of a union are tried.

    Text takes every scalar and so comes late, but what is in quotes is text before it is a number.
    A list comes last: one value will do for it.
    """
    base = base_type(hint)
    if base is str and isinstance(node, yaml.ScalarNode) and node.style in ("'", '"'):
        return -1
    order = [Literal, bool, int, float, str]
    return order.index(base) if base in order else len(order)


def _fits(hint: Any, node: yaml.Node) -> bool:
    """Whether a node of this shape (scalar, list or mapping) could be of the type at all."""
    arguments = typing.get_args(hint)
    if dataclasses.is_dataclass(hint):
        return isinstance(node, yaml.MappingNode)
    if typing.get_origin(hint) is tuple:  # one value will do for a list
        return isinstance(node, yaml.SequenceNode) or _fits(arguments[0], node)
    if _is_union(hint):
        return any(_fits(arm, node) for arm in arguments)
    return isinstance(node, yaml.ScalarNode)


def base_type(hint: Any) -> Any:
    """What kind of type it is: `int` of Positive, `tuple` of tuple[int, ...]."""
    origin = typing.get_origin(hint)
    return base_type(typing.get_args(hint)[0]) if origin is Annotated else origin or hint


def type_words(*hints: Any) -> str:
    """Types in words, for errors and for the reference of recipe keys."""
    words = [words for hint in hints for words in _alternatives(hint)]
    return " or ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def _alternatives(hint: Any) -> list[str]:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if _is_union(hint):
        return [words for arm in arguments for words in _alternatives(arm)]
    if origin is Literal:
        return [f"`{choice}`" for choice in arguments]
    if dataclasses.is_dataclass(hint):
        return [f"keys ({', '.join(item.name for item in dataclasses.fields(hint))})"]
    if origin is Annotated:
        return [f"{type_words(arguments[0])} ({arguments[1].wanted})"]
    if origin is tuple:
        count = "" if arguments[-1] is Ellipsis else f" of {len(arguments)}"
        return [f"a list{count} (each {type_words(arguments[0])})"]
    return [_WORDS[hint]]


def _shown(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        return "a list" if isinstance(node, yaml.SequenceNode) else "keys below it"
    return f"`{textwrap.shorten(node.value, 60)}`" if node.value else "nothing"


def _choose(node: yaml.Node, choices: tuple[Any, ...]) -> Any:
    named = {str(choice): choice for choice in choices}
    hint = ""
    if isinstance(node, yaml.ScalarNode):
        if node.value in named:
            return named[node.value]
        close = difflib.get_close_matches(node.value, named, n=1)
        hint = f"; did you mean `{close[0]}`?" if close else ""
    raise ValueError(f"{_shown(node)} is not one of {', '.join(named)}{hint}")


def _scalar(node: yaml.Node, hint: type) -> Any:
    """Read as written, not as YAML 1.1 sees it: there 1e-3 is text, 010 is 8 and `no` is false."""
    if isinstance(node, yaml.ScalarNode) and node.tag != NULL:
        text = node.value
        if hint is str:
            return text
        if hint is bool and text.lower() in yaml.SafeLoader.bool_values:
            return yaml.SafeLoader.bool_values[text.lower()]
        if hint in (int, float) and reads_as_number(text):
            number = _number(text)
            if hint is float:
                return number
            if number.is_integer():
                return int(text) if text.lstrip("+-").isdigit() else int(number)
    raise ValueError(f"expected {_WORDS[hint]}, got {_shown(node)}")


def reads_as_number(text: str) -> bool:
    """Whether the reader takes this text for a number; NaN, which no setting means, is none."""
    try:
        return not math.isnan(_number(text))
    except ValueError:
        return False


def _number(text: str) -> float:
    return float(text.lower().replace(".inf", "inf"))


def key_paths(schema: type[Any], prefix: str = "") -> list[str]:
    """Every key that a recipe of this schema may set, as `section.key`."""
    paths = []
    for key, hint in typing.get_type_hints(schema).items():
        full = f"{prefix}{key}"
        below = [path for section in sections_in(hint) for path in key_paths(section, f"{full}.")]
        paths += below or [full]
    return paths


def sections_in(hint: Any) -> list[type[Any]]:
    """The dataclasses that a value of this type may be made of, in unions and lists too."""
    if dataclasses.is_dataclass(hint):
        return [typing.cast(type, hint)]
    if typing.get_origin(hint) is Literal:
        return []
    return [section for part in typing.get_args(hint) for section in sections_in(part)]
