"""Bracket precision, recall and F1 of phrase-structure trees, as EVALB computes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

import numpy as np

from sightline.data.trees import Tree, read_trees
from sightline.errors import DataError
from sightline.metrics.base import Corpus, Floats, Metric, ScoreInfo

# COLLINS.prm: labels and tags that are left out, and labels that count as one
DELETED = frozenset(["", "TOP", "-NONE-", ",", ":", "``", "''", "."])
EQUAL = {"PRT": "ADVP"}


class Brackets(Metric):
    """EVALB with COLLINS.prm: labelled spans, without those of words, punctuation left out.

    Statistics: matched brackets, those of the reference, those of the hypothesis; whole trees that
    match, trees; right tags, words. A word is left out by its tag in the reference, so that no
    wrong tag can change what is compared. A hypothesis that is no tree over the reference's words
    has no brackets; EVALB would leave it out altogether.
    """

    info: Mapping[str, ScoreInfo] = {
        "bracket_f1": ScoreInfo("Bracket F1", 100, tolerance={"int16": 0.1, "int8": 0.5}),
        "bracket_precision": ScoreInfo("Bracket precision", 100),
        "bracket_recall": ScoreInfo("Bracket recall", 100),
        "bracket_exact": ScoreInfo("Whole trees", 100),
        "tag_accuracy": ScoreInfo("Tags", 100),
    }

    @property
    def signature(self) -> str:
        return "EVALB|prm:COLLINS|references:max"

    def statistics(self, corpus: Corpus) -> Floats:
        rows = []
        for item, text, references in zip(
            corpus.ids, corpus.hypotheses, corpus.references, strict=True
        ):
            options = [compare(_tree(text), _reference(each, item)) for each in references]
            rows.append(max(options, key=lambda row: row[0] / max(1, row[1] + row[2])))
        return np.array(rows, dtype=np.float64)

    def scores(self, sums: Floats) -> Floats:
        matched, gold, found, whole, trees, tags, words = np.moveaxis(sums, -1, 0)
        pairs = (
            (2 * matched, gold + found), (matched, found), (matched, gold), (whole, trees),
            (tags, words),
        )  # fmt: skip
        return np.stack([part / np.maximum(total, 1.0) for part, total in pairs], axis=-1)


def compare(found: Tree | None, gold: Tree) -> tuple[int, ...]:
    """The statistics of one pair of trees."""
    leaves = list(gold.leaves())
    kept = [leaf.label not in DELETED for leaf in leaves]
    theirs = _brackets(gold, kept)
    words = [leaf.word for leaf in leaves]
    if found is None or [leaf.word for leaf in found.leaves()] != words:
        return 0, theirs.total(), 0, 0, 1, 0, sum(kept)
    ours = _brackets(found, kept)
    matched = (ours & theirs).total()
    pairs = zip(found.leaves(), leaves, kept, strict=True)
    tags = sum(a.label == b.label for a, b, keep in pairs if keep)
    whole = matched == ours.total() == theirs.total()
    return matched, theirs.total(), ours.total(), int(whole), 1, tags, sum(kept)


def _brackets(tree: Tree, kept: list[bool]) -> Counter[tuple[str, int, int]]:
    """Labelled spans over the words that are kept; a span without any is none."""
    at = np.concatenate([[0], np.cumsum(kept)])
    spans = ((EQUAL.get(p.label, p.label), int(at[a]), int(at[b])) for p, a, b in tree.phrases())
    return Counter((label, a, b) for label, a, b in spans if label not in DELETED and a < b)


def _tree(text: str) -> Tree | None:
    try:
        trees = read_trees(text)
    except DataError:
        return None
    return trees[0] if len(trees) == 1 else None


def _reference(text: str, item: object) -> Tree:
    trees = read_trees(text, f"item {item!r}")
    if len(trees) != 1:
        raise DataError(f"item {item!r}: a reference must be one tree, not {len(trees)}")
    return trees[0]
