"""Words and sentences as numbers: what METEOR knows of each word, looked up once per word."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sightline.metrics.meteor.index import U64, Index, word_hash
from sightline.metrics.meteor.normalise import java_hash, words_of
from sightline.metrics.meteor.ragged import I64, spread
from sightline.metrics.meteor.stemming import stem
from sightline.metrics.meteor.synonyms import base_form


@dataclass(frozen=True)
class Words:
    """The distinct words of one call; W of them."""

    keys: I64  # (W,) Java hash: METEOR takes words of equal hash for equal
    stems: I64  # (W,) Java hash of the stem
    hashes: U64  # (W,)
    function: NDArray[np.bool_]  # (W,)
    synsets: tuple[I64, I64]  # (synonym set, word), one row per membership


@dataclass(frozen=True)
class Sentences:
    """The distinct sentences of one call, end to end; N of them, T words in all."""

    words: I64  # (T,) numbers into Words
    starts: I64  # (N + 1,)

    @property
    def lengths(self) -> I64:
        return np.diff(self.starts)


def read_sentences(index: Index, texts: list[str]) -> tuple[Sentences, Words]:
    """The texts as numbers of their distinct words, and what the index knows of these."""
    numbers: dict[str, int] = {}
    flat: list[int] = []
    starts = [0]
    for text in texts:
        for word in words_of(text, index.abbreviations):
            flat.append(numbers.setdefault(word, len(numbers)))
        starts.append(len(flat))
    sentences = Sentences(np.array(flat, np.int64), np.array(starts, np.int64))
    return sentences, _words(index, list(numbers))


def _words(index: Index, words: list[str]) -> Words:
    hashes = _hashes(words)
    rows, known = locate(index.words, hashes)
    stems = np.zeros(len(words), np.int64)
    stems[known] = index.stems[rows[known]]
    known_words = np.flatnonzero(known)
    starts = index.synset_starts[rows[known]]
    member, place = spread(starts, index.synset_starts[rows[known] + 1] - starts)
    sets = [index.synsets[place].astype(np.int64)]
    members = [known_words[member]]
    for at in np.flatnonzero(~known):  # no table lists the word; its base form may be listed
        stems[at] = java_hash(stem(words[at]))
        base = base_form(words[at], lambda form: len(_own_synsets(index, form)) > 0)
        own = _own_synsets(index, base) if base is not None else sets[0][:0]
        sets.append(own)
        members.append(np.full(len(own), at))
    return Words(
        keys=np.array([java_hash(word) for word in words], np.int64),
        stems=stems,
        hashes=hashes,
        function=np.array([word in index.function_words for word in words], bool),
        synsets=(np.concatenate(sets), np.concatenate(members)),
    )


def _own_synsets(index: Index, word: str) -> I64:
    rows, known = locate(index.words, _hashes([word]))
    if not known[0]:
        return np.zeros(0, np.int64)
    start, end = index.own_starts[rows[0] : rows[0] + 2]
    return index.own_synsets[start:end].astype(np.int64)


def _hashes(words: list[str]) -> U64:
    codes = (word_hash(word.encode("utf-8", "surrogatepass")) for word in words)
    return np.fromiter(codes, np.uint64, len(words))


def locate(table: U64, values: U64) -> tuple[I64, NDArray[np.bool_]]:
    """The place of each value in the sorted table, and whether it is there."""
    rows = np.searchsorted(table, values)
    rows[rows == len(table)] = 0
    present = table[rows] == values if len(table) else np.zeros(len(values), bool)
    return rows, present
