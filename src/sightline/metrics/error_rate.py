"""Word error rate, and phoneme error rate: edits per reference token."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from sightline.metrics.base import Corpus, Floats, Metric


class ErrorRate(Metric):
    """Statistics: edits and reference tokens, of the reference with the smallest rate.

    Tokens are what white space separates, as written: words for `wer`, phonemes for `per`. Rates
    can exceed 1; less is better.
    """

    name = "error_rate"

    def __init__(self, key: str = "wer") -> None:
        self.key = key

    @property
    def keys(self) -> tuple[str, ...]:
        return (self.key,)

    @property
    def signature(self) -> str:
        return f"{self.key.upper()}|tok:space|case:mixed|references:min"

    def statistics(self, corpus: Corpus) -> Floats:
        rows = []
        for hypothesis, references in zip(corpus.hypotheses, corpus.references, strict=True):
            tokens = hypothesis.split()
            options = [(edits(tokens, text.split()), len(text.split())) for text in references]
            rows.append(min(options, key=lambda option: option[0] / max(option[1], 1)))
        return np.array(rows, dtype=np.float64)

    def scores(self, sums: Floats) -> Floats:
        # Against an empty reference, each token said is one error.
        return sums[..., :1] / np.maximum(sums[..., 1:], 1.0)


def edits(first: Sequence[str], second: Sequence[str]) -> int:
    """The fewest insertions, deletions and substitutions between two sequences (Levenshtein)."""
    numbers: dict[str, int] = {}
    rows = [numbers.setdefault(token, len(numbers)) for token in first]
    columns = np.array([numbers.setdefault(token, len(numbers)) for token in second], dtype=int)
    steps = np.arange(len(columns) + 1)
    row = steps.copy()  # distances of the first i tokens to every prefix of the second
    for token in rows:
        best = row + 1
        best[1:] = np.minimum(best[1:], row[:-1] + (columns != token))
        row = np.minimum.accumulate(best - steps) + steps
    return int(row[-1])
