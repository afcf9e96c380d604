"""A translator without PyTorch: its reader of sentences, and the words that it writes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sightline.data.sentences import Sentences
from sightline.data.vocabulary import END, SPECIALS, UNKNOWN, VOCAB, Vocabulary
from sightline.errors import UserError
from sightline.runtime.codec import Codec
from sightline.runtime.describer import Describer, LanguageModelPrior
from sightline.tasks.translate.alignments import Lexicon, load_lexicon
from sightline.tasks.translate.recipe import TranslateRecipe
from sightline.types import Inputs, Layout, Stream

SOURCE_VOCAB = "source_vocab.json"


@dataclass(frozen=True)
class SentenceReader:
    """A text as token ids with an end token: its sentences, a long one in parts."""

    sentences: Sentences
    longest: int
    takes: Literal["file", "text"] = "text"
    batch: int = 64

    def read(self, source: str, *, whole: bool = False) -> list[Inputs]:
        tokens = self.sentences.split(source)
        whole_text = [tokens] if tokens else []
        parts = whole_text if whole else self.sentences.parts(tokens, self.longest)
        return [self._inputs(part) for part in parts]

    def _inputs(self, tokens: list[str]) -> Inputs:
        ids = np.array([*self.sentences.ids(tokens), END])
        layout = Layout.words([*tokens, SPECIALS[END]])
        return Inputs(1, {"tokens": Stream.ragged([ids])}, (layout,))


class TranslationCodec(Codec):
    """The target language; an unknown word is replaced by what it attended to."""

    def __init__(
        self, target: Sentences, recipe: TranslateRecipe, same_unit: bool, lexicon: Lexicon
    ) -> None:
        super().__init__(target.vocab, recipe.search)
        self.sentences = target
        self.lexicon = lexicon
        self._same_unit = same_unit
        self._attends = recipe.model.attention.kind != "none"

    @property
    def banned(self) -> tuple[int, ...]:
        """An unknown word can be replaced only where it is known from which word it came."""
        replaceable = self.vocab.kind == "word" and self._attends
        return () if replaceable else (UNKNOWN,)

    def max_length(self, size: int) -> int:
        most = self.search.max_length
        return min(most, 10 + 3 * size // 2) if self._same_unit else most

    def split(self, text: str) -> list[str]:
        return self.sentences.split(text)

    def ids(self, tokens: Sequence[str]) -> list[int]:
        return self.sentences.ids(tokens)

    def text(self, tokens: Sequence[str]) -> str:
        return self.sentences.text(tokens)

    def words(
        self, tokens: Sequence[int], weights: NDArray[np.float32] | None, layout: Layout | None
    ) -> list[str]:
        words = super().words(tokens, weights, layout)
        if weights is not None and layout is not None:
            for t in np.flatnonzero(np.array(tokens) == UNKNOWN):
                word = layout.labels[int(weights[t, :-1].argmax())]
                words[t] = next(iter(self.lexicon.get(word, {})), word)
        return words

    def shortlist(
        self, layouts: Sequence[Layout | None], common: int
    ) -> tuple[list[int], NDArray[np.bool_]]:
        """Those in common use, the lexicon's translations of a sentence's tokens, and these: names.

        Jean et al. 2015. The output layer of a batch holds what any of its sentences may need; each
        sentence still chooses among its own alone, so that a batch equals its singles.
        """
        if not self.lexicon:
            raise UserError(
                "a shortlist needs the model's lexicon; make it with `sightline align SRC TGT "
                "--model RUN --save-lexicon` on the training text"
            )
        ids = self.vocab.ids
        always = range(min(len(self.vocab), len(SPECIALS) + common))
        own = [
            {
                ids[word]
                for token in (layout.labels[:-1] if layout else ())
                for word in (token, *self.lexicon.get(token, ()))
                if word in ids
            }
            for layout in layouts
        ]
        tokens = sorted({*always, *(token for some in own for token in some)})
        place = {token: i for i, token in enumerate(tokens)}
        allowed = np.zeros((len(own), len(tokens)), dtype=bool)
        allowed[:, : len(always)] = True
        for row, some in enumerate(own):
            allowed[row, [place[token] for token in some]] = True
        return tokens, allowed


def reader(folder: Path, recipe: TranslateRecipe, about: Mapping[str, Any]) -> SentenceReader:
    return SentenceReader(Sentences(Vocabulary.load(folder / SOURCE_VOCAB)), recipe.longest)


def codec(folder: Path, recipe: TranslateRecipe) -> TranslationCodec:
    target = Sentences(Vocabulary.load(folder / VOCAB))
    same_unit = Vocabulary.load(folder / SOURCE_VOCAB).kind == target.vocab.kind
    return TranslationCodec(target, recipe, same_unit, load_lexicon(folder))


def source_of(translator: Describer) -> Sentences:
    assert isinstance(translator.reader, SentenceReader)
    return translator.reader.sentences


def target_of(translator: Describer) -> Sentences:
    assert isinstance(translator.codec, TranslationCodec)
    return translator.codec.sentences


def ensemble(first: Describer, *others: Describer) -> Describer:
    """Translators with the same vocabularies as one."""
    for number, other in enumerate(others, start=2):
        for side, vocabulary in (("source", source_of), ("target", target_of)):
            if vocabulary(first).vocab != vocabulary(other).vocab:
                raise UserError(
                    f"model {number} has another {side} vocabulary than the first; an ensemble "
                    "needs models that were trained on the same data with the same vocabularies"
                )
    return first.ensemble(*others)


def fused(translator: Describer, language_model: Describer, weight: float) -> Describer:
    """Shallow fusion with a language model of sentences in this target language."""
    if language_model.recipe.sequence != "line":
        raise UserError("the language model was trained on a stream; train it with sequence=line")
    prior = LanguageModelPrior(language_model.stepper, weight, None)
    vocab, known = target_of(translator).vocab, language_model.codec.vocab
    if known == vocab:
        return replace(translator, prior=prior)
    ids = [known.ids.get(token, UNKNOWN) for token in vocab.tokens]
    shared = sum(token in known.ids for token in vocab.tokens[len(SPECIALS) :])
    if shared < 0.5 * (len(vocab) - len(SPECIALS)):
        raise UserError(
            f"the language model knows {shared} of the translator's {len(vocab)} tokens; "
            "train one that is `like` the translator: its recipe's key like=RUN"
        )
    return replace(translator, prior=replace(prior, ids=np.array(ids)))
