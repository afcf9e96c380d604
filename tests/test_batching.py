"""Batches: everything once an epoch, of one length or within a budget, the same from one seed."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.data.batching import (
    Batches,
    same_length,
    similar_length,
    stream_starts,
    token_budget,
)

Draw = Callable[[list[int], int, int, int], Batches]
EITHER = pytest.mark.parametrize("draw", [same_length, similar_length, token_budget])
LENGTHS = st.lists(st.integers(1, 30), max_size=200)


def lists(batches: Batches) -> list[list[int]]:
    return [batch.tolist() for batch in batches]


@EITHER
@given(LENGTHS, st.integers(1, 100), st.integers(0, 9), st.integers(0, 9))
@settings(max_examples=60, deadline=None)
def test_every_example_is_drawn_exactly_once_an_epoch(
    draw: Draw, lengths: list[int], size: int, seed: int, epoch: int
) -> None:
    drawn = lists(draw(lengths, size, seed, epoch))
    assert sorted(i for batch in drawn for i in batch) == list(range(len(lengths)))
    assert all(drawn), "no batch is empty"


@given(LENGTHS, st.integers(1, 20))
@settings(max_examples=60, deadline=None)
def test_a_batch_has_one_length_and_each_length_its_share(lengths: list[int], size: int) -> None:
    batches = same_length(lengths, size, 1, 0)
    assert all(len({lengths[i] for i in batch}) == 1 for batch in batches)
    per_length = Counter(lengths[batch[0]] for batch in batches)
    wanted = {length: math.ceil(n / size) for length, n in Counter(lengths).items()}
    assert per_length == wanted  # full batches but for one: as few as there can be
    assert all(len(batch) <= size for batch in batches)


def test_lengths_come_in_proportion_to_their_examples_all_along_the_epoch() -> None:
    lengths = [3] * 6000 + [7] * 3000 + [9] * 1000
    batches = same_length(lengths, 10, seed=5, epoch=0)
    for half in (batches[:500], batches[500:]):
        share = Counter(lengths[batch[0]] for batch in half)
        # 500 draws of 1000: the standard deviation of each count is below 8
        assert abs(share[3] - 300) < 40
        assert abs(share[7] - 150) < 40
        assert abs(share[9] - 50) < 40


@given(LENGTHS, st.integers(1, 200), st.integers(0, 9))
@settings(max_examples=100, deadline=None)
def test_padded_batches_stay_within_the_budget(lengths: list[int], tokens: int, epoch: int) -> None:
    for batch in token_budget(lengths, tokens, 1, epoch):
        padded = len(batch) * max(lengths[i] for i in batch)
        assert padded <= tokens or len(batch) == 1


def test_a_budget_is_well_used() -> None:
    lengths = np.random.default_rng(0).integers(5, 60, 5000).tolist()
    batches = token_budget(lengths, 2000, 1, 0)
    padded = sum(len(batch) * max(lengths[i] for i in batch) for batch in batches)
    assert sum(lengths) / padded > 0.9  # little padding, since neighbours are of like length
    assert padded / len(batches) > 0.9 * 2000


@EITHER
def test_the_draw_depends_on_seed_and_epoch_alone(draw: Draw) -> None:
    lengths = np.random.default_rng(1).integers(1, 9, 300).tolist()
    first = lists(draw(lengths, 16, 1, 0))
    np.random.seed(0)  # noqa: NPY002 the global state must not matter
    assert lists(draw(lengths, 16, 1, 0)) == first
    assert lists(draw(lengths, 16, 1, 1)) != first
    assert lists(draw(lengths, 16, 2, 0)) != first
    together = {tuple(sorted(batch)) for batch in first}
    anew = {tuple(sorted(batch)) for batch in lists(draw(lengths, 16, 1, 1))}
    assert len(together & anew) < len(together) / 2, "an epoch also mixes who is with whom"


@EITHER
def test_nothing_to_draw_from_is_no_batches(draw: Draw) -> None:
    assert draw([], 8, 1, 0) == []


@given(st.integers(1, 12), st.integers(1, 20), st.integers(0, 300), st.integers(0, 9))
@settings(max_examples=100, deadline=None)
def test_streams_tile_the_text(streams: int, length: int, more: int, epoch: int) -> None:
    total = streams * length + more
    starts, steps = stream_starts(total, streams, length, 1, epoch)
    assert len(starts) == streams
    assert steps >= 1
    read = (starts[:, None] + np.arange(steps * length)) % total  # (streams, tokens read)
    assert len(np.unique(read)) == read.size, "no token is read twice"
    assert total - read.size < streams * length + streams, "only what fills no step is left out"


def test_streams_begin_elsewhere_each_epoch_and_the_same_from_one_seed() -> None:
    offsets = [int(stream_starts(10_000, 4, 32, 1, epoch)[0][0]) for epoch in range(20)]
    assert len(set(offsets)) > 15
    assert all(0 <= offset < 10_000 for offset in offsets)
    again = [int(stream_starts(10_000, 4, 32, 1, epoch)[0][0]) for epoch in range(20)]
    assert again == offsets
    assert stream_starts(10_000, 4, 32, 2, 0)[0][0] != offsets[0]


def test_over_epochs_every_token_is_read_about_equally_often() -> None:
    total, seen = 100, np.zeros(100)
    for epoch in range(300):
        starts, steps = stream_starts(total, 3, 8, 1, epoch)
        np.add.at(seen, (starts[:, None] + np.arange(steps * 8)) % total, 1)
    assert seen.sum() == 300 * 3 * 4 * 8
    assert seen.min() > 0.85 * seen.mean()


def test_similar_lengths_share_a_batch_of_the_asked_size() -> None:
    lengths = np.random.default_rng(0).integers(5, 30, 400).tolist()
    batches = similar_length(lengths, 16, 1, 0)
    assert {len(batch) for batch in batches} == {16}
    spread = [max(lengths[i] for i in b) - min(lengths[i] for i in b) for b in batches]
    assert np.mean(spread) < 3
