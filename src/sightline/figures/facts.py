"""A story with the weight that each hop of a memory network gave to each fact."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sightline.errors import UserError
from sightline.figures.alignment import colours_of
from sightline.figures.files import suffix_of
from sightline.figures.fonts import Lettering, clean
from sightline.figures.sheet import FAINT, INK, PAPER, SUFFIXES, Picture, Sheet, Text
from sightline.types import Description

MARGIN, GAP = 36, 18
SIZE, ROW, CELL = 18, 32, 64
LONGEST = 640


def draw_facts(description: Description, path: Path | str, question: str = "") -> None:
    """A row for each fact, a column for each hop, the weight written where it is 1 % or more."""
    suffix_of(path, SUFFIXES)
    attention, layout = description.attention, description.layout
    if attention is None or layout is None or not layout.labels:
        raise UserError("there are no facts to draw")
    letters = Lettering([clean(label) for label in layout.labels])
    facts = [letters.fit(clean(label), SIZE, LONGEST, SIZE)[0] for label in layout.labels]
    left = MARGIN + round(max(letters.width(fact, SIZE) for fact in facts)) + GAP
    hops = len(attention)
    title = " ".join(filter(None, [clean(question), clean(description.text)]))
    top = MARGIN + 30 + GAP + SIZE
    texts = [Text(MARGIN, MARGIN + 22, title, 22)]
    for hop in range(hops):
        x = left + (hop + 0.5) * CELL
        texts.append(Text(x, top - 8, f"hop {hop + 1}", 14, FAINT, "middle"))
    pictures = []
    colours = colours_of(np.asarray(attention, np.float64))  # (hops, M, 3)
    for row, fact in enumerate(facts):
        y = top + row * ROW
        texts.append(Text(MARGIN, y + ROW - 10, fact, SIZE))
        for hop in range(hops):
            cell = np.tile(colours[hop, row], (ROW - 2, CELL - 2, 1))
            pictures.append(Picture(left + hop * CELL, y, cell, exact=True))
            weight = float(attention[hop, row])
            if weight >= 0.01:
                ink = PAPER if weight > 0.3 else INK
                x = left + (hop + 0.5) * CELL - 1
                texts.append(Text(x, y + ROW - 10, f"{weight:.0%}", 14, ink, "middle"))
    width = max(left + hops * CELL, MARGIN + round(letters.width(title, 22))) + MARGIN
    height = top + len(facts) * ROW + MARGIN
    Sheet(width, height, title, tuple(pictures), texts=tuple(texts)).save(path)
