"""When each phone or word was said, read from where attention looked.

The rule: a token is centred at the median of its attention over time. It begins half-way from the
centre of the token before it, at most REACH before its own centre, and ends where the next begins,
at most REACH after it. LAG is how much later than a phone's middle attention looks; below 0,
earlier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sightline.data.vocabulary import SPACE
from sightline.types import Description

REACH = 0.12  # seconds
LAG = -0.025  # chosen on the dev part of made speech, for `phones`


@dataclass(frozen=True)
class Span:
    """A token or a word, and when it was said, in seconds."""

    text: str
    start: float
    end: float
    probability: float

    def to_json(self) -> dict[str, float | str]:
        return {
            "text": self.text,
            "start": round(self.start, 3),
            "end": round(self.end, 3),
            "probability": round(self.probability, 4),
        }


def spans(description: Description, kind: str = "word") -> list[Span]:
    """Of each phone or word; `kind` is that of the vocabulary, whose pieces make up words."""
    weights, layout = description.attention, description.layout
    if weights is None or layout is None or not layout.times or not description.tokens:
        return []
    times = np.asarray(layout.times)
    centres = np.maximum.accumulate(medians(weights.astype(np.float64), times)) - LAG
    half = float(times[1] - times[0]) / 2 if len(times) > 1 else REACH
    middles = (centres[1:] + centres[:-1]) / 2
    first, last = max(0.0, times[0] - half), times[-1] + half
    starts = np.maximum(np.concatenate([[first], middles]), centres - REACH)
    ends = np.minimum(np.concatenate([middles, [last]]), centres + REACH)
    found = [
        Span(token, max(0.0, float(start)), max(0.0, float(end)), float(np.exp(log_prob)))
        for token, start, end, log_prob in zip(
            description.tokens, starts, np.maximum(starts, ends), description.log_probs, strict=True
        )
    ]
    return found if kind == "word" else _words(found, kind)


def medians(weights: NDArray[np.float64], times: NDArray[np.float64]) -> NDArray[np.float64]:
    """The time by which half of each row's weight has come, between positions too, (T,)."""
    share = np.cumsum(weights, axis=1) / np.maximum(weights.sum(1, keepdims=True), 1e-9)
    step = float(times[1] - times[0]) if len(times) > 1 else 0.0
    at = np.minimum((share < 0.5).sum(1), weights.shape[1] - 1)
    rows = np.arange(len(weights))
    before = share[rows, at] - weights[rows, at] / np.maximum(weights.sum(1), 1e-9)
    inside = (0.5 - before) / np.maximum(share[rows, at] - before, 1e-9)
    middle: NDArray[np.float64] = times[at] + (np.clip(inside, 0, 1) - 0.5) * step
    return middle


def _words(pieces: Sequence[Span], kind: str) -> list[Span]:
    """Letters or pieces of words put together: a word begins where a space is."""
    words: list[Span] = []
    fresh = True
    for piece in pieces:
        text = piece.text.replace(SPACE, " ") if kind == "bpe" else piece.text
        fresh = fresh or text.startswith(" ")
        if not text.strip():
            fresh = True
            continue
        if fresh:
            words.append(Span(text.strip(), piece.start, piece.end, piece.probability))
        else:
            last = words.pop()
            sure = min(last.probability, piece.probability)
            words.append(Span(last.text + text, last.start, piece.end, sure))
        fresh = text.endswith(" ")
    return words
