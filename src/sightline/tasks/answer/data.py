"""What a question answerer is trained on: a manifest's stories; and its network."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

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
        self.held_out = [_question(example) for example in self.dev]
        self.vocab = vocabulary(self.questions)
        memory = recipe.model
        self.reader = StoryReader(self.vocab, memory.memory, memory.longest)
        self.codec = AnswerCodec(self.vocab, recipe)
        # each sentence becomes word ids once: the row of `self.ids` of its number
        every = (s for q in (*self.questions, *self.held_out) for s in q.sentences)
        self.numbers = {sentence: number for number, sentence in enumerate(dict.fromkeys(every))}
        self.ids = np.array([self.reader.ids(sentence) for sentence in self.numbers])  # (U, L)
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

        count, numbers = len(questions), self.numbers
        read = [(q.sentences[-1], *q.sentences[:-1][-self.reader.memory :]) for q in questions]
        lengths = np.array([len(sentences) for sentences in read])  # (B,), the question's row too
        moves = np.zeros((count, lengths.max()), np.int64)  # how far each row is moved
        total = lengths
        if noise is not None and self.recipe.model.noise:
            moves, total = self._noise(lengths, noise)
        owner = np.repeat(np.arange(count), lengths)
        row = np.arange(len(owner)) - np.repeat(lengths.cumsum() - lengths, lengths)
        facts = np.full((count, total.max(), self.ids.shape[1]), PAD)
        facts[owner, row + moves[owner, row]] = self.ids[[numbers[s] for one in read for s in one]]
        supports = np.full((count, self.codec.hops), -1)
        for b, question in enumerate(questions):
            first = max(0, question.facts - self.reader.memory)  # of those that are read
            for hop, fact in enumerate(question.supports[: self.codec.hops]):
                if fact >= first:
                    supports[b, hop] = 1 + fact - first + moves[b, 1 + fact - first]
        mask = np.arange(total.max()) < total[:, None]
        inputs = Inputs(count, {"facts": Stream(facts, mask), LOOKS: Stream(supports)})
        targets = [[BEGIN, *self.codec.ids(self.codec.split(q.answer))] for q in questions]
        return Batch(pad(targets), inputs.map(torch.from_numpy), name)

    def _noise(
        self, lengths: NDArray[np.int64], rng: np.random.Generator
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Empty rows by chance: how many come before each row (B, P), and the lengths with them."""
        room = self.reader.memory - (lengths - 1)
        counts = np.minimum(room, rng.binomial(lengths - 1, self.recipe.model.noise))
        owner = np.repeat(np.arange(len(lengths)), counts)
        before = np.zeros((len(lengths), lengths.max() + 1), np.int64)
        np.add.at(before, (owner, rng.integers(1, lengths[owner] + 1)), 1)
        return before.cumsum(1)[:, :-1], lengths + counts

    def dev_batches(self) -> Iterable[Batch]:
        return self._batches(self.held_out)

    def _batches(self, questions: list[Question]) -> Iterable[Batch]:
        # answers that were never seen have no token, and no likelihood
        known = sorted((q for q in questions if q.answer in self.vocab.ids), key=lambda q: q.facts)
        for at in range(0, len(known), 128):
            yield self.batch(known[at : at + 128])

    def evaluate(self, model: EncoderDecoder) -> dict[str, float]:
        from sightline.tasks.data import nats_per_token

        # by which restarts are chosen
        every = max(1, len(self.questions) // 2000)
        fit = nats_per_token(model, self._batches(self.questions[::every]))
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
    sentences = {sentence for question in questions for sentence in question.sentences}
    words = {word for sentence in sentences for word in words_of(sentence)}
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
