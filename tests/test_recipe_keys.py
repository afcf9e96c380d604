"""The reference of recipe keys documents every key of every task."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from tools.recipe_keys import recipes, reference, section_of

from sightline import config
from sightline.config.reader import key_paths


@dataclass(frozen=True)
class Inner:
    size: config.Positive = 1
    needed: str = "there"


@dataclass(frozen=True)
class Documented:
    # Above the field,
    # on two lines
    above: int  # and on its own line
    plain: str | None = None

    # A separate paragraph documents nothing

    inner: Inner = field(  # what it is made of
        default_factory=lambda: Inner(size=4)
    )


@dataclass(frozen=True)
class More(Documented):
    """Adds a key."""

    text: str = "a # b | c"


def test_the_comments_of_a_field_are_its_documentation() -> None:
    section = section_of(More)
    assert [row[:4] for row in section.rows] == [
        (
            "above",
            "a whole number",
            "required",
            "Above the field, on two lines and on its own line",
        ),
        ("plain", "text or null", "`null`", ""),
        ("inner", "", "", "what it is made of"),
        ("text", "text", "`a # b | c`", ""),
    ]
    (inner,) = section.rows[2].sections
    assert [row[:3] for row in inner.rows] == [
        ("inner.size", "a whole number (1 or more)", "`4`"),
        ("inner.needed", "text", "`there`"),
    ]


def test_the_reference_has_every_key_of_every_task_and_no_broken_link() -> None:
    text = reference()
    for recipe in recipes().values():
        for path in key_paths(recipe):
            assert f"| `{path}` |" in text
    links = set(re.findall(r"\(#([^)]+)\)", text))
    anchors = re.findall(r'<a id="([^"]+)">', text)
    assert links == set(anchors)
    assert len(anchors) == len(links)


def test_the_reference_in_docs_is_up_to_date() -> None:
    path = Path(__file__).parents[1] / "docs" / "reference" / "recipe-keys.md"
    assert path.read_text(encoding="utf-8") == reference(), "run `make docs-reference`"
