"""Corpus BLEU and chrF for translations, through sacrebleu, on its scale of 0 to 100."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from sightline.metrics.base import Corpus, Floats, Metric, ScoreInfo


class _Sacre(Metric):
    """A sacrebleu metric. Its sufficient statistics are sacrebleu's own, one row per segment."""

    @property
    def signature(self) -> str:
        return str(self._metric.get_signature())

    @property
    @abstractmethod
    def _metric(self) -> Any:
        """The sacrebleu metric, imported and made when first used."""

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


class SacreBleu(_Sacre):
    """sacrebleu's BLEU: 13a tokenisation, mixed case, exponential smoothing."""

    info: Mapping[str, ScoreInfo] = {
        "sacrebleu": ScoreInfo("BLEU (sacreBLEU)", tolerance={"int16": 0.05, "int8": 0.2})
    }

    @cached_property
    def _metric(self) -> Any:
        from sacrebleu.metrics.bleu import BLEU

        return BLEU()


class Chrf(_Sacre):
    """sacrebleu's chrF2: character 1- to 6-grams, recall weighted twice."""

    info: Mapping[str, ScoreInfo] = {"chrf": ScoreInfo("chrF2")}

    @cached_property
    def _metric(self) -> Any:
        from sacrebleu.metrics.chrf import CHRF

        return CHRF()
