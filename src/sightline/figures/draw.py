"""The figure of a description, whatever it describes: its layout tells which."""

from __future__ import annotations

from pathlib import Path

from sightline.errors import UserError
from sightline.figures.alignment import draw_alignment
from sightline.figures.animation import SUFFIXES as ANIMATED
from sightline.figures.animation import animate_attention
from sightline.figures.attention import draw_attention
from sightline.figures.files import suffix_of
from sightline.figures.looks import Box, PictureSource, looks_of
from sightline.figures.sheet import SUFFIXES
from sightline.types import Description


def draw(
    description: Description,
    path: Path | str,
    picture: PictureSource | None = None,
    *,
    visible_box: Box | None = None,
) -> None:
    """Attention over its picture (still or, as .gif or .webp, moving), over words or over time."""
    looks_of(description)  # an error if there is nothing to draw
    kind = description.layout.kind if description.layout else "vector"
    if kind == "grid":
        suffix = suffix_of(path, (*SUFFIXES, *ANIMATED))
        if picture is None:
            raise UserError("attention over a picture needs the picture: give its file or pixels")
        show = animate_attention if suffix in ANIMATED else draw_attention
        show(picture, description, path, visible_box=visible_box)
    elif kind in ("words", "frames"):
        draw_alignment(description, path)
    else:
        raise UserError(f"there is no figure for attention over {kind} yet")
