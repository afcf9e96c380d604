"""Partial results: a search in progress, one step at a time, for a page to draw."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sightline.search import Snapshot
from sightline.types import Description


@dataclass(frozen=True)
class Partial:
    """The state of a search after one step."""

    step: int
    text: str  # the best so far
    tokens: tuple[str, ...]
    # The candidates of this step: id, parent (None: the first word of an output), token, score
    # (summed log-probabilities), finished (among the best that ended), alive (continues)
    nodes: tuple[dict[str, Any], ...]
    best: int | None  # the last node of the best so far
    news: bool = True  # false once the example's search is over

    def to_json(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "text": self.text,
            "tokens": list(self.tokens),
            "nodes": list(self.nodes),
            "alive": [node["id"] for node in self.nodes if node["alive"]],
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
    places = {(node.parent, node.token): node.id for node in tree}
    at: int | None = None
    for token in snapshot.hypotheses[example][0].tokens:
        at = places[at, token]
    nodes = tuple(
        {"id": n.id, "parent": n.parent, "token": names[n.token], "score": n.score}
        | {"finished": n.finished, "alive": n.kept}
        for n in tree
        if n.step == snapshot.step
    )
    return Partial(snapshot.step, best.text, best.tokens, nodes, at, news=bool(nodes))
