"""A text as a picture, each token shaded by how unexpected it was."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from sightline.figures.files import write
from sightline.figures.fonts import open_dejavu
from sightline.types import Description

INK, FAINT, PAPER = (33, 33, 38), (120, 120, 128), (255, 255, 255)
CALM, STARTLED = (255, 255, 255), (226, 88, 34)  # a token that was certain, one that was not
MOST_NATS = 5.0  # the colour stops here: p = 0.7 %


def draw_surprise(description: Description, path: Path | str, columns: int = 72) -> None:
    """A text as a picture, the ground of each token shaded by −log p: white was expected."""
    font, small = (open_dejavu("DejaVuSansMono.ttf", size) for size in (20, 15))
    left, top, right, bottom = font.getbbox("Mg")
    width, height = (
        math.ceil((right - left) / 2),
        math.ceil((bottom - top) * 1.45),
    )  # of a letter
    rows = _wrap(description.tokens, description.log_probs, columns)
    margin = 2 * width
    size = (2 * margin + columns * width, 2 * margin + (len(rows) + 3) * height)
    picture = Image.new("RGB", size, PAPER)
    draw = ImageDraw.Draw(picture)
    for number, row in enumerate(rows):
        x, y = margin, margin + number * height
        for text, nats in row:
            right = x + width * len(text)
            draw.rectangle((x, y, right, y + height - 1), fill=_shade(nats))
            draw.text((x, y + 2), text, fill=INK, font=font)
            x = right
    y = margin + (len(rows) + 1) * height
    _draw_legend(draw, margin, y, height, small)
    mean = -sum(description.log_probs) / max(1, len(description.log_probs))
    place = (size[0] - margin, y + 3)
    draw.text(place, f"mean {mean:.2f} nats", fill=FAINT, font=small, anchor="ra")
    write(path, picture.save)


def _shade(nats: float) -> tuple[int, ...]:
    part = min(1.0, max(0.0, nats / MOST_NATS))
    ends = zip(CALM, STARTLED, strict=True)
    return tuple(round(calm + (startled - calm) * part) for calm, startled in ends)


def _wrap(
    tokens: Sequence[str], log_probs: Sequence[float], columns: int
) -> list[list[tuple[str, float]]]:
    """Tokens with their nats in rows of at most `columns` characters; a newline ends a row."""
    rows: list[list[tuple[str, float]]] = [[]]
    for token, log_prob in zip(tokens, log_probs, strict=True):
        shown = "↵" if token in ("\n", "<end>") else token.replace("▁", " ")
        if sum(len(text) for text, _ in rows[-1]) + len(shown) > columns:
            rows.append([])
        rows[-1].append((shown, -log_prob))
        if shown == "↵":
            rows.append([])
    return [row for row in rows if row]


def _draw_legend(draw: Any, x: int, y: int, height: int, font: Any) -> None:
    """A bar from 0 to the most nats that the colours distinguish."""
    draw.text((x, y + 3), "surprise, nats   0", fill=FAINT, font=font)
    x += int(font.getlength("surprise, nats   0 ")) + 4
    for step in range(100):
        colour = _shade(step / 100 * MOST_NATS)
        draw.rectangle((x + step, y + 4, x + step, y + height - 6), fill=colour)
    draw.text((x + 108, y + 3), f"{MOST_NATS:.0f}+", fill=FAINT, font=font)
