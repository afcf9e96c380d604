"""What a speech recogniser is trained on: a manifest's sounds and their targets; its network."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from sightline.data import batching
from sightline.data.augment import masked, stretched
from sightline.data.feature_cache import FeatureCache
from sightline.data.features import extract, folder_name
from sightline.data.manifest import Example
from sightline.data.vocabulary import BEGIN, END, VOCAB, Vocabulary
from sightline.errors import DataError
from sightline.media.audio import FEATURES, HOP, STATIC, Floats, features, filter_banks, read_sound
from sightline.metrics import score
from sightline.tasks.data import ManifestData, Minibatches, nats_per_token, some_names
from sightline.tasks.transcribe.evaluation import folded, metrics_of
from sightline.tasks.transcribe.parts import SoundReader, SpeechCodec
from sightline.tasks.transcribe.recipe import TranscribeRecipe
from sightline.types import Inputs, Stream

if TYPE_CHECKING:
    from sightline.nn.model import Batch, EncoderDecoder

KEY = {"sound": "filter banks", "rate": 16_000, "hop": HOP, "numbers": STATIC}
BATCH = 8000  # frames of dev at a time


@dataclass(frozen=True)
class Utterance:
    """An example's sound, by its id, and its target."""

    id: str
    target: list[int]
    frames: int
    weight: float = 1.0  # in epochs
    trust: float = 1.0  # in the loss


class SpeechData(ManifestData):
    """Trains a speech recogniser on the manifest that its recipe names."""

    medium = "audio"
    scored = ()  # `evaluate` knows
    recipe: TranscribeRecipe

    def __init__(self, recipe: TranscribeRecipe) -> None:
        super().__init__(recipe)
        self.metrics = ("loss", *metrics_of(recipe))
        kind = "word" if recipe.units == "phone" else recipe.units
        self.vocab = Vocabulary.build(kind, self.targets, recipe.size, recipe.min_count)
        self.codec = SpeechCodec(self.vocab, recipe.search)
        self.reader = CachedReader(self)
        self.files = {VOCAB: self.vocab.to_json()}

    def prepare(self) -> None:
        """Compute the filter banks that the cache lacks."""
        _ = self.utterances

    @cached_property
    def sounds(self) -> FeatureCache:
        every = [*self.train, *self.dev]
        items = {example.id: example.media for example in every if example.media is not None}
        folder = Path(self.recipe.cache) / folder_name("sound", KEY)
        longest = 10 * self.recipe.longest
        return extract(
            items,
            folder,
            KEY,
            STATIC,
            lambda path: filter_banks(read_sound(path, longest)),
            lambda arrays: arrays,
        )

    def static(self, name: str) -> Floats:
        """The filter banks (T, 41) of an example."""
        values: Floats = self.sounds.read([name]).values[0].astype(np.float32)
        return values

    @cached_property
    def utterances(self) -> list[Utterance]:
        every = [
            Utterance(
                example.id, self.vocab.encode(text), self.sounds.length(example.id),
                example.weight, trust,
            )
            for example in self.train
            for text, trust in self.trusted(example)
        ]  # fmt: skip
        together = math.prod(self.recipe.encoder.together)
        kept = [
            u
            for u in every
            if u.frames * HOP <= self.recipe.longest and len(u.target) <= u.frames / together
        ]
        if not kept:
            raise DataError(
                f"no utterance of {self.recipe.manifest} is at most longest="
                f"{self.recipe.longest:g} s and has a position for each token"
            )
        return kept

    @cached_property
    def fingerprint(self) -> str:
        stamps = {u.id: self.sounds.stamps[u.id] for u in self.utterances}
        parts = self.utterances, sorted(stamps.items())
        return "+".join(hashlib.sha256(repr(each).encode()).hexdigest() for each in parts)

    def build_model(self) -> EncoderDecoder:
        return build_model(self.recipe, self.vocab)

    def epoch(self, number: int) -> Minibatches:
        sizes, weights = [u.frames for u in self.utterances], [u.weight for u in self.utterances]

        def make(members: Sequence[int], position: int) -> Batch:
            rng = np.random.default_rng([self.recipe.training.seed, number, position])
            return self.batch([self.utterances[i] for i in members], rng)

        return Minibatches(self.drawn(sizes, number, weights), make)

    def batch(
        self, utterances: Sequence[Utterance], rng: np.random.Generator | None = None
    ) -> Batch:
        import torch

        from sightline.nn.model import Batch, pad

        augment = self.recipe.augment
        frames = []
        for utterance in utterances:
            static = self.static(utterance.id)
            if rng is None:
                frames.append(features(static))
            else:
                changed = features(stretched(static, augment, rng))
                frames.append(masked(changed, STATIC - 1, augment, rng))
        inputs = Inputs(len(frames), {"sound": Stream.ragged(frames)})
        targets = pad([[BEGIN, *u.target, END] for u in utterances])
        trust = [u.trust for u in utterances]
        weights = None if {*trust} == {1.0} else torch.tensor(trust)
        name = f"utterances {some_names([u.id for u in utterances], 5)}"
        return Batch(targets, inputs.map(torch.from_numpy), name, weights=weights)

    def dev_batches(self) -> Iterable[Batch]:
        utterances = [
            Utterance(e.id, self.vocab.encode(e.targets[0]), self.sounds.length(e.id))
            for e in self.dev
        ]
        for members in batching.token_budget([u.frames for u in utterances], BATCH, 0, 0):
            yield self.batch([utterances[i] for i in members])

    def source(self, example: Example) -> str:
        return example.id

    def evaluate(self, model: EncoderDecoder) -> dict[str, float]:
        texts = {id: folded(text, self.recipe) for id, text in self.written(model).items()}
        references = {e.id: [folded(text, self.recipe) for text in e.targets] for e in self.dev}
        scores = score(texts, references, metrics_of(self.recipe), intervals=False)["corpus"]
        return {"loss": nats_per_token(model, self.dev_batches()), **scores}


class CachedReader:
    """Reads an example by its id, from the cache."""

    takes: Literal["file", "text"] = (
        "text"  # so that sounds are sorted by length before they are searched
    )
    batch = 32

    def __init__(self, data: SpeechData) -> None:
        self.data = data
        recipe = data.recipe
        self.reader = SoundReader(math.prod(recipe.encoder.together), recipe.longest)

    def read(self, source: str, *, whole: bool = False) -> list[Inputs]:
        return [self.reader.inputs(features(self.data.static(source)))]


def build_model(recipe: TranscribeRecipe, vocab: Vocabulary) -> EncoderDecoder:
    from sightline.nn.ctc import WithCtc
    from sightline.nn.decoder import Decoder
    from sightline.nn.encoders.sound import SoundEncoder
    from sightline.nn.model import EncoderDecoder
    from sightline.nn.objectives import Likelihood

    classes = len(vocab) if recipe.loss.ctc else 0
    encoder = SoundEncoder(recipe.encoder, FEATURES, classes)
    decoder = Decoder(recipe.model, len(vocab), encoder.dimension)
    objective = (WithCtc if recipe.loss.ctc else Likelihood)(
        recipe.loss, recipe.training.scheduled_sampling
    )
    return EncoderDecoder(encoder, decoder, objective)


def saved_model(folder: Path, recipe: TranscribeRecipe) -> EncoderDecoder:
    """The model that a checkpoint's weights go into."""
    return build_model(recipe, Vocabulary.load(folder / VOCAB))
