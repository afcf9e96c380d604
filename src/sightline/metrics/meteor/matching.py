"""The four ways in which METEOR lets words match: exact, stem, synonym, paraphrase.

A match pairs a span of the reference with a span of the hypothesis. Which matches exist follows
from relations between words and between phrases, worked out once per call; where they occur in a
pair of sentences is then a join. The order of the matches that start at one reference word is
part of the rules: the alignment search breaks ties by it.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.metrics.meteor.index import U64, Index, position_factors
from sightline.metrics.meteor.lexicon import Sentences, Words, locate
from sightline.metrics.meteor.ragged import I64, pairs_in_groups, spread

EXACT, STEM, SYNONYM, PARAPHRASE = range(4)
MOST_MATCHES = 4_000_000  # of one pair; the search takes some 10 s for half of that
# In order after exact, stem and synonym: reference phrases, then the hypothesis's.
_FORWARD, _BACKWARD = 3, 4


class TooManyMatchesError(Exception):
    """Two long sentences repeat the same words so often that no search over them would end."""


@dataclass(frozen=True)
class Occurrences:
    """The places of units (words or phrases), sorted by sentence."""

    unit: I64
    position: I64
    length: I64
    starts: I64  # (N + 1,) rows of each sentence

    def only(self, keep: NDArray[np.bool_]) -> "Occurrences":
        before = np.concatenate([[0], np.cumsum(keep)])
        return Occurrences(
            self.unit[keep], self.position[keep], self.length[keep], before[self.starts]
        )


class Relation(NamedTuple):
    """Which hypothesis units a reference unit matches, sorted by reference unit."""

    reference: I64
    hypothesis: I64
    kind: I64  # exact, stem, synonym, then the two directions of paraphrase
    rank: I64  # a paraphrase's place in the table

    @classmethod
    def of(cls, *columns: I64) -> "Relation":
        order = np.argsort(columns[0], kind="stable")
        return cls(*(column[order] for column in columns))


@dataclass(frozen=True)
class Matches:
    """All possible matches of some pairs, sorted by pair, start, and METEOR's order."""

    pair: I64
    start: I64  # in the reference
    length: I64
    match_start: I64  # in the hypothesis
    match_length: I64
    module: I64


def word_relation(words: Words) -> Relation:
    everyone = np.arange(len(words.keys))
    exact = pairs_in_groups(words.keys, everyone)
    stems = pairs_in_groups(words.stems, everyone)
    synonyms = _distinct(*pairs_in_groups(*words.synsets), len(everyone))
    rows = [exact]
    for a, b in (stems, synonyms):
        other = words.keys[a] != words.keys[b]
        rows.append((a[other], b[other]))
    kind = np.repeat([EXACT, STEM, SYNONYM], [len(a) for a, _ in rows])
    reference = np.concatenate([a for a, _ in rows])
    hypothesis = np.concatenate([b for _, b in rows])
    return Relation.of(reference, hypothesis, kind, np.zeros_like(kind))


def _distinct(a: I64, b: I64, count: int) -> tuple[I64, I64]:
    codes = np.unique(a * count + b)
    return codes // max(1, count), codes % max(1, count)


def word_occurrences(sentences: Sentences) -> Occurrences:
    row, flat = spread(sentences.starts[:-1], sentences.lengths)
    return Occurrences(
        unit=sentences.words,
        position=flat - sentences.starts[row],
        length=np.ones_like(flat),
        starts=sentences.starts,
    )


def phrase_occurrences(sentences: Sentences, words: Words, longest: int) -> tuple[Occurrences, U64]:
    """Every run of up to `longest` words, numbered by its hash; and the hashes, sorted."""
    row, flat = spread(sentences.starts[:-1], sentences.lengths)
    left = sentences.starts[1:][row] - flat  # words from here to the sentence's end
    terms = words.hashes[sentences.words]
    factors = position_factors(longest)
    total = np.zeros(len(flat), np.uint64)
    hashes, starts, lengths = [], [], []
    for length in range(1, longest + 1):
        at = np.flatnonzero(left >= length)
        total[at] += terms[at + length - 1] * factors[length - 1]
        hashes.append(total[at])
        starts.append(at)
        lengths.append(np.full(len(at), length))
    start = np.concatenate(starts)
    order = np.argsort(start, kind="stable")
    distinct, unit = np.unique(np.concatenate(hashes)[order], return_inverse=True)
    start = start[order]
    sentence = row[start]
    return (
        Occurrences(
            unit=unit,
            position=start - sentences.starts[sentence],
            length=np.concatenate(lengths)[order],
            starts=np.searchsorted(sentence, np.arange(len(sentences.starts))),
        ),
        distinct,
    )


