"""Sentences ↔ tokens: one side of a translation, with its vocabulary and its words.

A word is what stands between blanks, so that alignments count words as other tools do. A word
vocabulary cuts finer (`Hund.` is `Hund` and `￭.`): the mark on a sign says that there was no
blank, and putting the tokens together again is exact.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterable, Sequence

from sightline.config import VocabularyConfig
from sightline.data.vocabulary import SPACE, SPECIALS, UNKNOWN, Kind, Vocabulary

JOIN = "￭"
_SIGNS = (
    r"!-/:-@\[-`{-¿×÷\u2000-\u206f\u2e00-\u2e7f\u3000-\u303f"
    r"\uff00-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65"
)
_ALONE = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # kana and Han have no blanks
# Whatever is no sign belongs to a word, in any script, vowel marks included.
_TOKEN = re.compile(rf"(?P<word>[^\s{_SIGNS}{_ALONE}]+)|\S")
_JOINED = re.compile(rf" ?{JOIN} ?")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ufeff]")
_SENTENCE_END = tuple(".!?;。！？；؟।")


def clean(text: str) -> str:
    """A sentence as it is read and written: NFC, no control characters, single blanks."""
    whole = text.encode("utf-8", errors="replace").decode()  # JSON can bring half a character
    return " ".join(unicodedata.normalize("NFC", _CONTROL.sub(" ", whole)).split())


def mark_words(text: str) -> str:
    """Words and signs with a blank between all of them, and a mark where there was none."""
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
    return _JOINED.sub("", text)


class Sentences:
    """One language's sentences in the tokens of its vocabulary."""

    def __init__(self, vocab: Vocabulary) -> None:
        self.vocab = vocab

    @staticmethod
    def learn(config: VocabularyConfig, texts: Iterable[str]) -> Sentences:
        prepared = (_prepare(config.kind, text) for text in texts)
        return Sentences(Vocabulary.build(config.kind, prepared, config.size, config.min_count))

    def split(self, text: str) -> list[str]:
        """The tokens as they are written, those that the vocabulary lacks too."""
        prepared = _prepare(self.vocab.kind, text)
        return self.vocab.split(prepared) if prepared else []  # BPE would see a blank

    def ids(self, tokens: Sequence[str]) -> list[int]:
        # max: a text that spells out <end> does not get to say so to the model
        return [max(UNKNOWN, self.vocab.ids.get(token, UNKNOWN)) for token in tokens]

    def text(self, tokens: Sequence[str]) -> str:
        """The sentence of these tokens, on one line whatever they are; specials leave no trace."""
        if self.vocab.kind == "bpe":
            return clean(self.vocab.decode(self.vocab.ids[token] for token in tokens))
        written = [token for token in tokens if token not in SPECIALS[:UNKNOWN]]
        if self.vocab.kind == "char":
            return clean("".join(written))
        return clean(unmark_words(" ".join(written)))

    def words(self, tokens: Sequence[str]) -> list[tuple[str, int, int]]:
        """The words between blanks, each with its tokens [start, stop)."""
        return [(self.text(tokens[a:b]), a, b) for a, b in self._spans(tokens)]

    def _spans(self, tokens: Sequence[str]) -> list[tuple[int, int]]:
        if self.vocab.kind != "word":
            ids = [self.vocab.ids.get(token, UNKNOWN) for token in tokens]
            spans = self.vocab.word_spans(ids)
            blank = [token in (" ", SPACE) for token in [*tokens, ""]]
            # a blank that is a token of its own goes with the word that it announces
            return [(start - blank[start - 1], stop) for start, stop in spans]
        spans = []
        goes_on = False  # the token before wants this one beside it
        for i, token in enumerate(tokens):
            if token in SPECIALS[:UNKNOWN]:
                continue
            if spans and (goes_on or token.startswith(JOIN)):
                spans[-1] = (spans[-1][0], i + 1)
            else:
                spans.append((i, i + 1))
            goes_on = token.endswith(JOIN)
        return spans

    def parts(self, tokens: list[str], longest: int) -> list[list[str]]:
        """The tokens whole, or if they are too many each sentence, or else as many words as fit."""
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
