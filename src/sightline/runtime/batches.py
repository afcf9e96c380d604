"""What is searched together: examples of about one size; and the parts of one source, joined."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from sightline.types import Description, Layout

STRIDE = 8  # sizes searched together differ by less than this, or than an eighth of their size
LARGEST_MATRIX = 4_000_000  # weights of attention kept for one line; a page of text has fewer


def similar(sizes: Sequence[int], batch: int) -> list[tuple[int, list[int]]]:
    """Rows of about one size in batches, each with the size that its class reaches to."""
    classes: dict[int, list[int]] = {}
    for row in sorted(range(len(sizes)), key=lambda row: sizes[row]):
        stride = max(STRIDE, 1 << sizes[row].bit_length() >> 4)
        classes.setdefault(-(-sizes[row] // stride) * stride, []).append(row)
    return [
        (reach, rows[at : at + batch])
        for reach, rows in classes.items()
        for at in range(0, len(rows), batch)
    ]


def ranked(descriptions: Sequence[Description]) -> Description:
    """An n-best list as its first, with the others as alternatives."""
    best, *others = descriptions
    return replace(best, alternatives=tuple(others))


def joined(parts: Sequence[Description]) -> Description:
    """The parts of one source as one description, rank by rank; empty for no parts."""
    if len(parts) == 1:
        return parts[0]
    lists = [[part, *part.alternatives] for part in parts]
    ranks = [_joined(same) for same in zip(*lists, strict=False)]
    return ranked(ranks or [Description("", (), 0.0, ())])


def _joined(parts: Sequence[Description]) -> Description:
    """Each part looked only at its own part of the source."""
    tokens = tuple(token for part in parts for token in part.tokens)
    looked = [p.attention for p in parts if p.attention is not None]
    attention = layout = None
    width = sum(weights.shape[1] for weights in looked)
    if len(looked) == len(parts) and len(tokens) * width <= LARGEST_MATRIX:
        attention = np.zeros((len(tokens), width), np.float32)
        row = column = 0
        for weights in looked:
            attention[row : row + len(weights), column : column + weights.shape[1]] = weights
            row, column = row + len(weights), column + weights.shape[1]
        layouts = [part.layout for part in parts if part.layout is not None]
        if all(each.kind == "frames" for each in layouts):
            layout = Layout.frames([time for each in layouts for time in each.times])
        else:
            layout = Layout.words([label for each in layouts for label in each.labels])
    sure = [part.confidence for part in parts if part.confidence is not None]
    return Description(
        text=" ".join(part.text for part in parts if part.text),
        tokens=tokens,
        score=sum(part.score for part in parts),
        log_probs=tuple(value for part in parts for value in part.log_probs),
        attention=attention,
        layout=layout,
        confidence=min(sure, default=None),  # of the part that is least sure
    )
