"""What a word's spelling says: its beginning, its endings and its shape, as ids of a hashed table.

So an encoder has something to go by where it does not know a word.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

SIZE = 4096  # rows of the table; 0 is no feature
_SHAPE = ((re.compile("[A-ZÀ-Þ]"), "X"), (re.compile(r"[^\W\d_X]"), "x"), (re.compile(r"\d"), "9"))


@lru_cache(maxsize=100_000)
def features(word: str) -> tuple[int, ...]:
    """Of one, two and three letters at the end, of two at the beginning, of the shape: Xx9-."""
    small, shape = word.lower(), word
    for pattern, by in _SHAPE:
        shape = pattern.sub(by, shape)
    shape = re.sub(r"(.)\1+", r"\1", shape)
    named = [f"-{small[-n:]}" for n in (1, 2, 3)] + [f"{small[:2]}-", f"={shape}"]
    return tuple(1 + zlib.crc32(each.encode()) % (SIZE - 1) for each in named)


def spelled(words: Iterable[str]) -> NDArray[np.int64]:
    """(M, 5)"""
    return np.array([features(word) for word in words], np.int64).reshape(-1, 5)
