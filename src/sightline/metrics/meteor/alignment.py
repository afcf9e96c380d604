"""METEOR's beam search for the best alignment, run for many pairs of sentences at once.

The search walks over the reference's words. At each it either takes one of the matches that start
there, if their hypothesis words are free, or skips the word. Alignments are ranked by covered
words, then by fewer chunks, then by a distance; equals keep their order. The best 40 survive
each step.

Three oddities of METEOR 1.5 are kept, since scores depend on them:
- The words of other than exact matches count half, rounded down for each match. So a single
  stem or synonym counts nothing, and where it is not certain, skipping it may rank higher.
- The distance of a match is charged not to the alignment that takes it but to those built after
  it from the same parent: its later siblings and the one that skips the word.
- Nothing is merged: a match found in several ways fills several places in the beam.

A rank is two integers, the smaller the better, to which every choice adds something.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from sightline.metrics.meteor.matching import EXACT, Matches
from sightline.metrics.meteor.ragged import I64, spread

BEAM = 40
NONE = -1
_ROOM = 1 << 62


class _Beam(NamedTuple):
    """Partial alignments of all pairs, sorted by pair and rank; S of them."""

    pair: I64  # (S,)
    high: I64  # (S,) rank: minus the covered words
    low: I64  # (S,) rank: the chunks, then the distance
    last: I64  # (S,) hypothesis word after the last match, NONE after a skipped word
    next: I64  # (S,) first reference word that is not yet decided
    used: NDArray[np.uint64]  # (S, B) hypothesis words taken, 64 to a number

    def select(self, rows: I64) -> "_Beam":
        return _Beam(*(column[rows] for column in self))  # type: ignore[arg-type]


class _Search:
    """What stays the same during the search of one batch of pairs; M matches, P pairs.

    Skipping a word is row M of the arrays of matches: a match of no hypothesis word.
    """

    def __init__(self, matches: Matches, hypothesis_lengths: I64, reference_lengths: I64) -> None:
        self.reference_lengths = reference_lengths
        self.steps = int(reference_lengths.max(initial=0))
        pairs = len(reference_lengths)
        places = np.arange(pairs * (self.steps + 1) + 1)
        # rows of the matches that start at a pair's reference word: first[code] … first[code + 1]
        self.first = np.searchsorted(matches.pair * (self.steps + 1) + matches.start, places)
        exact = matches.module == EXACT
        both = matches.length + matches.match_length
        halves = matches.length // 2 + matches.match_length // 2
        covered = np.where(exact, both, halves)
        distance = np.abs(matches.start - matches.match_start)
        far = int(np.bincount(matches.pair, distance, 1).max())
        self.high_span = int(np.bincount(matches.pair, covered, 1).max()) + 1
        self.chunk = far + 1
        self.low_span = self.chunk * (self.steps + 2)
        self.high = np.append(-covered, 0)
        self.distance = np.append(distance, 0)
        self.length = np.append(matches.length, 1)
        self.start = np.append(matches.match_start, NONE - 1)
        self.end = np.append(matches.match_start + matches.match_length, NONE)
        self.sure = np.append(_unambiguous(matches, hypothesis_lengths, reference_lengths), False)
        self.longest = int(matches.match_length.max(initial=1))

    def opening(self, words: int) -> _Beam:
        pairs = len(self.reference_lengths)
        nothing = np.zeros(pairs, np.int64)
        used = np.zeros((pairs, max(1, -(-words // 64))), np.uint64)
        return _Beam(np.arange(pairs), nothing, nothing, nothing + NONE, nothing, used)

    def advance(self, beam: _Beam, step: int) -> tuple[_Beam, I64, I64]:
        """Decide on reference word `step`: the new beam, each row's parent, the match it took."""
        skip = len(self.high) - 1
        code = beam.pair * (self.steps + 1) + step
        begin = self.first[code]
        count = self.first[code + 1] - begin
        inside = beam.next > step  # the word belongs to a phrase that is already matched
        sure = (count == 1) & self.sure[begin]
        count[inside | sure] = 0
        own = np.where(sure, begin, skip)

        parent = np.repeat(np.arange(len(count)), count + 1)
        group = np.cumsum(count + 1) - count - 1
        place = np.arange(len(parent)) - group[parent]
        child = place < count[parent]
        match = np.where(child, begin[parent] + place, own[parent])
        free = self._free(beam, parent, match, child)
        later = np.where(child & free, self.distance[match], 0)
        charged = np.cumsum(later) - later
        charged -= charged[group][parent]
        if not free.all():
            rows = np.flatnonzero(free)
            parent, match, charged = parent[rows], match[rows], charged[rows]

        last = beam.last[parent]
        low = beam.low[parent] + charged
        low += self.chunk * ((last != NONE) & (self.start[match] != last))
        low += np.where(sure[parent], self.distance[match], 0)
        high = beam.high[parent] + self.high[match]
        following = self.length[match] + step
        last = self.end[match]
        if inside.any():
            held = np.flatnonzero(inside[parent])
            held_parent = parent[held]
            low[held] = beam.low[held_parent]
            last[held] = beam.last[held_parent]
            following[held] = beam.next[held_parent]
        pair = beam.pair[parent]
        order = self._best(pair, high, low)
        parent, match = parent[order], match[order]
        used = beam.used[parent]
        self._take(used, match)
        best = _Beam(pair[order], high[order], low[order], last[order], following[order], used)
        return best, parent, match

    def _free(
        self, beam: _Beam, parent: I64, match: I64, child: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Whether all hypothesis words of the match are free; true where nothing is required."""
        free = np.ones(len(match), bool)
        rows = np.flatnonzero(child)
        word = self.start[match[rows]]
        end = self.end[match[rows]]
        for _ in range(self.longest):
            bits = beam.used[parent[rows], word >> 6] >> (word & 63).astype(np.uint64)
            free[rows] &= (bits & np.uint64(1)) == 0
            word = word + 1
            more = np.flatnonzero(word < end)
            if not len(more):
                break
            rows, word, end = rows[more], word[more], end[more]
        return free

    def _take(self, used: NDArray[np.uint64], match: I64) -> None:
        rows = np.flatnonzero(self.end[match] != NONE)
        word, end = self.start[match[rows]], self.end[match[rows]]
        while len(rows):
            used[rows, word >> 6] |= np.uint64(1) << (word & 63).astype(np.uint64)
            word = word + 1
            more = np.flatnonzero(word < end)
            rows, word, end = rows[more], word[more], end[more]

    def _best(self, pair: I64, high: I64, low: I64) -> I64:
        """The rows sorted by pair and rank, equals in their order, at most 40 to a pair."""
        count = len(pair)
        if len(self.reference_lengths) * self.high_span * self.low_span * count >= _ROOM:
            order = np.lexsort((low, high, pair))
        else:
            rank = (pair * self.high_span + high) * self.low_span + low
            # with the row's number in it no two keys are equal, and the fastest sort will do
            order = np.sort(rank * count + np.arange(count)) % count
        new = np.flatnonzero(np.diff(pair[order], prepend=-1))
        sizes = np.diff(new, append=count)
        if sizes.max(initial=0) > BEAM:
            order = order[np.arange(count) - np.repeat(new, sizes) < BEAM]
        return order

    def finish(self, beam: _Beam, step: int) -> tuple[I64, I64, I64]:
        """The pairs whose reference ends here: pair, row of its best alignment, chunks."""
        rows = np.flatnonzero(self.reference_lengths[beam.pair] == step)
        pair = beam.pair[rows]
        low = beam.low[rows] + self.chunk * (beam.last[rows] != NONE)
        order = np.lexsort((low, beam.high[rows], pair))
        first = order[np.flatnonzero(np.diff(pair[order], prepend=-1))]
        return pair[first], rows[first], low[first] // self.chunk


def align(matches: Matches, hypothesis_lengths: I64, reference_lengths: I64) -> tuple[I64, I64]:
    """The matches METEOR chooses, as rows of `matches`; and each pair's number of chunks, (P,)."""
    search = _Search(matches, hypothesis_lengths, reference_lengths)
    beam = search.opening(int(hypothesis_lengths.max(initial=0)))
    chunks = np.zeros(len(reference_lengths), np.int64)
    winners: list[I64] = []  # per step, the rows of the beam that won
    trail: list[tuple[I64, I64]] = []  # per step, each new row's parent and match
    for step in range(search.steps + 1):
        pair, row, count = search.finish(beam, step)
        chunks[pair] = count
        winners.append(row)
        if len(pair):
            alive = np.flatnonzero(reference_lengths[beam.pair] > step)
            kept = beam.select(alive)
        else:
            alive, kept = np.arange(len(beam.pair)), beam
        if step < search.steps:
            beam, parent, match = search.advance(kept, step)
            trail.append((alive[parent], match))
    return _trace(winners, trail, len(matches.pair)), chunks


def _trace(winners: list[I64], trail: list[tuple[I64, I64]], skip: int) -> I64:
    """Follow the winners back through the beams and collect the matches they took."""
    rows = winners[-1]
    parts = [rows[:0]]
    for step in range(len(trail) - 1, -1, -1):
        parent, match = trail[step]
        parts.append(match[rows])
        rows = np.concatenate([parent[rows], winners[step]])
    chosen = np.concatenate(parts)
    return np.sort(chosen[chosen != skip])


def _unambiguous(
    matches: Matches, hypothesis_lengths: I64, reference_lengths: I64
) -> NDArray[np.bool_]:
    """Matches whose words, on both sides, no other match covers: they are always taken."""
    covers = []
    for lengths, start, length in (
        (reference_lengths, matches.start, matches.length),
        (hypothesis_lengths, matches.match_start, matches.match_length),
    ):
        offsets = np.cumsum(lengths) - lengths
        row, word = spread(offsets[matches.pair] + start, length)
        cover = np.bincount(word, minlength=int(lengths.sum()))
        covers.append(np.bincount(row, cover[word] != 1, len(length)))
    result: NDArray[np.bool_] = (covers[0] + covers[1]) == 0
    return result
