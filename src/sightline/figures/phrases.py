"""A sentence's tree, drawn over its words; under them, where each bracket looked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.data.trees import Tree
from sightline.errors import UserError
from sightline.figures.alignment import colours_of
from sightline.figures.files import suffix_of
from sightline.figures.fonts import Lettering, clean
from sightline.figures.sheet import FAINT, INK, SUFFIXES, Line, Picture, Sheet, Text

MARGIN, GAP = 36, 14
WORD, TAG, LABEL = 17, 13, 15  # sizes of letters
LEVEL = 44  # pixels from a phrase to those inside it
ROW = 20  # of the attention's table
LONGEST = 170
LINK = (150, 153, 165)


def draw_tree(
    tree: Tree, path: Path | str, attention: NDArray[Any] | None = None, title: str = ""
) -> None:
    """Draw a tree; with attention (T, M), a table of the step at which each phrase was opened.

    The table's rows are the phrases, its columns the words under which it stands.
    """
    suffix_of(path, SUFFIXES)
    leaves = list(tree.leaves())
    if not leaves:
        raise UserError("the tree has no words to draw")
    if attention is not None and attention.shape[1] != len(leaves):
        raise UserError(f"attention over {attention.shape[1]} places, the tree has {len(leaves)}")
    letters = Lettering([clean(str(leaf.word)) for leaf in leaves])
    words = [letters.fit(clean(str(leaf.word)), WORD, LONGEST, WORD)[0] for leaf in leaves]
    looked = [] if attention is None else _looks(tree, attention)
    names = [name for name, _ in looked]
    left = MARGIN + (GAP + max(letters.width(name, TAG) for name in names) if names else 0)
    places, x = [], float(left)
    for word, leaf in zip(words, leaves, strict=True):
        width = max(letters.width(word, WORD), letters.width(clean(leaf.label), TAG), 22) + GAP
        places.append((x, x + width))
        x += width
    head = 30 if title else 0
    base = MARGIN + head + LEVEL * _height(tree)
    lines: list[Line] = []
    texts = [Text(MARGIN, MARGIN + 18, clean(title), 18)] if title else []
    _draw(tree, 0, base, places, words, lines, texts)
    below = base + WORD + 34
    pictures = _table(looked, places, below, left, texts)
    height = below + ROW * len(looked) if looked else base + WORD + 20
    width = max(round(x), 300) + MARGIN
    Sheet(
        width, round(height) + MARGIN, title or "a tree", tuple(pictures), tuple(lines),
        texts=tuple(texts),
    ).save(path)  # fmt: skip


def _height(tree: Tree) -> int:
    return 0 if tree.word is not None else 1 + max(map(_height, tree.children))


def _draw(
    tree: Tree,
    start: int,
    base: float,
    places: Sequence[tuple[float, float]],
    words: Sequence[str],
    lines: list[Line],
    texts: list[Text],
) -> tuple[float, int]:
    """The node's middle, and the number of the word after it."""
    if tree.word is not None:
        x = sum(places[start]) / 2
        texts.append(Text(x, base, clean(tree.label), TAG, FAINT, "middle"))
        texts.append(Text(x, base + WORD + 6, words[start], WORD, INK, "middle"))
        return x, start + 1
    y, middles, at = base - LEVEL * _height(tree), [], start
    for child in tree.children:
        middle, at = _draw(child, at, base, places, words, lines, texts)
        middles.append((middle, base - LEVEL * _height(child)))
    x = (middles[0][0] + middles[-1][0]) / 2
    lines += [Line(x, y + 6, to, below - LABEL - 2, LINK) for to, below in middles]
    texts.append(Text(x, y, clean(tree.label), LABEL, INK, "middle"))
    return x, at


def _looks(tree: Tree, attention: NDArray[Any]) -> list[tuple[str, NDArray[Any]]]:
    """Each phrase's label, and where the model looked when it opened it."""
    found = ((phrase.label, phrase.steps) for phrase, _, _ in tree.phrases())
    return [(clean(label), attention[steps[0]]) for label, steps in found if steps]


def _table(
    looked: Sequence[tuple[str, NDArray[Any]]],
    places: Sequence[tuple[float, float]],
    top: float,
    left: float,
    texts: list[Text],
) -> list[Picture]:
    """A row of shaded cells for each phrase, as wide as the words above them."""
    pictures = []
    for row, (name, weights) in enumerate(looked):
        y = top + row * ROW
        texts.append(Text(left - GAP, y + ROW - 6, name, TAG, FAINT, "end"))
        colours = colours_of(np.asarray(weights, np.float64)[None])[0]  # (M, 3)
        for (a, b), colour in zip(places, colours, strict=True):
            cell = np.tile(colour, (ROW - 2, max(1, round(b) - round(a) - 2), 1))
            pictures.append(Picture(round(a), round(y), cell, exact=True))
    return pictures
