"""What every metric is: statistics per item, and scores that follow from their sum.

A metric reads a corpus once and keeps, for each item, a row of sufficient statistics. One function
turns a row, or the sum of any rows, into scores. The score of an item, of the corpus, of a
bootstrap sample and of the difference between two systems are then the same computation.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sightline.errors import DataError
from sightline.metrics import ptb
from sightline.metrics.ngrams import Counts, count

Floats = NDArray[np.float64]

# Sentences whose n-grams are counted together, which takes about 2.5 KB each: a block holds the
# test sets that are in use (5,000 items with 5 references) and bounds the memory of larger ones.
BLOCK = 1 << 15


@dataclass(frozen=True)
class ScoreInfo:
    """How a score is shown, and which way is better."""

    label: str
    scale: float = 1.0  # values are shown times this: 100 where papers print ×100
    higher_is_better: bool = True
    # What an export may lose, in shown units, by the type of its weights; None: not checked.
    tolerance: Mapping[str, float] | None = None
    decimals: int | None = 2  # of the shown value; None: four significant digits

    def show(self, value: float, *, sign: bool = False, decimals: int | None = None) -> str:
        """The value as people read it; with `sign`, as a difference."""
        if not math.isfinite(value):
            return "–"
        places = self.decimals if decimals is None else decimals
        digits = ".4g" if places is None else f".{places}f"
        return f"{value * self.scale:{'+' if sign else ''}{digits}}"


@dataclass(frozen=True)
class Corpus:
    """Hypotheses and references in the same order, as written; tokenised when first needed."""

    ids: tuple[Any, ...]
    hypotheses: tuple[str, ...]
    references: tuple[tuple[str, ...], ...]

    @classmethod
    def of(cls, hypotheses: Mapping[Any, Any], references: Mapping[Any, Any]) -> Corpus:
        """Check two dictionaries, id to text and id to texts, and line them up."""
        for name, texts in (("hypotheses", hypotheses), ("references", references)):
            if not isinstance(texts, Mapping):
                kind = type(texts).__name__
                raise DataError(f"{name} must be a dictionary by id, not a {kind}")
        if not hypotheses:
            raise DataError("there is no hypothesis to score")
        for item in hypotheses:
            if item not in references:
                raise DataError(f"item {item!r} has a hypothesis but no references")
        for item in references:
            if item not in hypotheses:
                raise DataError(f"item {item!r} has references but no hypothesis")
        return cls(
            ids=tuple(hypotheses),
            hypotheses=tuple(_one_text(item, text) for item, text in hypotheses.items()),
            references=tuple(_texts(item, references[item]) for item in hypotheses),
        )

    @cached_property
    def tokenized_hypotheses(self) -> list[str]:
        return ptb.tokenize_lines(self.hypotheses)

    @cached_property
    def tokenized_references(self) -> list[list[str]]:
        lines = iter(ptb.tokenize_lines(text for texts in self.references for text in texts))
        return [[next(lines) for _ in texts] for texts in self.references]

    @cached_property
    def bounds(self) -> list[int]:
        """Where blocks of about BLOCK sentences begin and end among the items."""
        sentences = np.cumsum([1 + len(texts) for texts in self.references])
        cuts = np.searchsorted(sentences, np.arange(BLOCK, sentences[-1], BLOCK))
        return sorted({0, *cuts.tolist(), len(self.ids)})

    def ngrams(self) -> Iterator[Counts]:
        """The n-grams of the tokenised sentences, block by block (BLEU and CIDEr)."""
        if len(self.bounds) == 2:
            yield self._ngrams
            return
        for start, end in pairwise(self.bounds):
            hypotheses = self.tokenized_hypotheses[start:end]
            references = self.tokenized_references[start:end]
            yield count(hypotheses, references, self.vocabulary)

    @cached_property
    def _ngrams(self) -> Counts:
        return count(self.tokenized_hypotheses, self.tokenized_references, {})

    @cached_property
    def vocabulary(self) -> dict[str, int]:
        """The words in the order of a single block, so that sums over n-grams are equal too."""
        texts = chain(self.tokenized_hypotheses, chain.from_iterable(self.tokenized_references))
        words = dict.fromkeys(word for text in texts for word in text.split())
        return {word: number for number, word in enumerate(words)}


def _one_text(item: Any, value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 1:
        value = value[0]
    if not isinstance(value, str):
        raise DataError(f"item {item!r}: the hypothesis must be one text, not {_describe(value)}")
    return value


def _texts(item: Any, value: Any) -> tuple[str, ...]:
    texts = (value,) if isinstance(value, str) else value
    if not isinstance(texts, Sequence) or any(not isinstance(text, str) for text in texts):
        raise DataError(f"item {item!r}: the references must be texts, not {_describe(value)}")
    if not texts:
        raise DataError(f"item {item!r} has no references")
    return tuple(texts)


def _describe(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return f"a list of {len(value)} ({', '.join(sorted({type(v).__name__ for v in value}))})"
    return type(value).__name__


class Metric(ABC):
    """One metric; `info` describes its scores by key, `signature` says how they were made."""

    info: Mapping[str, ScoreInfo]

    @property
    def keys(self) -> tuple[str, ...]:
        return tuple(self.info)

    @property
    @abstractmethod
    def signature(self) -> str: ...

    @abstractmethod
    def statistics(self, corpus: Any) -> Floats:
        """The sufficient statistics of each item, (N, S)."""

    @abstractmethod
    def scores(self, sums: Floats) -> Floats:
        """Scores (…, K) of sets of items, from the sums of their statistics (…, S)."""

    def item_scores(self, statistics: Floats) -> Floats:
        """The score of each item, (N, K) from (N, S)."""
        return self.scores(statistics)

    def corpus_scores(self, statistics: Floats) -> Floats:
        """The scores of all items together, (K,) from (N, S)."""
        return self.scores(statistics.sum(axis=0))


class MeanMetric(Metric):
    """A metric whose corpus score is the mean of its items' scores; statistics: score and 1."""

    def scores(self, sums: Floats) -> Floats:
        return sums[..., :1] / sums[..., 1:]


def mean_statistics(scores: Sequence[float] | Floats) -> Floats:
    """The statistics of a MeanMetric, (N, 2)."""
    return np.stack([np.asarray(scores, dtype=np.float64), np.ones(len(scores))], axis=1)
