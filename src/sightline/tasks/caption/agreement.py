"""Agreement: "an eagle" for "a eagle", "two hens" for "two hen".

A search that is readier to write a word it seldom read (`search/naming.py`) has often begun the
phrase before it: the article or the number is there, and the word comes as the classifier calls it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from sightline.data.imagenet import animals

ARTICLES = ("a", "an")
_VOWEL = re.compile(r"[aeio]|u(?!ni(?!n|m)|s[aeu]|t[ei]|k|r[aeiou])|hours?$|hono|heir|atm$")
_CONSONANT = re.compile(r"one(?!i)|once|eu|ewe")  # after all
_COUNTS = "two three four five six seven eight nine ten several many few both multiple various"
_MANY = frozenset(_COUNTS.split())
_GROUPS = frozenset(["group", "herd", "flock", "couple", "pair", "bunch", "pack", "number"])
_SAME = ("fish", "sheep", "deer", "bison", "shrimp", "squid", "bighorn", "salmon", "trout")
_IRREGULAR = {"wolf": "wolves", "ox": "oxen", "goose": "geese", "mouse": "mice"}


def article(word: str) -> str:
    """The one that is said before this word."""
    vowel = _VOWEL.match(word) is not None and _CONSONANT.match(word) is None
    return ARTICLES[vowel]


def plural(word: str) -> str:
    """Of an animal's name."""
    if word.endswith(_SAME):
        return word
    if word in _IRREGULAR:
        return _IRREGULAR[word]
    if re.search(r"[^aeiou]y$", word):
        return f"{word[:-1]}ies"
    return word + ("es" if re.search(r"(s|x|z|ch|sh)$", word) else "s")


def plurals() -> dict[str, str]:
    """The plural of each animal that the classifier knows."""
    return {word: plural(word) for word in animals()}


def agreed(words: Sequence[str], names: dict[str, str]) -> list[str]:
    """The words with articles as they are said, and with these names in the plural after a number.

    `names` are the words that may not agree, with their plurals.
    """
    result = list(words)
    for place in range(1, len(result)):
        before = result[place - 1]
        several = before in _MANY or (before == "of" and result[place - 2] in _GROUPS)
        if several and result[place] in names:
            result[place] = names[result[place]]
        if before in ARTICLES:
            result[place - 1] = article(result[place])
    return result
