"""Accuracy: the share of items whose text is one of its references."""

from __future__ import annotations

from collections.abc import Mapping

from sightline.metrics.base import Corpus, Floats, MeanMetric, ScoreInfo, mean_statistics


class Accuracy(MeanMetric):
    """Texts are compared as written, but for the white space around them."""

    info: Mapping[str, ScoreInfo] = {
        "accuracy": ScoreInfo("Accuracy", 100, tolerance={"int16": 0.5, "int8": 1.0})
    }

    @property
    def signature(self) -> str:
        return "Accuracy|case:mixed|references:any"

    def statistics(self, corpus: Corpus) -> Floats:
        pairs = zip(corpus.hypotheses, corpus.references, strict=True)
        return mean_statistics(
            [float(text.strip() in {each.strip() for each in right}) for text, right in pairs]
        )
