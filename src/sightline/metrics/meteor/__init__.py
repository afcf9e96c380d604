"""METEOR 1.5 (English, `-norm`) as the COCO caption evaluation runs it, without Java."""

import numpy as np

from sightline.errors import DataError
from sightline.metrics import meteor_metric as scoring
from sightline.metrics.base import Floats
from sightline.metrics.meteor.alignment import align
from sightline.metrics.meteor.index import open_index
from sightline.metrics.meteor.lexicon import Sentences, Words, read_sentences
from sightline.metrics.meteor.matching import TooManyMatchesError, Units, find_matches, prepare
from sightline.metrics.meteor.normalise import java_trim
from sightline.metrics.meteor.ragged import I64

__all__ = ["Meteor"]

_ITEMS = 2048  # looked up together; bounds the memory that a large corpus takes
_CELLS = 1 << 17  # word pairs per batch: enough to keep NumPy busy, few enough for the cache


class Meteor:
    """Scores text that is already PTB-tokenised: lower-cased words separated by spaces."""

    def __init__(self) -> None:
        self._index = open_index()

    def statistics(self, hypotheses: list[str], references: list[list[str]]) -> Floats:
        """(N, S) statistics of N hypotheses, each with the one of its references that scores best;
        `meteor_metric.scores` makes scores of them.
        """
        if len(hypotheses) != len(references):
            raise ValueError(f"{len(hypotheses)} hypotheses but {len(references)} reference lists")
        parts = range(0, max(1, len(hypotheses)), _ITEMS)
        return np.concatenate(
            [self._some(hypotheses[at : at + _ITEMS], references[at : at + _ITEMS]) for at in parts]
        )

    def _some(self, hypotheses: list[str], references: list[list[str]]) -> Floats:
        texts: dict[str, int] = {}
        pairs: dict[tuple[int, int], int] = {}
        item_pairs: list[int] = []
        counts: list[int] = []
        for hypothesis, candidates in zip(hypotheses, references, strict=True):
            number = texts.setdefault(_clean_hypothesis(hypothesis), len(texts))
            others = _clean_references(candidates)
            counts.append(len(others))
            for other in others:
                pair = (number, texts.setdefault(other, len(texts)))
                item_pairs.append(pairs.setdefault(pair, len(pairs)))
        table = self._pair_statistics(list(texts), np.array(list(pairs), np.int64).reshape(-1, 2))
        rows = table[np.array(item_pairs, np.int64)]
        return rows[_first_best(scoring.scores(rows), np.array(counts, np.int64))]

    def _pair_statistics(self, texts: list[str], pairs: I64) -> Floats:
        """(P, S) statistics of pairs (hypothesis, reference) of the numbered texts."""
        sentences, words = read_sentences(self._index, texts)
        units = prepare(self._index, sentences, words)
        table = np.zeros((len(pairs), scoring.SIZE))
        for rows in _batches(sentences.lengths[pairs]):
            try:
                table[rows] = _batch_statistics(units, sentences, words, pairs[rows])
            except TooManyMatchesError:
                hypothesis, reference = (texts[number] for number in pairs[rows[0]])
                raise DataError(
                    f"METEOR cannot align the hypothesis {_quote(hypothesis)} with the reference "
                    f"{_quote(reference)}: too many repeated words; score shorter texts"
                ) from None
        return scoring.with_corpus_chunks(table)


def _batches(lengths: I64) -> list[I64]:
    """Rows of (P, 2) lengths in batches of similar ones; a pair of great length is alone."""
    size = lengths.max(1, initial=0) // 64  # so that 64 bits hold the words of most batches
    order = np.lexsort((lengths[:, 0], lengths[:, 1], size))
    filled = np.cumsum((lengths[order] + 1).prod(1)) // _CELLS
    breaks = np.flatnonzero(np.diff(filled) + np.diff(size[order]))
    return np.split(order, breaks + 1)


def _quote(text: str) -> str:
    return f"“{text[:40]}…” ({len(text.split())} words)"


def _batch_statistics(
    units: tuple[Units, Units], sentences: Sentences, words: Words, pairs: I64
) -> Floats:
    hypothesis, reference = pairs[:, 0], pairs[:, 1]
    lengths = sentences.lengths
    matches = find_matches(units, sentences, words, hypothesis, reference)
    chosen, chunks = align(matches, lengths[hypothesis], lengths[reference])
    before = np.concatenate([[0], np.cumsum(words.function[sentences.words])])
    starts = sentences.starts

    def function_words(sentence: I64, start: I64, length: I64) -> I64:
        at = starts[sentence] + start
        result: I64 = before[at + length] - before[at]
        return result

    table = np.zeros((len(pairs), scoring.SIZE))
    table[:, scoring.CHUNKS] = chunks
    pair, module = matches.pair[chosen], matches.module[chosen]
    for side, sentence, start, length in (
        (0, hypothesis, matches.match_start[chosen], matches.match_length[chosen]),
        (1, reference, matches.start[chosen], matches.length[chosen]),
    ):
        function = function_words(sentence[pair], start, length)
        column = scoring.MATCHES + 4 * module + side
        np.add.at(table, (pair, column), length - function)
        np.add.at(table, (pair, column + 2), function)
        table[:, side] = lengths[sentence]
        table[:, 2 + side] = function_words(sentence, np.zeros_like(sentence), lengths[sentence])
    return table


def _first_best(scores: Floats, counts: I64) -> I64:
    """The row of each item's best score, the first of equals."""
    item = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((-scores, item))
    result: I64 = order[np.cumsum(counts) - counts]
    return result


# pycocoevalcap sends METEOR one line of fields separated by `|||`, and so these marks cannot be
# part of a text: it deletes them from hypotheses, and in references they separate.


def _clean_hypothesis(text: str) -> str:
    return java_trim(text.replace("|||", "").replace("  ", " "))


def _clean_references(texts: list[str]) -> list[str]:
    return [java_trim(piece) for text in texts or [""] for piece in text.split("|||")]
