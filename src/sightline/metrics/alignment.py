"""Alignment error rate (Och and Ney 2003) of word alignments against hand-made ones."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from sightline.errors import DataError
from sightline.metrics.base import Floats, Metric, ScoreInfo

Links = frozenset[tuple[int, int]]
_LINK = re.compile(r"(\d+)([-p])(\d+)")


@dataclass(frozen=True)
class GoldAlignment:
    """The links annotators were sure of, and all they thought possible (the sure among them)."""

    sure: Links
    possible: Links


def read_alignment(line: str, first: int = 1, where: str = "alignment") -> GoldAlignment:
    """Read `1-1 2-3 4p4`: source and target positions, `-` sure and `p` possible.

    `first` is the number of the first word in the file; links are counted from 0 here.
    """
    sure, possible = set(), set()
    for item in line.split():
        match = _LINK.fullmatch(item)
        if match is None or min(int(match[1]), int(match[3])) < first:
            raise DataError(f"{where}: {item!r} is not a link such as {first}-{first} or 4p5")
        link = int(match[1]) - first, int(match[3]) - first
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return GoldAlignment(frozenset(sure), frozenset(possible))


class AlignmentErrorRate(Metric):
    """AER = 1 - (|A∩S| + |A∩P|) / (|A| + |S|); statistics: numerator and denominator."""

    info: Mapping[str, ScoreInfo] = {"aer": ScoreInfo("AER", 100, higher_is_better=False)}

    @property
    def signature(self) -> str:
        return "AER|links:sure+possible"

    def statistics(
        self, corpus: Sequence[tuple[Iterable[tuple[int, int]], GoldAlignment]]
    ) -> Floats:
        """From pairs of proposed links and the hand-made alignment."""
        rows = []
        for links, gold in corpus:
            proposed = set(links)
            agreed = len(proposed & gold.sure) + len(proposed & gold.possible)
            rows.append((agreed, len(proposed) + len(gold.sure)))
        return np.array(rows, dtype=np.float64)

    def scores(self, sums: Floats) -> Floats:
        agreed, links = sums[..., :1], sums[..., 1:]
        return np.where(links > 0, 1.0 - agreed / np.maximum(links, 1.0), 0.0)
