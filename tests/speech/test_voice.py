"""Recordings are cut at their silences, in constant memory; silence has no segments."""

import numpy as np
import pytest
from sounds import spoken

from sightline.media.audio import RATE
from sightline.media.voice import segments, voiced

NOISE = np.random.default_rng(0)


def silence(seconds):
    return (NOISE.normal(size=int(RATE * seconds)) * 1e-4).astype(np.float32)


def said(phones="ABCABC"):
    return spoken(phones, np.random.default_rng(3))[0]


@pytest.mark.parametrize(
    "sound",
    [np.zeros(2 * RATE, np.float32), silence(3), 100 * silence(3), np.full(RATE, 0.5, np.float32)],
    ids=["digital silence", "a quiet room", "steady noise", "a constant"],
)
def test_nobody_speaks(sound):
    assert not list(segments([sound]))


def test_each_utterance_is_a_segment_with_its_time():
    one = said()
    long = np.concatenate([silence(2), one, silence(2), one, silence(3)])
    found = list(segments([long]))
    assert len(found) == 2
    for segment, begins in zip(found, (2.2, 4.2 + len(one) / RATE), strict=True):
        assert segment.start == pytest.approx(begins - 0.15, abs=0.06)
        assert segment.end == pytest.approx(begins + len(one) / RATE - 0.4 + 0.15, abs=0.06)


def test_blocks_do_not_matter_and_memory_does_not_grow():
    part = np.concatenate([said(), silence(1.5)])
    blocks = [part] * 40
    held = []

    def given():
        for block in blocks:
            held.append(1)
            yield block

    found = []
    for segment in segments(given(), longest=4.0):
        found.append(segment)
        if len(found) == 1:
            assert len(held) < 10  # not all was read
    assert len(found) == 40
    again = list(segments([np.concatenate(blocks)], longest=4.0))
    np.testing.assert_allclose([s.start for s in again], [s.start for s in found])


def test_without_pauses_it_is_cut_where_it_is_quietest():
    steady = np.concatenate([said("ABCDE" * 20)[RATE // 5 : -RATE // 5]])
    found = list(segments([steady], longest=3.0))
    assert all(len(segment.samples) <= 3.4 * RATE for segment in found)
    total = sum(len(segment.samples) for segment in found)
    assert total > 0.95 * len(steady)


def test_a_live_sound_is_cut_soon_after_a_pause():
    blocks = [said(), *[silence(0.5)] * 8]
    given = []

    def heard():
        for block in blocks:
            given.append(block)
            yield block

    next(iter(segments(heard(), live=True)))
    assert len(given) < 6


def test_a_click_is_no_voice():
    clicked = silence(2)
    clicked[RATE : RATE + 200] = 0.8
    assert not voiced(clicked).any()
