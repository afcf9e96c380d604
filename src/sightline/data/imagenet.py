"""ImageNet's classes in everyday words: what a picture classifier can name."""

from __future__ import annotations

from functools import cache
from pathlib import Path

CLASSES = 1000
ANIMALS = 398  # the first classes; each animal can be counted


@cache
def imagenet_words() -> dict[str, list[int]]:
    """The classes of each word, as `imagenet_words.txt` lists them."""
    text = Path(__file__).with_name("imagenet_words.txt").read_text(encoding="utf-8")
    words = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            word, *numbers = line.split()
            words[word] = [number for part in numbers for number in _numbers(part)]
    return words


@cache
def animals() -> frozenset[str]:
    return frozenset(w for w, classes in imagenet_words().items() if min(classes) < ANIMALS)


def _numbers(part: str) -> range:
    first, _, last = part.partition("-")
    return range(int(first), int(last or first) + 1)
