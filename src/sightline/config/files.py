"""Recipes ← YAML files, text and `key.sub=value` overrides; recipes → YAML."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from sightline.config.reader import NULL, Reader, key_paths, reads_as_number
from sightline.errors import ConfigError
from sightline.media.files import open_file

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_MAP, _STR = "tag:yaml.org,2002:map", "tag:yaml.org,2002:str"
T = TypeVar("T")
AUTO = "auto"
Auto = Callable[[dict[str, Any], set[str]], Mapping[str, Any]]  # the recipe, its keys → values


def parse_file(
    path: Path | str, schema: type[T], overrides: Sequence[str] = (), auto: Auto | None = None
) -> T:
    """Read a recipe into `schema`; `overrides` (`key.sub=value`) replace its keys.

    `auto` chooses the values of keys that are `auto`.
    """
    return _parse(compose_file(Path(path)), str(path), schema, overrides, auto)


def parse_text(text: str, schema: type[T], overrides: Sequence[str] = (), name: str = "text") -> T:
    """Read a recipe's text into `schema`; errors call it `name`."""
    return _parse(_compose(text, name), name, schema, overrides)


def top_level(path: Path | str, key: str) -> str | None:
    """One scalar at the top of a YAML file, read before the schema is known (such as `task`)."""
    root = compose_file(Path(path))
    for name, value in root.value:
        if name.value == key and isinstance(value, yaml.ScalarNode):
            return str(value.value)
    return None


def _parse(
    root: yaml.MappingNode,
    name: str,
    schema: type[T],
    overrides: Sequence[str],
    auto: Auto | None = None,
) -> T:
    given = _overridden(root, overrides)
    if auto is not None and (keys := {*_auto_keys(root), *_auto_keys(given)}):
        chosen = auto(yaml.safe_load(yaml.serialize(given)), keys)
        # first the file's, so that an override may change a part of a section that is chosen
        given = _chosen(_overridden(_chosen(root, chosen), overrides), chosen)
    return Reader(name, key_paths(schema)).build(given, schema)


def _overridden(root: yaml.MappingNode, overrides: Sequence[str]) -> yaml.MappingNode:
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or not key:
            raise ConfigError(f"`{override}`: an override is written key.sub=value")
        root = _replaced(root, key.split("."), _override(value))
    return root


def _auto_keys(node: yaml.Node, prefix: str = "") -> Iterator[str]:
    """The paths of the keys whose value is `auto`."""
    for key, value in node.value if isinstance(node, yaml.MappingNode) else ():
        if isinstance(value, yaml.ScalarNode) and value.value == AUTO:
            yield f"{prefix}{key.value}"
        yield from _auto_keys(value, f"{prefix}{key.value}.")


def _chosen(root: yaml.MappingNode, values: Mapping[str, Any]) -> yaml.MappingNode:
    """The recipe with these in the place of `auto`; what none is given for stays as it is."""
    for key in [*_auto_keys(root)]:
        if key in values:
            root = _replaced(root, key.split("."), _override(yaml.safe_dump(values[key])))
    return root


def compose_file(path: Path) -> yaml.MappingNode:
    """The root mapping of a YAML file."""
    try:
        with io.TextIOWrapper(open_file(path), encoding="utf-8") as file:
            text = file.read()
    except FileNotFoundError:
        message = f"no recipe at {path}; `sightline recipes` lists the shipped ones"
        raise ConfigError(message) from None
    except IsADirectoryError:
        raise ConfigError(f"{path} is a folder; give the recipe's YAML file") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: not UTF-8 text (byte {error.start}); is it a recipe?") from None
    except OSError as error:
        raise ConfigError(f"cannot read {path}: {error.strerror}") from None
    return _compose(text, str(path))


def _compose(text: str, name: str) -> yaml.MappingNode:
    """The root mapping of a YAML text; errors call it `name`."""
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


class _Unmarked(yaml.SafeLoader):
    """An override has no line: without marks, its errors name the key instead."""

    def get_mark(self) -> Any:
        return None


def _override(value: str) -> yaml.Node:
    """An override's value as YAML; what is not YAML, such as `*`, is plain text."""
    try:
        node: yaml.Node | None = yaml.compose(value, Loader=_Unmarked)
    except (yaml.YAMLError, RecursionError):
        node = None
    return node or yaml.ScalarNode(_STR if value else NULL, value)


def _replaced(mapping: yaml.Node, path: list[str], value: yaml.Node) -> yaml.MappingNode:
    """The mapping with `value` at `path`; a copy, since YAML anchors may share the original."""
    is_section = isinstance(mapping, yaml.MappingNode)
    pairs = list(mapping.value) if is_section else []
    at = next((i for i, (key, _) in enumerate(pairs) if key.value == path[0]), len(pairs))
    if at == len(pairs):
        pairs.append((yaml.ScalarNode(_STR, path[0]), yaml.ScalarNode(NULL, "")))
    key, child = pairs[at]
    pairs[at] = (key, value if len(path) == 1 else _replaced(child, path[1:], value))
    return yaml.MappingNode(_MAP, pairs, mapping.start_mark if is_section else None)


def to_dict(config: DataclassInstance) -> dict[str, Any]:
    """A config as plain dictionaries and lists, for YAML and JSON."""

    def plain(value: Any) -> Any:
        if isinstance(value, dict):
            return {k: plain(v) for k, v in value.items()}
        return [plain(v) for v in value] if isinstance(value, tuple | list) else value

    return {key: plain(value) for key, value in dataclasses.asdict(config).items()}


class _Dumper(yaml.SafeDumper):
    """Quotes text that the reader would take for a number, such as 1e-3."""


def _represent_text(dumper: _Dumper, text: str) -> yaml.ScalarNode:
    style = "'" if reads_as_number(text) else None
    return dumper.represent_scalar(_STR, text, style=style)


_Dumper.add_representer(str, _represent_text)


def to_yaml(config: DataclassInstance) -> str:
    """A config as YAML that `parse_text` reads back unchanged."""
    # not allow_unicode: PyYAML then writes U+0085, U+2028 and U+2029 in ways it cannot read
    return yaml.dump(to_dict(config), Dumper=_Dumper, sort_keys=False)
