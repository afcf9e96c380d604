"""A question answerer without PyTorch: its reader of stories, and the answers that it gives."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sightline.data.sentences import clean
from sightline.data.vocabulary import PAD, SPECIALS, UNKNOWN, VOCAB, Vocabulary
from sightline.errors import UserError
from sightline.runtime.codec import Codec
from sightline.tasks.answer.recipe import AnswerRecipe
from sightline.types import Description, Hypothesis, Inputs, Layout, Stream

_SENTENCES = re.compile(r"(?<=[.!?])\s+|\n")
_WORDS = re.compile(r"[^\W_]+(?:[-'’][^\W_]+)*")


def sentences_of(text: str) -> list[str]:
    """The facts, and last the question: a line each, or ended by . ! or ?"""
    parts = (clean(part) for part in _SENTENCES.split(text))
    return [part for part in parts if _WORDS.search(part)]


def words_of(sentence: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(sentence)]


@dataclass(frozen=True)
class StoryReader:
    """A story and a question as word ids, (1 + M, L): the question first, then the facts."""

    vocab: Vocabulary
    memory: int  # so many of the latest facts are read
    longest: int  # words of a sentence
    takes: Literal["file", "text"] = "text"
    batch: int = 64

    def read(self, source: str, *, whole: bool = False) -> list[Inputs]:
        sentences = sentences_of(source)
        return [self.inputs(sentences)] if sentences else []

    def inputs(self, sentences: Sequence[str]) -> Inputs:
        *facts, question = sentences
        facts = facts[-self.memory :]
        rows = np.array([self.ids(sentence) for sentence in (question, *facts)])
        return Inputs(1, {"facts": Stream.ragged([rows])}, (Layout("facts", labels=tuple(facts)),))

    def ids(self, sentence: str) -> list[int]:
        words = words_of(sentence)
        if len(words) > self.longest:
            raise UserError(
                f"a sentence of {len(words)} words, {sentence[:60]!r}; this model reads at most "
                f"{self.longest} a sentence: say it in several"
            )
        known = [max(UNKNOWN, self.vocab.ids.get(word, UNKNOWN)) for word in words]
        return known + [PAD] * (self.longest - len(known))


class AnswerCodec(Codec):
    """One answer after as many steps as there are hops; attention is (hops, facts)."""

    end = None

    def __init__(self, vocab: Vocabulary, recipe: AnswerRecipe) -> None:
        super().__init__(vocab, recipe.search)
        self.hops = recipe.model.hops

    def max_length(self, size: int) -> int:
        return self.hops

    def split(self, text: str) -> list[str]:
        """Every hop but the last says nothing."""
        said = text.strip().lower()
        return [*[SPECIALS[PAD]] * (self.hops - 1), said] if said else []

    def ids(self, tokens: Sequence[str]) -> list[int]:
        return [self.vocab.ids.get(token, UNKNOWN) for token in tokens]

    def text(self, tokens: Sequence[str]) -> str:
        return " ".join(token for token in tokens if token not in SPECIALS)

    def description(self, hypothesis: Hypothesis, layout: Layout | None) -> Description:
        said = [t for t, token in enumerate(hypothesis.tokens) if token >= len(SPECIALS)]
        tokens = tuple(self.vocab.tokens[hypothesis.tokens[t]] for t in said)
        weights = hypothesis.attention
        if weights is not None and layout is not None:  # without the question's column
            weights = weights[:, 1 : 1 + len(layout.labels)]
        return Description(
            text=self.text(tokens),
            tokens=tokens,
            score=hypothesis.score,
            log_probs=tuple(float(hypothesis.log_probs[t]) for t in said),
            attention=weights,
            layout=None if weights is None else layout,
        )


def reader(folder: Path, recipe: AnswerRecipe, about: Mapping[str, Any]) -> StoryReader:
    vocab = Vocabulary.load(folder / VOCAB)
    return StoryReader(vocab, recipe.model.memory, recipe.model.longest)


def codec(folder: Path, recipe: AnswerRecipe) -> AnswerCodec:
    return AnswerCodec(Vocabulary.load(folder / VOCAB), recipe)


def used_facts(description: Description) -> list[tuple[str, float]]:
    """The fact that each hop looked at most, and its weight."""
    weights, layout = description.attention, description.layout
    if weights is None or layout is None or not layout.labels:
        return []
    return [(layout.labels[int(row.argmax())], float(row.max())) for row in weights]
