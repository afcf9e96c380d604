"""What a captioner is trained on: a manifest's pictures, cached or read, and their captions."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from sightline.data.imagenet import imagenet_words
from sightline.data.manifest import Example, Medium, normalise_caption
from sightline.data.vocabulary import BEGIN, END, VOCAB, Vocabulary
from sightline.errors import ConfigError
from sightline.media.image import read_image
from sightline.media.preprocess import preprocess
from sightline.runtime.model_folder import find_model
from sightline.tasks.caption.parts import CaptionCodec
from sightline.tasks.caption.recipe import INITIAL, CaptionRecipe
from sightline.tasks.data import ManifestData, Minibatches, some_names
from sightline.types import Inputs, Layout, Stream

if TYPE_CHECKING:
    from sightline.nn.encoders.image import ImageEncoder
    from sightline.nn.model import Batch, EncoderDecoder
    from sightline.nn.objectives import Likelihood

BATCH = 16  # dev pictures at a time


class CaptionData(ManifestData):
    """Trains a captioner on the manifest that its recipe names."""

    medium: ClassVar[Medium] = "image"
    scored = ("bleu", "bleu_nobp", "rouge_l", "cider")  # METEOR is left to `sightline evaluate`
    metrics = ("loss", "bleu_1", "bleu_2", "bleu_3", "bleu_4", "bleu_4_nobp", "rouge_l", "cider")

    def __init__(self, recipe: CaptionRecipe) -> None:
        _check_encoder(recipe)
        super().__init__(recipe)
        captions = [
            (number, normalise_caption(text), weight)
            for number, example in enumerate(self.train)
            for text, weight in self.trusted(example)[: recipe.references or None]
        ]
        self.vocab = self._vocabulary(list(map(normalise_caption, self.targets)))
        if recipe.encoder.tags:
            self.vocab = self.vocab.extended(imagenet_words())
        self.reader, self.codec = ReaderById(self), CaptionCodec(self.vocab, recipe.search)
        self.files = {VOCAB: self.vocab.to_json()}
        kept = [each for each in captions if 0 < len(each[1].split()) <= recipe.longest]
        self.captions = [
            (number, [BEGIN, *self.vocab.encode(text), END]) for number, text, _ in kept
        ]
        self.trust = [weight for _, _, weight in kept]  # of each caption
        self.examples = self._examples()

    def _vocabulary(self, captions: list[str]) -> Vocabulary:
        """The captions' words, after those that the first model knows if these are kept."""
        recipe = self.recipe
        found = Vocabulary.build("word", captions, recipe.vocabulary, recipe.min_count)
        if not recipe.keep_words:
            return found
        if recipe.training.initial is None:
            raise ConfigError("keep_words keeps those of training.initial, which is not given")
        known = Vocabulary.load(find_model(recipe.training.initial) / VOCAB)
        self.grown = ("decoder.embed.", "decoder.output.", "encoder.tagger.words.")
        return known.extended(found.tokens)

    def _examples(self) -> list[tuple[int, list[int]]]:
        """What is drawn into minibatches: a picture's number and those of its captions."""
        if self.recipe.self_critical:  # no captions are read: the model writes its own
            return [(number, []) for number in range(len(self.train))]
        if not self.recipe.captions_together:
            return [(picture, [number]) for number, (picture, _) in enumerate(self.captions)]
        together: dict[int, list[int]] = {}
        for number, (picture, _) in enumerate(self.captions):
            together.setdefault(picture, []).append(number)
        return list(together.items())

    def _sequences(self, numbers: Sequence[int]) -> list[list[int]]:
        return [self.captions[number][1] for number in numbers] or [[BEGIN]]

    def prepare(self) -> None:
        """Compute what the feature caches lack."""
        _ = self.pictures

    @cached_property
    def network(self) -> ImageEncoder:
        from sightline.tasks.caption.model import build_network

        return build_network(self.recipe)

    @cached_property
    def pictures(self) -> CachedPictures | PictureFiles:
        mirrored = {e.id: e.media for e in self.train if e.media is not None}
        files = mirrored | {e.id: e.media for e in self.dev if e.media is not None}
        if self.recipe.encoder.learning in ("frozen", "upper"):
            return CachedPictures(self.recipe, self.network, files, mirrored)
        return PictureFiles(self.network, files)

    @cached_property
    def fingerprint(self) -> str:
        """Of what is learned, and after a plus sign, which early runs lack, of the files."""
        examples = [(picture, self._sequences(numbers)) for picture, numbers in self.examples]
        learned: tuple[Any, ...] = (self.pictures.key, examples)
        weights = [*self.trust, *(example.weight for example in self.train)]
        learned += () if {*weights} == {1.0} else (weights,)  # as it was before there were any
        contents = learned, sorted(self.pictures.stamps.items())
        return "+".join(hashlib.sha256(repr(each).encode()).hexdigest() for each in contents)

    def build_model(self) -> EncoderDecoder:
        from sightline.tasks.caption.model import build_model, classifier, teach

        recipe: CaptionRecipe = self.recipe
        objective: Likelihood | None = None
        if (recipe.loss.tags or recipe.loss.rename) and recipe.encoder.tags:
            from sightline.nn.objectives import WithTags

            learns = recipe.loss.tags and recipe.encoder.learning != "frozen"
            keep = classifier(recipe) if learns else None
            objective = WithTags(recipe.loss, recipe.training.scheduled_sampling, keep)
        if recipe.self_critical:
            objective = self.self_critical()
        model = build_model(recipe, self.vocab, self.network, objective)
        tagger = getattr(model.encoder, "tagger", None)
        if tagger is not None and recipe.encoder.weights != INITIAL:
            teach(tagger, recipe)
        return model

    def self_critical(self) -> Likelihood:
        """The objective that raises the metrics of the captions that the model writes."""
        from sightline.training.self_critical import CaptionReward, SelfCritical

        recipe = self.recipe
        references: dict[str, dict[str, list[str]]] = {}
        for e in self.train:
            of_set = references.setdefault(e.data_set, {})
            of_set[e.id] = [text for text, _ in self.trusted(e)]
        weights = vars(recipe.reward).copy()
        temperature = weights.pop("temperature")
        reward = CaptionReward(self.vocab, [*references.values()], **weights)
        length = recipe.search.max_length
        return SelfCritical(reward, recipe.self_critical, length, recipe.loss, temperature)

    def epoch(self, number: int) -> Minibatches:
        sequences = [self._sequences(numbers) for _, numbers in self.examples]
        lengths = [max(map(len, some)) for some in sequences]
        weights = [self.train[picture].weight for picture, _ in self.examples]

        def make(members: Sequence[int], position: int) -> Batch:
            mirrored = None
            if self.recipe.encoder.mirror:
                key = [self.recipe.training.seed, number, position]
                mirrored = np.random.default_rng(key).random(len(members)) < 0.5
            items = tuple(self.train[self.examples[i][0]].id for i in members)
            most = max(len(sequences[i]) for i in members)
            # rows come in equal groups: a picture with fewer captions has rows of padding
            rows = [[*sequences[i], *[[BEGIN]] * (most - len(sequences[i]))] for i in members]
            targets = [sequence for group in rows for sequence in group]  # (B · K, T)
            trust = [[self.trust[n] for n in self.examples[i][1]] for i in members]
            counts = [w for group in trust for w in [*group, *[1.0] * (most - len(group))]]
            name = f"the captions of {some_names(items, 4)}"
            return batch_of(targets, self.pictures.inputs(items, mirrored), name, items, counts)

        return Minibatches(self.drawn(lengths, number, weights), make)

    def source(self, example: Example) -> str:
        return example.id

    def dev_batches(self) -> Iterable[Batch]:
        for at in range(0, len(self.dev), BATCH):
            some = self.dev[at : at + BATCH]
            texts = [normalise_caption(e.targets[0]) for e in some]
            targets = [[BEGIN, *self.vocab.encode(text), END] for text in texts]
            yield batch_of(targets, self.pictures.inputs([e.id for e in some]))


