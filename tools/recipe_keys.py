"""`make docs-reference`: every recipe key of every task, as Markdown.

The documentation of a key is the comment next to or above its field in the source.
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import io
import json
import textwrap
import tokenize
import typing
from typing import Any, NamedTuple

from sightline.config.reader import sections_in, type_words
from sightline.tasks import all_specs

HEAD = """\
# Recipe keys

Every key of every task's recipe. Set a key in the YAML file, or on the command line as
`section.key=value`. `sightline recipes` lists the recipes that ship with Sightline.

This file is generated from the dataclasses by `make docs-reference`; do not edit it.
"""


class Row(NamedTuple):
    key: str  # the full path
    type: str
    default: str
    comment: str
    sections: tuple[Section, ...]  # what the key's value is made of, if it has keys below it


class Section(NamedTuple):
    """One table: the keys directly below `path`, which is empty for the top of the recipe."""

    path: str
    schema: type[Any]
    rows: tuple[Row, ...]


def recipes() -> dict[str, type[Any]]:
    """Each task's recipe dataclass."""
    return {spec.name: spec.recipe for spec in all_specs()}


def reference() -> str:
    """The whole reference; a section that an earlier task has in the same form is linked to."""
    written: dict[Section, str] = {}  # the anchor of each section
    parts = [HEAD]
    for task, recipe in recipes().items():
        parts += [f"## `{task}`\n", *_tables(section_of(recipe), task, written)]
    return "\n".join(parts)


def section_of(schema: type[Any], path: str = "", given: Any = None) -> Section:
    """The keys of a dataclass; `given` is the section's default, where its owner has one."""
    hints = typing.get_type_hints(schema, include_extras=True)
    comments = field_comments(schema)
    rows = []
    for item in dataclasses.fields(schema):
        hint, key = hints[item.name], f"{path}.{item.name}".lstrip(".")
        value = _default(item) if given is None else getattr(given, item.name)
        nested = tuple(
            section_of(section, key, value if isinstance(value, section) else None)
            for section in sections_in(hint)
        )
        always = dataclasses.is_dataclass(hint)  # its own table gives the defaults
        words, shown = ("", "") if always else (type_words(hint), _shown(value))
        rows.append(Row(key, words, shown, comments.get(item.name, ""), nested))
    return Section(path, schema, tuple(rows))


def _tables(section: Section, task: str, written: dict[Section, str]) -> list[str]:
    """The section's table, then those of the sections below it that are not written yet."""
    parts: list[str] = []
    if section.path:
        parts += [f'<a id="{written[section]}"></a>\n', f"### `{section.path}`\n"]
    if text := ast.get_docstring(_class_node(section.schema)[0]):
        parts.append(text + "\n")
    parts.append("| key | type | default | meaning |\n|---|---|---|---|")
    new: list[Section] = []
    for row in section.rows:
        links = []
        for nested in row.sections:
            if nested not in written:
                written[nested] = f"{task}-{nested.path}".replace(".", "-").replace("_", "-")
                new.append(nested)
            links.append(f"[section](#{written[nested]})")
        type_cell = "; ".join(filter(None, [row.type, *links]))
        cells = (f"`{row.key}`", type_cell, row.default, row.comment)
        parts.append(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |")
    parts.append("")
    return parts + [part for nested in new for part in _tables(nested, task, written)]


def _default(item: dataclasses.Field[Any]) -> Any:
    if item.default_factory is not dataclasses.MISSING:
        return item.default_factory()
    return item.default


def _shown(value: Any) -> str:
    """A default as it is written in YAML."""
    if value is dataclasses.MISSING:
        return "required"
    if isinstance(value, str) and value and value.isprintable():
        return f"`{value}`"
    return f"`{json.dumps(value, ensure_ascii=False)}`"


def field_comments(schema: type[Any]) -> dict[str, str]:
    """The comments above each field and on its lines, by the field's name; bases included."""
    comments: dict[str, str] = {}
    for owner in reversed(schema.__mro__):
        if dataclasses.is_dataclass(owner):
            comments |= _own_comments(owner)
    return comments


def _class_node(schema: type[Any]) -> tuple[ast.ClassDef, str]:
    source = textwrap.dedent(inspect.getsource(schema))
    node = ast.parse(source).body[0]
    assert isinstance(node, ast.ClassDef)
    return node, source


def _own_comments(schema: type[Any]) -> dict[str, str]:
    node, source = _class_node(schema)
    lines = source.splitlines()
    notes = {
        token.start[0]: token.string.lstrip("# ")
        for token in tokenize.generate_tokens(io.StringIO(source).readline)
        if token.type == tokenize.COMMENT
    }
    comments = {}
    for field in node.body:
        if not isinstance(field, ast.AnnAssign) or not isinstance(field.target, ast.Name):
            continue
        first = field.lineno
        while first - 1 in notes and lines[first - 2].lstrip().startswith("#"):
            first -= 1
        texts = [notes[n] for n in range(first, (field.end_lineno or first) + 1) if n in notes]
        comments[field.target.id] = " ".join(texts)
    return comments


if __name__ == "__main__":
    print(reference(), end="")
