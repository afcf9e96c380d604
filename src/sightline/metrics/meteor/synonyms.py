"""METEOR's synonym dictionary: which WordNet synonym sets a word belongs to.

A word's sets are its own and those of its base forms; base forms come from a list of irregular
words, or else from the first of twenty suffix rules whose result is in the dictionary.
"""

from collections.abc import Callable
from dataclasses import dataclass

# (suffix, what takes its place), tried in this order
_SUFFIX_RULES = (
    *(("s", ""), ("ses", "s"), ("xes", "x"), ("zes", "z"), ("ches", "ch"), ("shes", "sh")),
    *(("men", "man"), ("ies", "y"), ("es", "e"), ("es", ""), ("ed", "e"), ("ed", "")),
    *(("ing", "e"), ("ing", ""), ("er", ""), ("est", ""), ("er", "e"), ("est", "e")),
)
_NONE: frozenset[int] = frozenset()


def base_form(word: str, known: Callable[[str], bool]) -> str | None:
    """The word without its inflection, if that is a word of the dictionary."""
    if word.endswith("ss") or len(word) <= 2:
        return None
    for suffix, replacement in _SUFFIX_RULES:
        if word.endswith(suffix):
            base = word[: -len(suffix)] + replacement
            if known(base):
                return base
    return None


@dataclass(frozen=True)
class SynonymTable:
    """The dictionary as read from METEOR's files."""

    bases: dict[str, list[str]]  # irregular word → its base forms
    sets: dict[str, frozenset[int]]

    @classmethod
    def parse(cls, exceptions: str, synsets: str) -> "SynonymTable":
        """Both files are pairs of lines; in the first the base form precedes its inflections."""
        lines = exceptions.split("\n")
        bases: dict[str, list[str]] = {}
        for base, inflected in zip(lines[0::2], lines[1::2], strict=False):
            for word in inflected.split():
                bases.setdefault(word, []).append(base)
        lines = synsets.split("\n")
        sets = {
            word: frozenset(map(int, numbers.split()))
            for word, numbers in zip(lines[0::2], lines[1::2], strict=False)
        }
        return cls(bases, sets)

    def vocabulary(self) -> set[str]:
        """The words that text can contain: normalisation splits at an underscore."""
        return {word for word in (*self.sets, *self.bases) if "_" not in word}

    def own(self, word: str) -> frozenset[int]:
        return self.sets.get(word, _NONE)

    def synsets(self, word: str) -> frozenset[int]:
        """The word's own sets and those of its base forms."""
        if word in self.bases:
            return self.own(word).union(*map(self.own, self.bases[word]))
        base = base_form(word, self.sets.__contains__)
        return self.own(word) if base is None else self.own(word) | self.own(base)
