"""What a parser is trained on: a manifest's sentences and their trees; and its network."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from sightline.data import batching
from sightline.data.manifest import Example
from sightline.data.trees import read_trees
from sightline.data.vocabulary import BEGIN, END, VOCAB, Vocabulary
from sightline.errors import DataError
from sightline.tasks.data import ManifestData, Minibatches, some_names
from sightline.tasks.parse.parts import SOURCE_VOCAB, TreeCodec, WordReader
from sightline.tasks.parse.recipe import ParseRecipe
from sightline.types import Inputs, Stream

if TYPE_CHECKING:
    from sightline.nn.model import Batch, EncoderDecoder


@dataclass(frozen=True)
class Pair:
    """A sentence and its linearised tree."""

    words: tuple[str, ...]
    tokens: tuple[str, ...]
    weight: float = 1.0  # in epochs
    trust: float = 1.0  # in the loss

    @property
    def size(self) -> int:
        return len(self.words) + len(self.tokens)

    @property
    def looks(self) -> NDArray[np.int64]:
        """Where to look at each token and at the end: the first word that is not yet written."""
        is_leaf = [len(token) == 1 or token[0] not in "()" for token in (*self.tokens, "(")]
        before = np.cumsum(is_leaf) - is_leaf
        return np.asarray(np.minimum(before, len(self.words) - 1), np.int64)


class TreeData(ManifestData):
    """Trains a parser on the manifest that its recipe names."""

    reader: WordReader
    medium = "source"
    scored = ("brackets",)
    metrics = ("loss", "bracket_f1", "bracket_exact", "tag_accuracy")

    def __init__(self, recipe: ParseRecipe) -> None:
        super().__init__(recipe)
        self.pairs = [
            pair
            for example in self.train
            for text, trust in self.trusted(example)
            if (pair := _pair(example, text, recipe, trust)) is not None
        ]
        if not self.pairs:
            raise DataError(
                f"no training tree of {recipe.manifest} has at most longest={recipe.longest} words"
            )
        texts = (" ".join(pair.words) for pair in self.pairs)
        source = Vocabulary.build("word", texts, recipe.words, recipe.min_count)
        trees = (" ".join(pair.tokens) for pair in self.pairs)
        self.vocab = Vocabulary.build("word", trees)
        self.reader = WordReader(source, recipe.longest, recipe.encoder.spelling)
        self.codec = TreeCodec(self.vocab, recipe)
        self.files = {VOCAB: self.vocab.to_json(), SOURCE_VOCAB: source.to_json()}
        self.fingerprint = hashlib.sha256(repr(self.pairs).encode()).hexdigest()

    def build_model(self) -> EncoderDecoder:
        return build_model(self.recipe, self.reader.vocab, self.vocab)

    def epoch(self, number: int) -> Minibatches:
        sizes, weights = [p.size for p in self.pairs], [p.weight for p in self.pairs]
        return Minibatches(self.drawn(sizes, number, weights), self._batch)

    def _batch(self, members: Sequence[int], position: int) -> Batch:
        shown = some_names([i + 1 for i in members], 8)
        return self.batch([self.pairs[i] for i in members], f"training trees {shown}")

    def batch(self, pairs: Sequence[Pair], name: str = "") -> Batch:
        import torch

        from sightline.nn.model import Batch, pad
        from sightline.nn.objectives import LOOKS

        inputs = Inputs.batch([self.reader.inputs(pair.words) for pair in pairs])
        if self.recipe.loss.looks and not self.recipe.encoder.summary:
            looks = Stream.ragged([pair.looks for pair in pairs])
            inputs = replace(inputs, streams={**inputs.streams, LOOKS: looks})
        targets = [[BEGIN, *self.codec.ids(pair.tokens), END] for pair in pairs]
        trust = [pair.trust for pair in pairs]
        weights = None if {*trust} == {1.0} else torch.tensor(trust)
        return Batch(pad(targets), inputs.map(torch.from_numpy), name, weights=weights)

    def dev_batches(self) -> Iterable[Batch]:
        every = [_pair(example, example.targets[0], self.recipe) for example in self.dev]
        pairs = [pair for pair in every if pair is not None]
        for members in batching.token_budget([pair.size for pair in pairs], 8192, 0, 0):
            yield self.batch([pairs[i] for i in members])


def _pair(example: Example, text: str, recipe: ParseRecipe, trust: float = 1.0) -> Pair | None:
    """An example's sentence and tree; None if it is too long."""
    trees = read_trees(text, f"item {example.id!r}")
    words = tuple(str(example.source).split())
    if len(trees) != 1 or tuple(leaf.word for leaf in trees[0].leaves()) != words:
        raise DataError(
            f"item {example.id!r}: the target must be one tree over the words of the source, cut "
            "as the source is; `sightline prepare treebank` makes such a manifest"
        )
    if len(words) > recipe.longest:
        return None
    return Pair(words, tuple(trees[0].tokens(tags=recipe.tags)), example.weight, trust)


def build_model(recipe: ParseRecipe, source: Vocabulary, target: Vocabulary) -> EncoderDecoder:
    from sightline.nn.decoder import Decoder
    from sightline.nn.encoders.text import TextEncoder
    from sightline.nn.model import EncoderDecoder
    from sightline.nn.objectives import Likelihood

    encoder = TextEncoder(recipe.encoder, len(source))
    decoder = Decoder(recipe.model, len(target), encoder.dimension)
    objective = Likelihood(recipe.loss, recipe.training.scheduled_sampling)
    return EncoderDecoder(encoder, decoder, objective)


def saved_model(folder: Path, recipe: ParseRecipe) -> EncoderDecoder:
    """The model that a checkpoint's weights go into."""
    source, target = (Vocabulary.load(folder / name) for name in (SOURCE_VOCAB, VOCAB))
    return build_model(recipe, source, target)
