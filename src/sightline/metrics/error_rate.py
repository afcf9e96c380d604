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
        self.info = {key: ScoreInfo(key.upper(), 100, higher_is_better=False)}

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
