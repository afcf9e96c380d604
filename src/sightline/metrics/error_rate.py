"""Word error rate, and phoneme error rate: edits per reference token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sightline.metrics.base import Corpus, Floats, Metric, ScoreInfo


class ErrorRate(Metric):
    """Statistics: edits and reference tokens, of the reference with the smallest rate.

    Tokens are what white space separates, as written: words for `wer`, phonemes for `per`. Rates
    can exceed 1.
    """

    def __init__(self, key: str = "wer") -> None:
        tolerance = {"int16": 0.2, "int8": 0.5}
        self.info = {key: ScoreInfo(key.upper(), 100, higher_is_better=False, tolerance=tolerance)}

    @property
    def signature(self) -> str:
        return f"{self.keys[0].upper()}|tok:space|case:mixed|references:min"

    def statistics(self, corpus: Corpus) -> Floats:
        rows = []
        for hypothesis, references in zip(corpus.hypotheses, corpus.references, strict=True):
            tokens = hypothesis.split()
            options = [(edits(tokens, text.split()), len(text.split())) for text in references]
            rows.append(min(options, key=lambda option: option[0] / max(option[1], 1)))
        return np.array(rows, dtype=np.float64)

    def scores(self, sums: Floats) -> Floats:
        # Against an empty reference, each token is one error.
        return sums[..., :1] / np.maximum(sums[..., 1:], 1.0)


def edits(first: Sequence[str], second: Sequence[str]) -> int:
    """The fewest insertions, deletions and substitutions between two sequences (Levenshtein).

    Myers 1999: a column of the table as two integers, bit i of `up` and `down` telling whether it
    grows or shrinks by one at token i of the second sequence.
    """
    if not second:
        return len(first)
    where: dict[str, int] = {}
    for position, token in enumerate(second):
        where[token] = where.get(token, 0) | 1 << position
    everywhere, last = (1 << len(second)) - 1, 1 << (len(second) - 1)
    up, down, distance = everywhere, 0, len(second)
    for token in first:
        matches = where.get(token, 0)
        diagonal = (((matches & up) + up) ^ up) | matches
        right = down | everywhere & ~(diagonal | up)  # where the row above grows
        left = up & diagonal
        distance += bool(right & last) - bool(left & last)
        right, left = (right << 1 | 1) & everywhere, (left << 1) & everywhere
        unchanged = matches | down
        up, down = left | everywhere & ~(unchanged | right), right & unchanged
    return distance


Edit = tuple[str | None, str | None]  # of the reference, of the hypothesis; None where one has none


def edit_alignment(reference: Sequence[str], hypothesis: Sequence[str]) -> list[Edit]:
    """The two side by side with the fewest edits: pairs that differ are the errors."""
    rows, columns = len(reference) + 1, len(hypothesis) + 1
    cost = np.zeros((rows, columns), np.int64)
    cost[:, 0], cost[0] = np.arange(rows), np.arange(columns)
    for i, first in enumerate(reference, start=1):
        for j, second in enumerate(hypothesis, start=1):
            same = cost[i - 1, j - 1] + (first != second)
            cost[i, j] = min(same, cost[i - 1, j] + 1, cost[i, j - 1] + 1)
    pairs: list[Edit] = []
    i, j = rows - 1, columns - 1
    while i or j:
        if i and j and cost[i, j] == cost[i - 1, j - 1] + (reference[i - 1] != hypothesis[j - 1]):
            i, j = i - 1, j - 1
            pairs.append((reference[i], hypothesis[j]))
        elif i and cost[i, j] == cost[i - 1, j] + 1:
            i -= 1
            pairs.append((reference[i], None))
        else:
            j -= 1
            pairs.append((None, hypothesis[j]))
    return pairs[::-1]
