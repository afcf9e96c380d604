"""Corpus BLEU and chrF for translations, through sacrebleu, on its scale of 0 to 100."""

from __future__ import annotations

from functools import cached_property
from typing import Any, Literal

import numpy as np

from sightline.metrics.base import Corpus, Floats, Metric, ScoreInfo

_INFO = {
    "sacrebleu": ScoreInfo("BLEU (sacreBLEU)", tolerance={"int16": 0.05, "int8": 0.2}),
    "chrf": ScoreInfo("chrF2"),
}


class SacreBleu(Metric):
    """sacrebleu's BLEU (13a tokenisation, mixed case, exponential smoothing) or its chrF2
    (character 1- to 6-grams, recall weighted twice); the statistics are its own, by segment.
    """

    def __init__(self, key: Literal["sacrebleu", "chrf"] = "sacrebleu") -> None:
        self.info = {key: _INFO[key]}

    @property
    def signature(self) -> str:
        return str(self._metric.get_signature())

    @cached_property
    def _metric(self) -> Any:
        from sacrebleu.metrics.bleu import BLEU
        from sacrebleu.metrics.chrf import CHRF

        return CHRF() if "chrf" in self.info else BLEU()

    def statistics(self, corpus: Corpus) -> Floats:
        most = max(len(texts) for texts in corpus.references)
        # sacrebleu wants streams: the first reference of every segment, the second, …
        streams = [
            [texts[n] if n < len(texts) else None for texts in corpus.references]
            for n in range(most)
        ]
        rows = self._metric._extract_corpus_statistics(list(corpus.hypotheses), streams)
        return np.array(rows, dtype=np.float64)

    def scores(self, sums: Floats) -> Floats:
        flat = sums.reshape(-1, sums.shape[-1])
        values = [self._metric._compute_score_from_stats(row.tolist()).score for row in flat]
        return np.array(values).reshape(*sums.shape[:-1], 1)
