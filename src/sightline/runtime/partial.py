"""Partial results: a search in progress, one step at a time, for a page to draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sightline.search import Snapshot
from sightline.types import Description


@dataclass(frozen=True)
class BeamNode:
    """One candidate that the search considered in this step."""

    id: int  # counted from 0, in the order considered
    parent: int | None  # None: the first word of an output
    token: str
    score: float  # summed log-probabilities
    finished: bool  # ended, and among the best that did
    alive: bool  # continues in the next step


@dataclass(frozen=True)
class Partial:
    """The state of a search after one step."""

    step: int
    text: str  # the best so far
    tokens: tuple[str, ...]
    nodes: tuple[BeamNode, ...]  # new in this step
    best: int | None  # the last node of the best so far
    news: bool = True  # false once the example's search is over

    @property
    def alive(self) -> tuple[int, ...]:
        return tuple(node.id for node in self.nodes if node.alive)

    def to_json(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "text": self.text,
            "tokens": list(self.tokens),
            "nodes": [vars(node) for node in self.nodes],
            "alive": list(self.alive),
            "best": self.best,
        }


def partial_result(
    snapshot: Snapshot,  # of a beam search that keeps its tree, or of sampling
    example: int,
    best: Description,  # of the example's first hypothesis
    names: Sequence[str],  # of tokens
) -> Partial:
    """The state of one example's search."""
    if snapshot.tree is None:
        return Partial(snapshot.step, best.text, best.tokens, (), None)
    tree = snapshot.tree[example]
    places: dict[tuple[int | None, int], list[int]] = {}
    for node in tree:  # groups of a beam may write the same words
        places.setdefault((node.parent, node.token), []).append(node.id)
    ends: list[int | None] = [None]
    for token in snapshot.hypotheses[example][0].tokens:
        ends = [place for end in ends for place in places.get((end, token), ())]
    nodes = tuple(
        BeamNode(n.id, n.parent, names[n.token], n.score, n.finished, n.kept)
        for n in tree
        if n.step == snapshot.step
    )
    return Partial(snapshot.step, best.text, best.tokens, nodes, ends[0], news=bool(nodes))
