"""YAML nodes → any frozen dataclass, by its type hints, so that each mistake is named by its line,
or by its override, with the nearest known key.
"""

from __future__ import annotations

import contextlib
import dataclasses
import difflib
import textwrap
import types
import typing
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import yaml

from sightline.errors import ConfigError

_MAP, _NULL, _STR = (f"tag:yaml.org,2002:{kind}" for kind in ("map", "null", "str"))


class Check(NamedTuple):
    """Which values of its type a key takes; held wherever a recipe is read."""

    holds: Callable[[Any], bool]
    wanted: str


def compose_file(path: Path) -> yaml.MappingNode:
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        message = f"no recipe at {path}; `sightline recipes` lists those there are"
        raise ConfigError(message) from None
    except IsADirectoryError:
        raise ConfigError(f"{path} is a folder; give the recipe's YAML file") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start}); is it a recipe?") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    return compose(text, str(path))


def compose(text: str, name: str) -> yaml.MappingNode:
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        what = f"the character {text[error.position]!r} cannot be in YAML; is it a recipe?"
        raise ConfigError(f"{name}:{line}: {what}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise ConfigError(f"{name}:{line}: not YAML: {error.problem}") from None
    except RecursionError:
        raise ConfigError(f"{name}: nested too deeply; is it a recipe?") from None
    if root is None:
        return yaml.MappingNode(_MAP, [])
    if not isinstance(root, yaml.MappingNode):
        line = root.start_mark.line + 1
        raise ConfigError(f"{name}:{line}: a recipe is a mapping of `key: value` lines")
    return root


def override_node(value: str) -> yaml.Node:
    """An override's value as YAML; what is not YAML, such as `*`, is text as it stands."""
    try:
        node = yaml.compose(value, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError):
        node = None
    if node is None:
        return yaml.ScalarNode(_STR if value else _NULL, value)
    _forget_lines(node)
    return node


def _forget_lines(node: yaml.Node) -> None:
    """An override has no line: without marks, its errors name the key instead."""
    if node.start_mark is None:  # been here: an anchor may hold itself
        return
    node.start_mark = None
    for item in node.value if isinstance(node, yaml.CollectionNode) else ():
        for part in item if isinstance(item, tuple) else (item,):
            _forget_lines(part)


def replaced(mapping: yaml.Node, path: list[str], value: yaml.Node) -> yaml.MappingNode:
    """The mapping with `value` at `path`; a copy, since YAML anchors may share the original."""
    is_section = isinstance(mapping, yaml.MappingNode)
    pairs = list(mapping.value) if is_section else []
    at = next((i for i, (key, _) in enumerate(pairs) if key.value == path[0]), len(pairs))
    if at == len(pairs):
        pairs.append((yaml.ScalarNode(_STR, path[0]), yaml.ScalarNode(_NULL, "")))
    key, child = pairs[at]
    pairs[at] = (key, value if len(path) == 1 else replaced(child, path[1:], value))
    return yaml.MappingNode(_MAP, pairs, mapping.start_mark if is_section else None)


@dataclass(frozen=True)
class Reader:
    """Fills dataclasses from the nodes of one file."""

    name: str  # of the file
    paths: list[str]  # every key of the whole recipe, to suggest from

    def fail(self, node: yaml.Node, key: str, problem: str) -> ConfigError:
        mark, key = node.start_mark, textwrap.shorten(key, 80)  # a quoted key may have line ends
        where = f"override {key}" if mark is None else f"{self.name}:{mark.line + 1}: {key}"
        return ConfigError(f"{where}: {problem}")

    def build(self, node: yaml.Node, schema: type[Any], section: str = "") -> Any:
        """A dataclass from a mapping node."""
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
            values[key] = self.convert(value_node, hints[key], full)
        for item in dataclasses.fields(schema):
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

    def convert(self, node: yaml.Node, hint: Any, key: str) -> Any:
        """A value of the type `hint`."""
        origin, arguments = typing.get_origin(hint), typing.get_args(hint)
        if dataclasses.is_dataclass(hint):
            return self.build(node, typing.cast(type, hint), key)
        if origin is Annotated:
            value, check = self.convert(node, arguments[0], key), arguments[1]
            if not check.holds(value):
                raise self.fail(node, key, f"expected {check.wanted}, got {_shown(node)}")
            return value
        if origin in (typing.Union, types.UnionType):
            if node.tag == _NULL and type(None) in arguments:
                return None
            return self.convert(node, next(a for a in arguments if a is not type(None)), key)
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


def _shown(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        return "a list" if isinstance(node, yaml.SequenceNode) else "keys below it"
    return f"`{textwrap.shorten(node.value, 60)}`" if node.value else "nothing"


def _choose(node: yaml.Node, choices: tuple[Any, ...]) -> Any:
    named = {str(choice): choice for choice in choices}
    if isinstance(node, yaml.ScalarNode) and node.value in named:
        return named[node.value]
    close = difflib.get_close_matches(str(node.value), named, n=1)
    hint = f"; did you mean `{close[0]}`?" if close else ""
    raise ValueError(f"{_shown(node)} is not one of {', '.join(named)}{hint}")


def _scalar(node: yaml.Node, hint: type) -> Any:
    """Read as written, not as YAML 1.1 sees it: there 1e-3 is text, 010 is 8 and `no` is false."""
    wanted = {str: "text", bool: "true or false", int: "a whole number", float: "a number"}
    if isinstance(node, yaml.ScalarNode) and node.tag != _NULL:
        text = node.value
        if hint is str:
            return text
        if hint is bool and text.lower() in yaml.SafeLoader.bool_values:
            return yaml.SafeLoader.bool_values[text.lower()]
        if hint in (int, float):
            with contextlib.suppress(ValueError):
                number = float(text.lower().replace(".inf", "inf"))
                if hint is float and number == number:  # not NaN, which no setting means
                    return number
                if number.is_integer():
                    return int(text) if text.lstrip("+-").isdigit() else int(number)
    raise ValueError(f"expected {wanted[hint]}, got {_shown(node)}")


def key_paths(schema: type[Any], prefix: str = "") -> list[str]:
    """Every key that a recipe of this schema may set, as `section.key`."""
    paths = []
    for key, hint in typing.get_type_hints(schema).items():
        full = f"{prefix}{key}"
        if dataclasses.is_dataclass(hint):
            paths += key_paths(typing.cast(type, hint), f"{full}.")
        else:
            paths.append(full)
    return paths
