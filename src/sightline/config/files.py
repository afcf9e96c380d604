"""Recipes ← YAML files, text and `key.sub=value` overrides; recipes → YAML."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import yaml

from sightline.config.reader import (
    Reader,
    compose,
    compose_file,
    key_paths,
    override_node,
    reads_as_number,
    replaced,
)
from sightline.errors import ConfigError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T")


def parse_file(path: Path | str, schema: type[T], overrides: Sequence[str] = ()) -> T:
    """Read a recipe into `schema`; `overrides` (`key.sub=value`) replace its keys."""
    return _parse(compose_file(Path(path)), str(path), schema, overrides)


def parse_text(text: str, schema: type[T], overrides: Sequence[str] = (), name: str = "text") -> T:
    """Read a recipe's text into `schema`; errors call it `name`."""
    return _parse(compose(text, name), name, schema, overrides)


def top_level(path: Path | str, key: str) -> str | None:
    """One scalar at the top of a YAML file, read before the schema is known (such as `task`)."""
    root = compose_file(Path(path))
    for name, value in root.value:
        if name.value == key and isinstance(value, yaml.ScalarNode):
            return str(value.value)
    return None


def _parse(root: yaml.MappingNode, name: str, schema: type[T], overrides: Sequence[str]) -> T:
    for override in overrides:
        key, equals, value = override.partition("=")
        if not equals or not key:
            raise ConfigError(f"`{override}`: an override is written key.sub=value")
        root = replaced(root, key.split("."), override_node(value))
    return Reader(name, key_paths(schema)).build(root, schema)


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
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def to_yaml(config: DataclassInstance) -> str:
    """A config as YAML that `parse_text` reads back unchanged."""
    # not allow_unicode: PyYAML then writes U+0085, U+2028 and U+2029 in ways it cannot read
    return yaml.dump(to_dict(config), Dumper=_Dumper, sort_keys=False)