def paraphrase_relation(index: Index, phrases: U64) -> Relation:
    """Which of these phrases are paraphrases of which."""
    rows, known = locate(index.phrases, phrases)
    keys = np.flatnonzero(known)
    starts = index.paraphrase_starts[rows[keys]]
    owner, place = spread(starts, index.paraphrase_starts[rows[keys] + 1] - starts)
    target, present = locate(phrases, index.paraphrases[place])
    key, target = keys[owner[present]], target[present]
    rank = (place - starts[owner])[present]
    return Relation.of(
        np.concatenate([key, target]),
        np.concatenate([target, key]),
        np.repeat([_FORWARD, _BACKWARD], len(key)),
        np.concatenate([rank, rank]),
    )


@dataclass(frozen=True)
class Units:
    """One relation with the occurrences of its units: all that a join needs."""

    occurrences: Occurrences
    relation: Relation


def prepare(index: Index, sentences: Sentences, words: Words) -> tuple[Units, Units]:
    """The words and the phrases of a call's sentences, with what matches what."""
    phrases, hashes = phrase_occurrences(sentences, words, index.longest_phrase)
    relation = paraphrase_relation(index, hashes)
    related = np.zeros(len(hashes), bool)
    related[relation.reference] = True  # both directions are in it, so this marks both sides
    return (
        Units(word_occurrences(sentences), word_relation(words)),
        Units(phrases.only(related[phrases.unit]), relation),
    )


def find_matches(
    units: tuple[Units, Units], sentences: Sentences, words: Words, hypothesis: I64, reference: I64
) -> Matches:
    """All matches of the given pairs of sentences."""
    joined = [_join(each, hypothesis, reference) for each in units]
    columns = [np.concatenate(parts) for parts in zip(*joined, strict=True)]
    pair, kind = columns[0], columns[5]
    same = _same_words(sentences, words, hypothesis, reference)
    keep = (kind == EXACT) | ~same[pair]  # equal sentences are compared exactly only
    order = _meteor_order(*columns)
    order = order[keep[order]]
    module = np.minimum(kind, PARAPHRASE)
    return Matches(*(column[order] for column in (*columns[:5], module)))


def _join(units: Units, hypothesis: I64, reference: I64) -> tuple[I64, ...]:
    """Reference occurrences × related units × hypothesis occurrences, for every pair."""
    occurrences, relation = units.occurrences, units.relation
    count = int(relation.reference.max(initial=-1)) + 1
    first = np.searchsorted(relation.reference, np.arange(count + 1))
    starts = occurrences.starts
    pair, there = spread(starts[reference], starts[reference + 1] - starts[reference])
    unit = occurrences.unit[there]
    row, related = spread(first[unit], first[unit + 1] - first[unit])
    pair, there = pair[row], there[row]

    sentence, slot = np.unique(hypothesis, return_inverse=True)
    at, here = spread(starts[sentence], starts[sentence + 1] - starts[sentence])
    codes = at * count + occurrences.unit[here]
    order = np.argsort(codes, kind="stable")
    distinct, begin, many = np.unique(codes[order], return_index=True, return_counts=True)
    wanted = slot[pair] * count + relation.hypothesis[related]
    place = np.searchsorted(distinct, wanted)
    place[place == len(distinct)] = 0
    hit = np.flatnonzero(distinct[place] == wanted) if len(distinct) else place[:0]
    place = place[hit]
    if many[place].sum() > MOST_MATCHES:
        raise TooManyMatchesError
    row, chosen = spread(begin[place], many[place])
    source, match = hit[row], here[order[chosen]]
    return (
        pair[source],
        occurrences.position[there[source]],
        occurrences.length[there[source]],
        occurrences.position[match],
        occurrences.length[match],
        relation.kind[related[source]],
        relation.rank[related[source]],
    )


def _same_words(
    sentences: Sentences, words: Words, hypothesis: I64, reference: I64
) -> NDArray[np.bool_]:
    lengths = sentences.lengths
    same = lengths[hypothesis] == lengths[reference]
    candidates = np.flatnonzero(same)
    row, a = spread(sentences.starts[hypothesis[candidates]], lengths[hypothesis[candidates]])
    _, b = spread(sentences.starts[reference[candidates]], lengths[reference[candidates]])
    keys = words.keys[sentences.words]
    same[candidates[row[keys[a] != keys[b]]]] = False
    result: NDArray[np.bool_] = same
    return result


def _meteor_order(
    pair: I64, start: I64, length: I64, match_start: I64, match_length: I64, kind: I64, rank: I64
) -> I64:
    """By pair and start; then by kind; then as METEOR's loops come across them."""
    places = int(match_start.max(initial=0)) + 1
    lengths = int(max(length.max(initial=0), match_length.max(initial=0))) + 1
    ranks = int(rank.max(initial=0)) + 1
    forward = (length * ranks + rank) * places + match_start
    backward = (match_start * lengths + match_length) * ranks + rank
    within = np.where(kind == _FORWARD, forward, np.where(kind == _BACKWARD, backward, match_start))
    starts = int(start.max(initial=0)) + 1
    outer = (pair * starts + start) * 5 + kind
    return np.argsort(outer * (places * lengths * ranks) + within, kind="stable")
