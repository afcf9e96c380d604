"""Partial results: a search as it goes on, one step at a time, for a page to draw."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from sightline import search
from sightline.search import BeamOptions, Snapshot
from sightline.tasks.parts import similar
from sightline.types import Description

if TYPE_CHECKING:
    from sightline.tasks.translate import Translator


@dataclass(frozen=True)
class BeamNode:
    """One candidate that the search considered in this step."""

    id: int  # counted from 0, in the order considered
    parent: int | None  # None: the first word of an output
    token: str
    score: float  # summed log-probabilities
    finished: bool  # ended, and among the best that did
    alive: bool  # goes on to the next step


@dataclass(frozen=True)
class Partial:
    """How a search stood after one step."""

    step: int
    text: str  # the best so far
    tokens: tuple[str, ...]
    nodes: tuple[BeamNode, ...]  # new in this step
    best: int | None  # the node at which the best so far stands

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
    snapshot: Snapshot,  # of a beam search that keeps its tree
    example: int,
    names: Sequence[str],  # of tokens
    text: Callable[[Sequence[int]], str],
) -> Partial:
    """The state of one example's search; empty of nodes once the example is settled."""
    assert snapshot.tree is not None, "ask the search for its tree"
    tree = snapshot.tree[example]
    best = snapshot.hypotheses[example][0]
    places = {(node.parent, node.token): node.id for node in tree}
    at: int | None = None
    for token in best.tokens:
        at = places[at, token]
    words = best.tokens[: len(best.tokens) - best.finished]
    return Partial(
        step=snapshot.step,
        text=text(words),
        tokens=tuple(names[token] for token in words),
        nodes=tuple(
            BeamNode(n.id, n.parent, names[n.token], n.score, n.finished, n.kept)
            for n in tree
            if n.step == snapshot.step
        ),
        best=at,
    )


def stream_translation(
    translator: Translator, text: str, *, beam: int | None = None, n_best: int = 1
) -> Iterator[Partial | Description]:
    """What `translate` gives of one text, after a Partial for each step of the search.

    A text that is translated in parts has no single search to show: it comes whole.
    """
    parts = translator.source.parts(translator.source.split(text), translator.recipe.longest)
    if len(parts) != 1:
        yield translator.translate(text, beam=beam, n_best=n_best)
        return
    vocab, settings = translator.target.vocab, translator.recipe.search
    ((reach, _),) = similar([len(parts[0])])
    options = BeamOptions(
        max_length=translator._longest_output(reach),
        size=max(beam or settings.beam, n_best),
        min_length=settings.min_length,
        length_penalty=settings.length_penalty,
        n_best=n_best,
        keep_tree=True,
    )
    stepper = translator._fused(translator.stepper)

    def written(tokens: Sequence[int]) -> str:
        return translator.target.text([vocab.tokens[token] for token in tokens])

    for snapshot in search.beam(stepper, translator._inputs(parts), options):
        yield partial_result(snapshot, 0, vocab.tokens, written)
    best, *others = (translator._description(h, parts[0]) for h in snapshot.hypotheses[0])
    yield replace(best, alternatives=tuple(others))
