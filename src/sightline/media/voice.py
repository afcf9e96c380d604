"""Where somebody speaks: recordings cut at their silences, in constant memory.

A frame is voiced where its energy is well above the quietest of its surroundings. (silero's
detector is better in noise, but its package needs PyTorch, which the base install does not have.)
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from sightline.media.audio import RATE, Floats

FRAME = RATE // 100  # samples whose energy is one number
ABOVE = 9.0  # dB over the noise floor that a voice has
LEAST = -55.0  # dB below full scale: quieter is silence, whatever the floor
PEAK = 40.0  # dB below the loudest: quieter is silence
SHORTEST = 10  # frames: shorter bursts are clicks
PAUSE = 30  # frames of silence that may end a segment
SILENT = 100  # frames of silence that always end one
MARGIN = 15  # frames kept before and after a voice


@dataclass(frozen=True)
class Segment:
    """A stretch of a recording in which somebody speaks."""

    start: float  # seconds
    samples: Floats

    @property
    def end(self) -> float:
        return self.start + len(self.samples) / RATE


def segments(
    blocks: Iterable[Floats], longest: float = 15.0, *, live: bool = False
) -> Iterator[Segment]:
    """The voiced parts of a recording, each of at most so many seconds, in constant memory.

    Cut at pauses; a stretch without any is cut where it is quietest. A silent recording has none.
    A live one is also cut as soon as nobody has spoken for a second.
    """
    most = int(longest * RATE)
    waiting, before = np.zeros(0, np.float32), 0  # samples not yet given, and how many were
    for block in chain(blocks, [None]):  # None: the recording has ended
        if block is not None:
            waiting = np.concatenate([waiting, block])
            if live and len(waiting) > 2 * SILENT * FRAME and not voiced(waiting)[-SILENT:].any():
                kept = SILENT // 2 * FRAME
                yield from _voiced(waiting[:-kept], before)
                waiting, before = waiting[-kept:], before + len(waiting) - kept
        while len(waiting) > (most if block is None else 2 * most):
            cut = _cut(waiting[:most])
            yield from _voiced(waiting[:cut], before)
            waiting, before = waiting[cut:], before + cut
    yield from _voiced(waiting, before)


def loudness(samples: Floats) -> NDArray[np.float64]:
    """The energy of every 10 ms in dB, 0 for a full-scale square wave."""
    count = len(samples) // FRAME
    frames = samples[: count * FRAME].reshape(count, FRAME).astype(np.float64)
    frames = frames - frames.mean(1, keepdims=True)
    level: NDArray[np.float64] = 10 * np.log10((frames**2).mean(1) + 1e-10)
    return level


def voiced(samples: Floats) -> NDArray[np.bool_]:
    """Whether somebody speaks, for every 10 ms; bursts of less than 0.1 s are none."""
    level = loudness(samples)
    if not len(level):
        return np.zeros(0, bool)
    floor = np.percentile(level, 10)
    if len(level) > 100 and level.max() - floor < ABOVE:  # a voice is never so even: noise
        return np.zeros(len(level), bool)
    least = max(min(floor + ABOVE, level.max() - ABOVE), level.max() - PEAK, LEAST)
    loud: NDArray[np.bool_] = level > least
    for start, end in runs(loud):
        if end - start < SHORTEST and not loud[max(0, start - PAUSE) : start].any():
            loud[start:end] = loud[end : end + PAUSE].any()
    return loud


def runs(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Where a row of flags is true: [start, end) of each stretch."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], flags.astype(np.int8), [0]])))
    return [(int(start), int(end)) for start, end in edges.reshape(-1, 2)]


def _cut(samples: Floats) -> int:
    """Where to end a segment: in the last long pause, else at the quietest place."""
    quiet = ~voiced(samples)
    pauses = [(s, e) for s, e in runs(quiet) if e - s >= PAUSE and e > len(quiet) // 4]
    if pauses:
        start, end = pauses[-1]
        return (start + end) // 2 * FRAME
    level = np.convolve(loudness(samples), np.ones(5) / 5, mode="same")
    half = len(level) // 2
    return (half + int(level[half:-5].argmin())) * FRAME


def _voiced(samples: Floats, before: int) -> Iterator[Segment]:
    """From the first voice to the last, or nothing; also cut where nobody speaks for a second."""
    found = runs(voiced(samples))
    if not found:
        return
    start, end = found[0]
    for first, last in [*found[1:], (10**9, 0)]:
        if first - end <= SILENT:
            end = last
            continue
        at, to = max(0, start - MARGIN) * FRAME, (end + MARGIN) * FRAME
        yield Segment((before + at) / RATE, samples[at:to])
        start, end = first, last