def batch_of(
    targets: list[list[int]],
    inputs: Inputs,
    name: str = "",
    items: tuple[str, ...] = (),
    weights: Sequence[float] = (),
) -> Batch:
    import torch

    from sightline.nn.model import Batch, pad

    counts = None if {*weights} <= {1.0} else torch.tensor(weights)
    return Batch(pad(targets), inputs.map(torch.from_numpy), name, items, weights=counts)


@dataclass(frozen=True)
class ReaderById:
    """A reader for evaluation in training: a source is a picture's id."""

    data: CaptionData
    takes: Literal["file", "text"] = "file"
    batch: int = BATCH

    def read(self, source: Any, *, whole: bool = False) -> list[Inputs]:
        return [self.data.pictures.inputs([source])]


class CachedPictures:
    """Vectors from the cache: the frozen network's own, or those below the part that learns."""

    def __init__(
        self,
        recipe: CaptionRecipe,
        network: ImageEncoder,
        pictures: Mapping[str, Path],
        mirrored: Mapping[str, Path],
    ) -> None:
        from sightline.data.features import FeatureKey, extract_features

        self.layout = Layout.grid(*network.grid())
        self.stream = "vectors"
        if recipe.encoder.learning == "upper":
            network, self.stream = network.below(), "lower"
        self.caches = [extract_features(pictures, network, recipe.features)]
        self.stamps = {name: self.caches[0].stamps[name] for name in pictures}
        self.key = FeatureKey.of(network)
        if recipe.encoder.mirror:
            spec = network.spec
            network.spec = replace(spec, mirror=True)
            self.caches.append(extract_features(mirrored, network, recipe.features))
            network.spec = spec

    def inputs(self, ids: Sequence[str], mirrored: NDArray[np.bool_] | None = None) -> Inputs:
        stream = self.caches[0].read(ids)  # (B, M, D)
        if mirrored is not None and mirrored.any():
            chosen = [name for name, seen in zip(ids, mirrored, strict=True) if seen]
            stream.values[mirrored] = self.caches[1].read(chosen).values
        return Inputs(len(ids), {self.stream: stream}, (self.layout,) * len(ids))


