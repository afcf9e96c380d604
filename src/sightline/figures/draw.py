"""The figure of a description, whatever it describes: the kind of its layout decides which."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from sightline.errors import UserError
from sightline.figures.alignment import draw_alignment
from sightline.figures.animation import SUFFIXES as ANIMATED
from sightline.figures.animation import animate_attention
from sightline.figures.attention import draw_attention
from sightline.figures.facts import draw_facts
from sightline.figures.files import suffix_of
from sightline.figures.looks import PictureSource, looks_of
from sightline.figures.points import draw_points
from sightline.figures.sheet import SUFFIXES
from sightline.types import Description, LayoutKind


def draw(description: Description, path: Path | str, source: PictureSource | None = None) -> None:
    """Attention over its picture (still or, as .gif or .webp, moving), words, time or points.

    `source` is what was described: a picture's file or its pixels.
    """
    kind = description.layout.kind if description.layout else "vector"
    if kind != "facts":
        looks_of(description)  # an error if there is nothing to draw
    if kind not in FIGURES:
        raise UserError(f"there is no figure for attention over {kind} yet")
    FIGURES[kind](description, path, source)


def _over_picture(description: Description, path: Path | str, source: PictureSource | None) -> None:
    suffix = suffix_of(path, (*SUFFIXES, *ANIMATED))
    if source is None:
        raise UserError("attention over a picture needs the picture: give its file or pixels")
    (animate_attention if suffix in ANIMATED else draw_attention)(source, description, path)


def _over_time(description: Description, path: Path | str, source: PictureSource | None) -> None:
    """A film shows its frames; what has none, a recording, a matrix over time."""
    layout = description.layout
    if source is not None and layout is not None and layout.size != (0, 0):
        from sightline.figures.film import animate_film, draw_film

        suffix = suffix_of(path, (*SUFFIXES, *ANIMATED))
        (animate_film if suffix in ANIMATED else draw_film)(description, path, source)
    else:
        draw_alignment(description, path)


# One entry per kind of layout: (description, path, source) → a file.
FIGURES: Mapping[LayoutKind, Callable[[Description, Path | str, PictureSource | None], None]] = {
    "grid": _over_picture,
    "words": lambda description, path, source: draw_alignment(description, path),
    "frames": _over_time,
    "points": lambda description, path, source: draw_points(description, path),
    "facts": lambda description, path, source: draw_facts(description, path),
}
