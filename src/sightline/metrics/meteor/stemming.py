"""The English Snowball stemmer (Porter2) of 2006, which METEOR 1.5 carries.

Later Snowball releases changed the rules (`organization`, `evening`, `added`, `biologist` stem
otherwise), so the `snowballstemmer` package gives other matches than METEOR and cannot be used.
Rules: https://snowballstem.org/algorithms/english/stemmer.html as it stood then.
"""

import json
from pathlib import Path

_VOWELS = frozenset("aeiouy")
_DOUBLES = frozenset(("bb", "dd", "ff", "gg", "mm", "nn", "pp", "rr", "tt"))

# In this order: words with stems of their own; by step, what replaces an ending; exceptions.
_TABLES: dict[str, dict[str, str]] = json.loads(
    Path(__file__).with_name("endings.json").read_text("utf-8")
)
_WHOLE_WORDS, _STEP_2, _STEP_3, _STEP_4, _AFTER_PLURAL = _TABLES.values()


def stem(word: str) -> str:
    if word in _WHOLE_WORDS:
        return _WHOLE_WORDS[word]
    if len(word) < 3:
        return word
    word = _mark_consonant_y(word.removeprefix("'"))
    r1 = _first_region(word)
    r2 = _region_after(word, r1)
    word = _plural(word)
    if word not in _AFTER_PLURAL:
        word = _past_and_gerund(word, r1)
        word = _final_y(word)
        word = _replace_ending(word, _STEP_2, r1)
        word = _replace_ending(word, _STEP_3, r1, ative=r2)
        word = _replace_ending(word, _STEP_4, r2)
        word = _final_e_and_l(word, r1, r2)
    return word.replace("Y", "y")


def _mark_consonant_y(word: str) -> str:
    """Write Y for a y that is a consonant: at the start, or after a vowel."""
    if "y" not in word:
        return word
    letters = list(word)
    for at, letter in enumerate(letters):
        if letter == "y" and (at == 0 or letters[at - 1] in _VOWELS):
            letters[at] = "Y"
    return "".join(letters)


def _first_region(word: str) -> int:
    for prefix in ("gener", "commun", "arsen"):
        if word.startswith(prefix):
            return len(prefix)
    return _region_after(word, 0)


def _region_after(word: str, start: int) -> int:
    """Where the part after the first non-vowel that follows a vowel begins."""
    seen_vowel = False
    for at in range(start, len(word)):
        if word[at] in _VOWELS:
            seen_vowel = True
        elif seen_vowel:
            return at + 1
    return len(word)


def _has_vowel(part: str) -> bool:
    return any(letter in _VOWELS for letter in part)


def _ends_in_short_syllable(part: str) -> bool:
    if len(part) < 2 or part[-1] in _VOWELS or part[-2] not in _VOWELS:
        return False
    if len(part) == 2:
        return True
    return part[-3] not in _VOWELS and part[-1] not in "wxY"


def _plural(word: str) -> str:
    for ending in ("'s'", "'s", "'"):
        if word.endswith(ending):
            word = word[: -len(ending)]
            break
    if word.endswith("sses"):
        return word[:-2]
    if word.endswith(("ied", "ies")):
        return word[:-2] if len(word) > 4 else word[:-1]
    if word.endswith("s") and not word.endswith(("us", "ss")) and _has_vowel(word[:-2]):
        return word[:-1]
    return word


def _past_and_gerund(word: str, r1: int) -> str:
    for ending in ("eedly", "eed"):
        if word.endswith(ending):
            start = len(word) - len(ending)
            return word[:start] + "ee" if start >= r1 else word
    for ending in ("ingly", "edly", "ing", "ed"):
        if word.endswith(ending):
            part = word[: -len(ending)]
            if not _has_vowel(part):
                return word
            if part.endswith(("at", "bl", "iz")):
                return part + "e"
            if part[-2:] in _DOUBLES:
                return part[:-1]
            # a short word: nothing left after R1 begins
            if r1 == len(part) and _ends_in_short_syllable(part):
                return part + "e"
            return part
    return word


def _final_y(word: str) -> str:
    if len(word) > 2 and word[-1] in "yY" and word[-2] not in _VOWELS:
        return word[:-1] + "i"
    return word


# What must stand before an ending, where not everything may.
_BEFORE = {"ogi": ("l",), "li": tuple("cdeghkmnrt"), "ion": ("s", "t")}


def _replace_ending(word: str, endings: dict[str, str], region: int, ative: int = 0) -> str:
    """Replace the longest of the endings if it lies in the region; `ative` has its own."""
    for length in range(min(7, len(word)), 1, -1):
        part, ending = word[:-length], word[-length:]
        if ending in endings:
            allowed = len(part) >= (ative if ending == "ative" else region)
            fits = part.endswith(_BEFORE.get(ending, ""))
            return part + endings[ending] if allowed and fits else word
    return word


def _final_e_and_l(word: str, r1: int, r2: int) -> str:
    start = len(word) - 1
    if word.endswith("e"):
        if start >= r2 or (start >= r1 and not _ends_in_short_syllable(word[:start])):
            return word[:start]
    elif word.endswith("ll") and start >= r2:
        return word[:start]
    return word
