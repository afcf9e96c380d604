"""Two NumPy idioms for rows of unequal length, which matching and alignment are made of."""

import numpy as np
from numpy.typing import NDArray

I64 = NDArray[np.int64]


def spread(starts: NDArray[np.integer], counts: NDArray[np.integer]) -> tuple[I64, I64]:
    """Every element of the ranges `starts[r] … starts[r] + counts[r]`: (its row r, the element)."""
    rows = np.repeat(np.arange(len(counts)), counts)
    before = np.cumsum(counts) - counts
    return rows, np.arange(len(rows)) + (starts - before)[rows]


def pairs_in_groups(labels: NDArray[np.integer], members: I64) -> tuple[I64, I64]:
    """All ordered pairs (a, b) of members with the same label, (a, a) included."""
    order = np.argsort(labels, kind="stable")
    sorted_labels, sorted_members = labels[order], members[order]
    first = np.searchsorted(sorted_labels, sorted_labels, "left")
    last = np.searchsorted(sorted_labels, sorted_labels, "right")
    rows, others = spread(first, last - first)
    return sorted_members[rows], sorted_members[others]
