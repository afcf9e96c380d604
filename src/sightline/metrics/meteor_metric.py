"""METEOR as a Metric like the others; the computation itself is in `meteor/`."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING

from sightline.metrics.base import Corpus, Floats, Metric, ScoreInfo

if TYPE_CHECKING:
    from sightline.metrics.meteor import Meteor


class MeteorMetric(Metric):
    """METEOR 1.5 for English; its tables come from the installed package pycocoevalcap."""

    info: Mapping[str, ScoreInfo] = {"meteor": ScoreInfo("METEOR", 100)}

    @property
    def signature(self) -> str:
        return (
            "METEOR|version:1.5|lang:en|norm:yes|modules:exact,stem,synonym,paraphrase|tok:ptb"
            "|case:lc|references:max|like:pycocoevalcap"
        )

    @cached_property
    def _meteor(self) -> Meteor:
        from sightline.metrics.meteor import Meteor

        return Meteor()

    def statistics(self, corpus: Corpus) -> Floats:
        return self._meteor.statistics(corpus.tokenized_hypotheses, corpus.tokenized_references)

    def scores(self, sums: Floats) -> Floats:
        from sightline.metrics.meteor import scoring

        return scoring.scores(sums, scoring.CORPUS_CHUNKS)[..., None]

    def item_scores(self, statistics: Floats) -> Floats:
        from sightline.metrics.meteor import scoring

        return scoring.scores(statistics)[..., None]
