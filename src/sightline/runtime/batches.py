"""What is searched together: sentences of about one length, and the parts of one long line."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sightline.types import Description, Layout

SEARCH_BATCH = 64  # sentences searched at a time
STRIDE = 8  # they differ by less than this many tokens
LARGEST_MATRIX = 4_000_000  # weights of attention kept for one line; a page of text has fewer


def similar(lengths: list[int]) -> list[tuple[int, list[int]]]:
    """Rows of about one length in batches, each with the length that its class reaches to."""
    classes: dict[int, list[int]] = {}
    for row in sorted(range(len(lengths)), key=lambda row: lengths[row]):
        classes.setdefault(-(-lengths[row] // STRIDE) * STRIDE, []).append(row)
    return [
        (reach, rows[at : at + SEARCH_BATCH])
        for reach, rows in classes.items()
        for at in range(0, len(rows), SEARCH_BATCH)
    ]


def joined(parts: Sequence[Description]) -> Description:
    """The parts of one line as one description; each part looked only at its own source."""
    if len(parts) == 1:
        return parts[0]
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
        layout = Layout.words([label for p in parts if p.layout for label in p.layout.labels])
    return Description(
        text=" ".join(part.text for part in parts if part.text),
        tokens=tokens,
        score=sum(part.score for part in parts),
        log_probs=tuple(value for part in parts for value in part.log_probs),
        attention=attention,
        layout=layout,
    )
