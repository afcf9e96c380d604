"""Corpus BLEU and chrF for translations, through sacrebleu, on its scale of 0 to 100."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Literal

import numpy as np

from sightline.metrics.base import Corpus, Floats, Metric, ScoreInfo

_INFO = {
    "sacrebleu": ScoreInfo("BLEU (sacreBLEU)", tolerance={"int16": 0.05, "int8": 0.2}),
    "chrf": ScoreInfo("chrF2"),
}
_ITEMS = 4096  # given to sacrebleu together; chrF takes 25 KB for each


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
        blocks = [
            self._block(corpus.hypotheses[at : at + _ITEMS], corpus.references[at : at + _ITEMS])
            for at in range(0, len(corpus.ids), _ITEMS)
        ]
        counts = {len(texts) for texts in corpus.references}
        self._metric.num_refs = counts.pop() if len(counts) == 1 else -1  # not the last block's
        return np.concatenate(blocks)

    def _block(self, hypotheses: Sequence[str], references: Sequence[Sequence[str]]) -> Floats:
        most = max(len(texts) for texts in references)
        # sacrebleu wants streams: the first reference of every segment, the second, …
        streams = [
            [texts[n] if n < len(texts) else None for texts in references] for n in range(most)
        ]
        rows = self._metric._extract_corpus_statistics(list(hypotheses), streams)
        return np.array(rows, dtype=np.float64)

    def scores(self, sums: Floats) -> Floats:
        flat = sums.reshape(-1, sums.shape[-1])
        values = [self._metric._compute_score_from_stats(row.tolist()).score for row in flat]
        return np.array(values).reshape(*sums.shape[:-1], 1)