class PictureFiles:
    """Pixels, read each time: the whole encoder learns."""

    def __init__(self, network: ImageEncoder, pictures: Mapping[str, Path]) -> None:
        from sightline.data.features import file_stamp

        self.layout = Layout.grid(*network.grid())
        self.spec = network.spec
        self.files = dict(pictures)
        self.key = (network.name, network.stride, network.spec)
        self.stamps = {name: file_stamp(path) for name, path in pictures.items()}

    def inputs(self, ids: Sequence[str], mirrored: NDArray[np.bool_] | None = None) -> Inputs:
        specs = [self.spec] * len(ids)
        if mirrored is not None:
            specs = [replace(self.spec, mirror=bool(seen)) for seen in mirrored]
        images = [read_image(self.files[name]) for name in ids]
        pixels = [preprocess(i, spec) for i, spec in zip(images, specs, strict=True)]
        return Inputs(len(ids), {"pictures": Stream(np.stack(pixels))}, (self.layout,) * len(ids))


def _check_encoder(recipe: CaptionRecipe) -> None:
    """A frozen encoder does not come with `training.initial`: one that learned has to be named."""
    from sightline.tasks import read_recipe

    initial, encoder = recipe.training.initial, recipe.encoder
    if encoder.weights == INITIAL and initial is None:
        raise ConfigError("encoder.weights=initial needs training.initial, whose encoder it is")
    if encoder.weights == INITIAL or encoder.learning != "frozen" or initial is None:
        return
    if Path(encoder.weights).is_dir():
        return
    before = read_recipe(find_model(initial) / "config.yaml")
    if isinstance(before, CaptionRecipe) and before.encoder.learning != "frozen":
        raise ConfigError(
            f"training.initial={initial} has an encoder that learned, and a frozen one is not "
            "taken from there; add encoder.weights=initial, or an encoder.learning"
        )
