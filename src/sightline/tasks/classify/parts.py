"""A classifier without PyTorch: its reader of sentences, and the classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from sightline.data.sentences import JOIN, Sentences, clean, mark_words
from sightline.data.spelling import spelled
from sightline.data.vocabulary import SPECIALS, VOCAB, Vocabulary
from sightline.runtime.codec import Codec
from sightline.runtime.describer import Describer
from sightline.tasks.classify.recipe import ClassifyRecipe
from sightline.types import Inputs, Layout, Stream

SOURCE_VOCAB = "source_vocab.json"


def normalise(text: str, recipe: ClassifyRecipe) -> str:
    """A text as it is read: words and punctuation apart, whether there was a blank or not."""
    text = apart(text, recipe)
    return text.lower() if recipe.lower else text


def apart(text: str, recipe: ClassifyRecipe) -> str:
    """The same, its capital letters kept."""
    text = clean(text)
    return mark_words(text).replace(JOIN, "") if recipe.vocabulary.kind == "word" else text


@dataclass(frozen=True)
class TextReader:
    """A text as token ids, the first `longest` of them; an empty one has no parts."""

    vocab: Vocabulary
    recipe: ClassifyRecipe
    takes: Literal["file", "text"] = "text"
    batch: int = 64

    def read(self, source: str, *, whole: bool = False) -> list[Inputs]:
        text = normalise(source, self.recipe)
        tokens = self.vocab.split(text)[: self.recipe.longest] if text else []
        if not tokens:
            return []
        streams = {"tokens": Stream.ragged([np.array(Sentences(self.vocab).ids(tokens))])}
        if self.recipe.encoder.spelling:
            words = apart(source, self.recipe).split() if self.vocab.kind == "word" else tokens
            streams["spelling"] = Stream.ragged([spelled(words[: len(tokens)])])
        # one vector, the last state, has no words to show
        layout = Layout("vector") if self.recipe.encoder.summary else Layout.words(tokens)
        return [Inputs(1, streams, (layout,))]


class ClassCodec(Codec):
    """A class is one token, whatever its name; nothing ends it."""

    end = None
    banned = tuple(range(len(SPECIALS)))

    def max_length(self, size: int) -> int:
        return 1

    def split(self, text: str) -> list[str]:
        return [text.strip()] if text.strip() else []


def reader(folder: Path, recipe: ClassifyRecipe, about: Mapping[str, Any]) -> TextReader:
    return TextReader(Vocabulary.load(folder / SOURCE_VOCAB), recipe)


def codec(folder: Path, recipe: ClassifyRecipe) -> ClassCodec:
    return ClassCodec(Vocabulary.load(folder / VOCAB), recipe.search)


def words_of(classifier: Describer) -> Vocabulary:
    assert isinstance(classifier.reader, TextReader)
    return classifier.reader.vocab
