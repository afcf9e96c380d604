"""What a question answerer is trained on: a manifest's stories; and its network."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sightline.data.manifest import Example, read_data
from sightline.data.vocabulary import BEGIN, PAD, SPECIALS, VOCAB, Vocabulary
from sightline.errors import DataError
from sightline.tasks.answer.parts import AnswerCodec, StoryReader, sentences_of, words_of
from sightline.tasks.answer.recipe import AnswerRecipe
from sightline.tasks.data import ManifestData, Minibatches, some_names
from sightline.types import Inputs, Stream

if TYPE_CHECKING:
    from sightline.nn.model import Batch, EncoderDecoder


@dataclass(frozen=True)
class Question:
    """Facts and the question, the answer, and which facts support it (from 0)."""

    sentences: tuple[str, ...]
    answer: str
    supports: tuple[int, ...] = ()

    @property
    def facts(self) -> int:
        return len(self.sentences) - 1


class StoryData(ManifestData):
    """Trains a memory network on the manifest that its recipe names."""

    reader: StoryReader
    medium = "source"
    scored = ("accuracy",)
    metrics = ("loss", "accuracy", "training_loss")

    def __init__(self, recipe: AnswerRecipe) -> None:
        self.recipe = recipe
        examples = read_data(recipe.manifest, medium="source")
        self.train = [each for each in examples if each.split == "train"]
        self.dev = [each for each in examples if each.split == "dev"]
        if not self.dev:  # as Sukhbaatar et al., by chance
            kept = np.random.default_rng(0).random(len(self.train)) >= recipe.held_out
            self.dev = [e for e, keep in zip(self.train, kept, strict=True) if not keep]
            self.train = [e for e, keep in zip(self.train, kept, strict=True) if keep]
        if not self.train or not self.dev:
            raise DataError(f"{recipe.manifest} has too few questions to train on and to hold out")
        self.questions = [_question(example) for example in self.train]
        self.vocab = vocabulary(self.questions)
        memory = recipe.model
        self.reader = StoryReader(self.vocab, memory.memory, memory.longest)
        self.codec = AnswerCodec(self.vocab, recipe)
        self.files = {VOCAB: self.vocab.to_json()}
        self.fingerprint = hashlib.sha256(repr(self.questions).encode()).hexdigest()

    def build_model(self) -> EncoderDecoder:
        return build_model(self.recipe, self.vocab)

    def epoch(self, number: int) -> Minibatches:
        drawn = self.drawn([min(q.facts, self.recipe.model.memory) for q in self.questions], number)

        def make(members: Sequence[int], position: int) -> Batch:
            rng = np.random.default_rng([self.recipe.training.seed, number, position])
            shown = some_names([i + 1 for i in members], 8)
            return self.batch([self.questions[i] for i in members], f"questions {shown}", rng)

        return Minibatches(drawn, make)

    def batch(self, questions: Sequence[Question], name: str = "", noise: Any = None) -> Batch:
        """With `noise`, a random generator, empty facts are put between the others."""
        import torch

        from sightline.nn.model import Batch, pad
        from sightline.nn.objectives import LOOKS

        inputs, supports = [], []
        for question in questions:
            story = self.reader.inputs(question.sentences)
            first = max(0, question.facts - self.reader.memory)  # of those that are read
            places = [1 + fact - first if fact >= first else -1 for fact in question.supports]
            if noise is not None and self.recipe.model.noise:
                story, places = self._noisy(story, places, noise)
            inputs.append(story)
            supports.append((places + [-1] * self.codec.hops)[: self.codec.hops])
        batch = Inputs.batch(inputs)
        named = {**batch.streams, LOOKS: Stream(np.array(supports))}
        batch = replace(batch, streams=named).map(torch.from_numpy)
        targets = [[BEGIN, *self.codec.ids(self.codec.split(q.answer))] for q in questions]
        return Batch(pad(targets), batch, name)

    def _noisy(
        self, story: Inputs, places: list[int], rng: np.random.Generator
    ) -> tuple[Inputs, list[int]]:
        rows = story["facts"].values[0]  # (1 + M, L)
        room = self.reader.memory - (len(rows) - 1)
        count = min(room, int(rng.binomial(len(rows) - 1, self.recipe.model.noise)))
        at = np.sort(rng.integers(1, len(rows) + 1, size=count))  # before these rows
        noisy = np.insert(rows, at, PAD, axis=0)
        moved = [place + int((at <= place).sum()) if place > 0 else -1 for place in places]
        return replace(story, streams={"facts": Stream.ragged([noisy])}), moved

    def dev_batches(self) -> Iterable[Batch]:
        return self._batches([_question(example) for example in self.dev])

    def _batches(self, questions: list[Question]) -> Iterable[Batch]:
        # answers that were never seen have no token, and no likelihood
        known = sorted((q for q in questions if q.answer in self.vocab.ids), key=lambda q: q.facts)
        for at in range(0, len(known), 128):
            yield self.batch(known[at : at + 128])

    def evaluate(self, model: EncoderDecoder) -> dict[str, float]:
        from sightline.tasks.data import nats_per_token

        # by which restarts are chosen
        fit = nats_per_token(model, self._batches(self.questions[:2000]))
        return {**super().evaluate(model), "training_loss": fit}

    def samples(self, model: EncoderDecoder) -> Sequence[str]:
        return ()


def _question(example: Example) -> Question:
    sentences = tuple(sentences_of(str(example.source)))
    if not sentences:
        raise DataError(f"item {example.id!r} has no question")
    supports = example.meta.get("supports", [])
    facts = range(len(sentences) - 1)
    if not isinstance(supports, list) or any(fact not in facts for fact in supports):
        raise DataError(
            f"item {example.id!r}: meta.supports must list facts of the story, counted from 0"
        )
    answer = example.targets[0].strip().lower() if example.targets else ""
    return Question(sentences, answer, tuple(supports))


def vocabulary(questions: Sequence[Question]) -> Vocabulary:
    """Words and answers alike; an answer is one token, whatever is in it."""
    words = {word for q in questions for sentence in q.sentences for word in words_of(sentence)}
    answers = {question.answer for question in questions}
    return Vocabulary("word", (*SPECIALS, *sorted((words | answers) - {*SPECIALS})))


def build_model(recipe: AnswerRecipe, vocab: Vocabulary) -> EncoderDecoder:
    from sightline.nn.memory import Answering, FactEncoder, MemoryDecoder
    from sightline.nn.model import EncoderDecoder

    encoder = FactEncoder(recipe.model, len(vocab))
    decoder = MemoryDecoder(recipe.model, encoder, len(vocab))
    return EncoderDecoder(encoder, decoder, Answering(recipe.loss, recipe.model))


def saved_model(folder: Path, recipe: AnswerRecipe) -> EncoderDecoder:
    """The model that a checkpoint's weights go into."""
    return build_model(recipe, Vocabulary.load(folder / VOCAB))
