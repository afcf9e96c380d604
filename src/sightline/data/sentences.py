"""Sentences ↔ tokens: one side of a translation, with its vocabulary and its words.

A word is what stands between spaces, so that alignments count words as other tools do. A word
vocabulary also splits off punctuation (`Hund.` is `Hund` and `￭.`): the mark means that there was
no space, so that joining the tokens again is exact.
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from sightline.config import VocabularyConfig
from sightline.data.vocabulary import SPACE, SPECIALS, UNKNOWN, Kind, Vocabulary

JOIN = "￭"
_PUNCTUATION = (
    r"!-/:-@\[-`{-¿×÷\u2000-\u206f\u2e00-\u2e7f\u3000-\u303f"
    r"\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
_ALONE = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # kana and Han
# Whatever is not punctuation belongs to a word, in any script, vowel marks included.
_TOKEN = re.compile(rf"(?P<word>[^\s{_PUNCTUATION}{_ALONE}]+)|\S")
_JOINED = re.compile(rf" ?{JOIN} ?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
_SENTENCE_END = tuple(".!?;。！？；؟।")
# The end of a sentence, quotes and brackets that close with it included.
_FULL_STOP = re.compile(r"[.!?…。！？؟।][\"'”’»“)\]]*$")
_LETTER = re.compile(r"[^\W_]")
_TITLES = re.compile(
    r"(mr|mrs|ms|dr|prof|st|mt|gen|col|capt|lt|sgt|rev|hon|mme|mlle|vs|fig)", re.IGNORECASE
)


def clean(text: str) -> str:
    """A sentence as it is read and written: NFC, no control characters, single spaces."""
    valid = text.encode("utf-8", errors="replace").decode()  # JSON can contain lone surrogates
    return " ".join(unicodedata.normalize("NFC", _CONTROL.sub(" ", valid)).split())


def mark_words(text: str) -> str:
    """Words and punctuation separated by spaces, with a mark where there was none."""
    tokens: list[str] = []
    end, after_word = -1, False
    for match in _TOKEN.finditer(text.replace(JOIN, "■")):
        token, is_word = match[0], match.lastgroup == "word"
        if match.start() == end and (after_word or not is_word):
            token = JOIN + token
        elif match.start() == end:
            tokens[-1] += JOIN
        tokens.append(token)
        end, after_word = match.end(), is_word
    return " ".join(tokens)


def unmark_words(text: str) -> str:
    """The inverse of `mark_words`."""
    return _JOINED.sub("", text)


def sentence_starts(words: Sequence[str]) -> list[int]:
    """Which words begin a sentence, the first aside.

    One ends with a full stop that is not a title's or an initial's (`Dr. No`, `J. Smith`), if the
    next word begins with no small letter: `"Stop!" he said` is one. In a text without capitals,
    small letters tell nothing.
    """
    has_capitals = any(word != word.lower() for word in words)
    starts: list[int] = []
    said = False  # whether the sentence has a letter yet
    for i, (word, following) in enumerate(itertools.pairwise(words), start=1):
        said = said or _LETTER.search(word) is not None
        first = _LETTER.search(following)
        if not (said and first and _FULL_STOP.search(word)) or _abbreviates(word, first[0]):
            continue
        if not (has_capitals and first[0].islower()):
            starts.append(i)
            said = False
    return starts


def _abbreviates(word: str, following: str) -> bool:
    """Whether a word's full stop makes it an abbreviation, by the letter that follows."""
    name = word.removesuffix(".").lstrip("\"'“‘(")
    if name == word or not name:
        return False
    initial = len(name) == 1 and name.isupper() and name != "I"
    number = name == "No" and following.isdigit()
    return initial or number or _TITLES.fullmatch(name) is not None


class Sentences:
    """One language's sentences in the tokens of its vocabulary."""

    def __init__(self, vocab: Vocabulary) -> None:
        self.vocab = vocab

    @staticmethod
    def learn(config: VocabularyConfig, texts: Iterable[str]) -> Sentences:
        """Sentences with a vocabulary built from these texts."""
        prepared = (_prepare(config.kind, text) for text in texts)
        return Sentences(Vocabulary.build(config.kind, prepared, config.size, config.min_count))

    def split(self, text: str) -> list[str]:
        """The tokens as written, including those that the vocabulary lacks."""
        prepared = _prepare(self.vocab.kind, text)
        return self.vocab.split(prepared) if prepared else []  # BPE would see a space

    def ids(self, tokens: Sequence[str]) -> list[int]:
        # max: a text that contains "<end>" must not become the control token
        return [max(UNKNOWN, self.vocab.ids.get(token, UNKNOWN)) for token in tokens]

    def text(self, tokens: Sequence[str]) -> str:
        """The sentence of these tokens, always on one line, without <pad>, <begin> and <end>."""
        if self.vocab.kind == "bpe":
            return clean(self.vocab.decode(self.vocab.ids[token] for token in tokens))
        written = [token for token in tokens if token not in SPECIALS[:UNKNOWN]]
        if self.vocab.kind == "char":
            return clean("".join(written))
        return clean(unmark_words(" ".join(written)))

    def words(self, tokens: Sequence[str]) -> list[tuple[str, int, int]]:
        """The words between spaces, each with its tokens [start, stop)."""
        return [(self.text(tokens[a:b]), a, b) for a, b in self._spans(tokens)]

    def _spans(self, tokens: Sequence[str]) -> list[tuple[int, int]]:
        if self.vocab.kind != "word":
            ids = [self.vocab.ids.get(token, UNKNOWN) for token in tokens]
            spans = self.vocab.word_spans(ids)
            space = [token in (" ", SPACE) for token in [*tokens, ""]]
            # a token that is only a space belongs to the word after it
            return [(start - space[start - 1], stop) for start, stop in spans]
        spans = []
        joined = False  # the token before joins this one
        for i, token in enumerate(tokens):
            if token in SPECIALS[:UNKNOWN]:
                continue
            if spans and (joined or token.startswith(JOIN)):
                spans[-1] = (spans[-1][0], i + 1)
            else:
                spans.append((i, i + 1))
            joined = token.endswith(JOIN)
        return spans

    def parts(self, tokens: list[str], longest: int) -> list[list[str]]:
        """The sentences of a text; what has more than `longest` tokens is cut after a word."""
        words = self.words(tokens)
        starts = [words[i][1] for i in sentence_starts([word for word, _, _ in words])]
        edges = itertools.pairwise([0, *starts, len(tokens)])
        return [part for a, b in edges for part in self._short_parts(tokens[a:b], longest)]

    def _short_parts(self, tokens: list[str], longest: int) -> list[list[str]]:
        """Parts of at most `longest` tokens, cut after a clause, or else after a word."""
        if len(tokens) <= longest:
            return [tokens] if tokens else []
        words = self.words(tokens)
        starts = [start for _, start, _ in words[1:]]
        after_end = [
            start
            for (word, _, _), start in zip(words, starts, strict=False)
            if word.endswith(_SENTENCE_END)
        ]
        parts, at = [], 0
        while len(tokens) - at > longest:
            reach = at + longest
            sentence = bisect_right(after_end, at)
            if sentence < len(after_end) and after_end[sentence] <= reach:
                cut = after_end[sentence]
            else:
                word = bisect_right(starts, reach)
                cut = starts[word - 1] if word and starts[word - 1] > at else reach
            parts.append(tokens[at:cut])
            at = cut
        return [*parts, tokens[at:]]


def _prepare(kind: Kind, text: str) -> str:
    return mark_words(clean(text)) if kind == "word" else clean(text)
