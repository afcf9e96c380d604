"""What a classifier is trained on: a manifest's texts, each with its class."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from sightline.data import batching
from sightline.data.manifest import Example
from sightline.data.vocabulary import BEGIN, SPECIALS, VOCAB, Vocabulary
from sightline.errors import DataError
from sightline.tasks.classify.parts import SOURCE_VOCAB, ClassCodec, TextReader, normalise
from sightline.tasks.classify.recipe import ClassifyRecipe
from sightline.tasks.data import ManifestData, Minibatches, some_names
from sightline.types import Inputs

if TYPE_CHECKING:
    from sightline.nn.model import Batch, EncoderDecoder

FEWEST, MOST = 2, 10_000  # classes


class ClassData(ManifestData):
    """Trains a classifier on the manifest that its recipe names."""

    medium = "source"
    scored = ("accuracy",)
    metrics = ("loss", *scored)

    def __init__(self, recipe: ClassifyRecipe) -> None:
        super().__init__(recipe)
        self.classes = self._classes()
        words = recipe.vocabulary
        texts = (normalise(str(example.source), recipe) for example in self.train)
        self.words = Vocabulary.build(words.kind, texts, words.size, words.min_count)
        self.reader = TextReader(self.words, recipe)
        self.codec = ClassCodec(self.classes, recipe.search)
        self.files = {VOCAB: self.classes.to_json(), SOURCE_VOCAB: self.words.to_json()}
        pairs = [
            (read[0], self.classes.ids[name], weight, example.weight)
            for example in self.train
            for name, weight in self.trusted(example)
            if (read := self.reader.read(str(example.source)))
        ]
        self.inputs = [read for read, *_ in pairs]
        self.labels = [label for _, label, *_ in pairs]
        self.trust = [trust for *_, trust, _ in pairs]
        self.weights = [weight for *_, weight in pairs]
        content = [(e.source, e.targets, e.origins, e.weight) for e in self.train]
        self.fingerprint = hashlib.sha256(repr(content).encode()).hexdigest()

    def _classes(self) -> Vocabulary:
        names = sorted({name for example in self.train for name in example.targets})
        if not FEWEST <= len(names) <= MOST:
            raise DataError(
                f"{self.recipe.manifest} has {len(names):,} classes to train on; a classifier "
                f'needs {FEWEST} to {MOST:,}, each the one text of "targets"'
            )
        for example in self.dev:
            if unknown := {*example.targets} - {*names}:
                raise DataError(
                    f"{self.recipe.manifest}: {example.id} has the class {min(unknown)!r}, which "
                    "no training example has"
                )
        return Vocabulary("word", (*SPECIALS, *names))

    def build_model(self) -> EncoderDecoder:
        from sightline.tasks.classify.model import build_model

        return build_model(self.recipe, self.words, self.classes)

    def epoch(self, number: int) -> Minibatches:
        lengths = [each.size for each in self.inputs]
        return Minibatches(self.drawn(lengths, number, self.weights), self._batch)

    def _batch(self, members: Sequence[int], position: int) -> Batch:
        shown = some_names([i + 1 for i in members], 8)
        inputs, labels = [self.inputs[i] for i in members], [self.labels[i] for i in members]
        name = f"training texts {shown} (counting those in use)"
        return _batch(inputs, labels, name, [self.trust[i] for i in members])

    def dev_batches(self) -> Iterable[Batch]:
        read = [(example, self.reader.read(str(example.source))) for example in self.dev]
        some: list[tuple[Example, Inputs]] = [(e, parts[0]) for e, parts in read if parts]
        for members in batching.similar_length([inputs.size for _, inputs in some], 256, 0, 0):
            pairs = [some[i] for i in members]
            labels = [self.classes.ids[example.targets[0]] for example, _ in pairs]
            yield _batch([inputs for _, inputs in pairs], labels)


def _batch(
    inputs: list[Inputs], labels: list[int], name: str = "", trust: Sequence[float] = ()
) -> Batch:
    import torch

    from sightline.nn.model import Batch, pad

    weights = None if {*trust} <= {1.0} else torch.tensor(trust)
    together = Inputs.batch(inputs).map(torch.from_numpy)
    return Batch(pad([[BEGIN, label] for label in labels]), together, name, weights=weights)
