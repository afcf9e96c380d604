"""ROUGE-L as the COCO evaluation computes it: F of the longest common subsequence, beta 1.2."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sightline.metrics.base import Corpus, Floats, MeanMetric, ScoreInfo, mean_statistics

_BETA = 1.2


class RougeL(MeanMetric):
    """The best precision and the best recall over the references, combined."""

    info: Mapping[str, ScoreInfo] = {"rouge_l": ScoreInfo("ROUGE-L", 100)}

    @property
    def signature(self) -> str:
        return f"ROUGE-L|beta:{_BETA}|tok:ptb|case:lc|references:max|like:pycocoevalcap"

    def statistics(self, corpus: Corpus) -> Floats:
        pairs = zip(corpus.tokenized_hypotheses, corpus.tokenized_references, strict=True)
        return mean_statistics([rouge_l(hypothesis, texts) for hypothesis, texts in pairs])


def rouge_l(hypothesis: str, references: Sequence[str]) -> float:
    """ROUGE-L of one tokenised text. Like the reference, an empty text has one (empty) token."""
    tokens = hypothesis.split(" ")
    where: dict[str, int] = {}
    for position, token in enumerate(tokens):
        where[token] = where.get(token, 0) | 1 << position
    precision = recall = 0.0
    for reference in references:
        others = reference.split(" ")
        common = _common(where, len(tokens), others)
        precision = max(precision, common / len(tokens))
        recall = max(recall, common / len(others))
    if precision == 0.0:
        return 0.0
    return (1 + _BETA**2) * precision * recall / (recall + _BETA**2 * precision)


def _common(where: dict[str, int], length: int, others: Sequence[str]) -> int:
    """The length of the longest common subsequence; all rows of its table in one integer.

    Hyyrö 2004: bit i of `row` is 0 where the length grows at position i of the hypothesis.
    """
    everywhere = (1 << length) - 1
    row = everywhere
    for token in others:
        matches = where.get(token)
        if matches:
            hits = row & matches
            row = (row + hits) | (row - hits)
    return length - (row & everywhere).bit_count()
