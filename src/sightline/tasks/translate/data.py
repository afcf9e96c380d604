"""What a translator is trained on: a manifest's pairs of sentences."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sightline import config
from sightline.data import batching
from sightline.data.sentences import Sentences
from sightline.data.vocabulary import BEGIN, END, VOCAB, Vocabulary
from sightline.errors import DataError
from sightline.runtime.model_folder import find_model
from sightline.tasks.data import ManifestData, Minibatches, some_names
from sightline.tasks.translate import fusion
from sightline.tasks.translate.parts import SOURCE_VOCAB, SentenceReader, TranslationCodec
from sightline.tasks.translate.recipe import TranslateRecipe
from sightline.types import Inputs, Stream

if TYPE_CHECKING:
    from sightline.nn.model import Batch, EncoderDecoder

Pair = tuple[list[int], list[int]]  # the tokens of the source, and of the target


class TranslationData(ManifestData):
    """Trains a translator on the manifest that its recipe names."""

    medium = "source"
    scored = ("sacrebleu", "chrf")
    metrics = ("loss", *scored)

    def __init__(self, recipe: TranslateRecipe) -> None:
        super().__init__(recipe)
        trusted = [(e, *target) for e in self.train for target in self.trusted(e)]
        texts = [(str(example.source), text) for example, text, _ in trusted]
        self.trained: fusion.Trained | None = None
        if recipe.fusion is not None:
            self.trained = fusion.find(recipe.fusion)
            self.source_language, self.target_language = self.trained.source, self.trained.target
        elif recipe.training.initial is not None:  # its weights belong to its tokens
            folder = find_model(recipe.training.initial)
            self.source_language = Sentences(Vocabulary.load(folder / SOURCE_VOCAB))
            self.target_language = Sentences(Vocabulary.load(folder / VOCAB))
        else:
            self.source_language = Sentences.learn(recipe.source, (source for source, _ in texts))
            self.target_language = Sentences.learn(recipe.target, (target for _, target in texts))
        source, target = self.source_language.vocab, self.target_language.vocab
        self.reader = SentenceReader(self.source_language, recipe.longest)
        self.codec = TranslationCodec(self.target_language, recipe, source.kind == target.kind, {})
        self.files = {VOCAB: target.to_json(), SOURCE_VOCAB: source.to_json()}
        if self.trained is not None:
            self.files[fusion.LANGUAGE_MODEL] = config.to_yaml(self.trained.language_model)
        kept = [(pair, trusted[i]) for i, pair in enumerate(self._pairs(texts)) if pair is not None]
        self.pairs = [pair for pair, _ in kept]
        self.weights = [example.weight for _, (example, _, _) in kept]  # of each pair, in epochs
        self.trust = [trust for _, (_, _, trust) in kept]  # of each pair, in the loss
        if not self.pairs:
            raise DataError(
                f"no training pair of {recipe.manifest} has at most longest={recipe.longest} "
                "tokens on both sides; raise `longest`"
            )
        counts = [*self.weights, *self.trust]
        content: Any = self.pairs if {*counts} == {1.0} else (self.pairs, counts)
        self.fingerprint = hashlib.sha256(repr(content).encode()).hexdigest()

    def _pairs(self, texts: Iterable[tuple[str, str]]) -> list[Pair | None]:
        """Their tokens; None for a pair that is too long, or empty on a side."""
        source, target, longest = self.source_language, self.target_language, self.recipe.longest
        pairs = [(source.ids(source.split(s)), target.ids(target.split(t))) for s, t in texts]
        return [
            ([*read, END], [BEGIN, *written, END])
            if 0 < len(read) <= longest and 0 < len(written) <= longest
            else None
            for read, written in pairs
        ]

    def build_model(self) -> EncoderDecoder:
        from sightline.tasks.translate.model import build_model

        given = self.recipe, self.source_language.vocab, self.target_language.vocab
        if self.trained is None:
            return build_model(*given)
        fused = build_model(*given, self.trained.language_model.model)
        self.trained.put_into(fused, build_model(*given))
        return fused

    def epoch(self, number: int) -> Minibatches:
        return Minibatches(self.drawn(_lengths(self.pairs), number, self.weights), self._batch)

    def _batch(self, members: Sequence[int], position: int) -> Batch:
        shown = some_names([i + 1 for i in members], 8)
        pairs, trust = [self.pairs[i] for i in members], [self.trust[i] for i in members]
        return _batch(pairs, f"training pairs {shown} (counting those in use)", trust)

    def dev_batches(self) -> Iterable[Batch]:
        every = self._pairs((str(e.source), e.targets[0]) for e in self.dev)
        pairs = [pair for pair in every if pair is not None]
        for members in batching.token_budget(_lengths(pairs), 8192, 0, 0):
            yield _batch([pairs[i] for i in members])


def _lengths(pairs: list[Pair]) -> list[int]:
    return [len(source) + len(target) for source, target in pairs]


def _batch(pairs: list[Pair], name: str = "", trust: Sequence[float] = ()) -> Batch:
    import torch

    from sightline.nn.model import Batch, pad

    sources = Stream.ragged([np.array(source) for source, _ in pairs])
    inputs = Inputs(len(pairs), {"tokens": sources}).map(torch.from_numpy)
    weights = None if {*trust} <= {1.0} else torch.tensor(trust)
    return Batch(pad([target for _, target in pairs]), inputs, name, weights=weights)
