"""Captions for pictures (Xu et al.): a convolutional encoder, attention, one sentence."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

from sightline import zoo
from sightline.config import (
    BatchingConfig,
    Count,
    DecoderConfig,
    ImageEncoderConfig,
    LossConfig,
    Positive,
    SearchConfig,
    TrainingConfig,
    Weight,
)
from sightline.data import batching
from sightline.data.manifest import Example, normalise_caption, read_manifest
from sightline.data.vocabulary import BEGIN, END, UNKNOWN, VOCAB, Vocabulary
from sightline.errors import ConfigError, DataError
from sightline.media.image import preprocess, read_image
from sightline.tasks.captioner import SEARCH_BATCH, Captioner
from sightline.types import Description, Layout

if TYPE_CHECKING:
    import torch

    from sightline.nn.decoder import DecoderState
    from sightline.nn.encoders.image import ImageEncoder
    from sightline.nn.losses import Loss
    from sightline.nn.model import Batch, EncoderDecoder
    from sightline.training.self_critical import CaptionReward

TRAINING_METRICS = ("bleu", "rouge_l", "cider")  # METEOR is left to `sightline evaluate`


def _published(*values: float) -> dict[str, float]:
    return dict(zip([*(f"bleu_{n}_nobp" for n in (1, 2, 3, 4)), "meteor"], values, strict=True))


# Xu et al. table 1, in hundredths
PUBLISHED = {
    "flickr8k": {
        "Xu et al., soft": _published(67.0, 44.8, 29.9, 19.5, 18.93),
        "Xu et al., hard": _published(67.0, 45.7, 31.4, 21.3, 20.30),
    },
    "flickr30k": {
        "Xu et al., soft": _published(66.7, 43.4, 28.8, 19.1, 18.49),
        "Xu et al., hard": _published(66.9, 43.9, 29.6, 19.9, 18.46),
    },
    "coco": {
        "Xu et al., soft": _published(70.7, 49.2, 34.4, 24.3, 23.90),
        "Xu et al., hard": _published(71.8, 50.4, 35.7, 25.0, 23.04),
    },
}


@dataclass(frozen=True)
class RewardConfig:
    """What self-critical training raises: the sum of these metrics by their weights."""

    cider: Weight = 1.0
    meteor: Weight = 0.0


@dataclass(frozen=True)
class CaptionRecipe:
    """The keys of a captioner's recipe."""

    manifest: str  # JSONL, as `sightline prepare` makes it
    features: str = "features"  # where feature caches are kept
    task: Literal["caption"] = "caption"
    description: str = ""
    benchmark: Literal["flickr8k", "flickr30k", "coco"] | None = None  # shows the paper's numbers
    encoder: ImageEncoderConfig = field(default_factory=ImageEncoderConfig)
    vocabulary: Positive = 10_000
    min_count: Positive = 1
    longest: Positive = 40  # training captions of more words are left out
    batching: BatchingConfig = field(default_factory=BatchingConfig)
    # Minibatches of `batching.size` pictures with all their captions, which share their vectors
    captions_together: bool = False
    # Samples per picture of self-critical training, with batches of `batching.size` pictures; 0
    # trains on the likelihood of the captions
    self_critical: Count = 0
    reward: RewardConfig = field(default_factory=RewardConfig)
    model: DecoderConfig = field(default_factory=DecoderConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)


class CaptionTask:
    """Trains a captioner on the manifest that its recipe names."""

    carries_state = False
    metrics = ("loss", "bleu_1", "bleu_2", "bleu_3", "bleu_4", "rouge_l", "cider")

    def __init__(self, recipe: CaptionRecipe) -> None:
        self.recipe = recipe
        _check_encoder(recipe)
        examples = read_manifest(recipe.manifest, medium="image")
        self.train = [example for example in examples if example.split == "train"]
        self.dev = [example for example in examples if example.split == "dev"]
        if not self.train or not self.dev:
            empty = "train" if not self.train else "dev"
            raise DataError(f'{recipe.manifest} has no item of split "{empty}"; training needs one')
        captions = [
            (number, normalise_caption(text))
            for number, example in enumerate(self.train)
            for text in example.targets
        ]
        self.vocab = Vocabulary.build(
            "word", (text for _, text in captions), recipe.vocabulary, recipe.min_count
        )
        self.files = {VOCAB: self.vocab.to_json()}
        self.captions = [
            (number, [BEGIN, *self.vocab.encode(text), END])
            for number, text in captions
            if 0 < len(text.split()) <= recipe.longest
        ]
        self.examples = self._examples()
        self.lengths = [max(map(len, sequences)) for _, sequences in self.examples]
        self.pictures = open_pictures(recipe, self.train, self.dev)
        content = repr((self.pictures.key, self.examples)).encode()
        self.fingerprint = hashlib.sha256(content).hexdigest()

    def _examples(self) -> list[tuple[int, list[list[int]]]]:
        """What is drawn into minibatches: a picture's number and the sequences read with it."""
        if self.recipe.self_critical:  # nothing is given: the model writes
            return [(number, [[BEGIN]]) for number in range(len(self.train))]
        if not self.recipe.captions_together:
            return [(number, [tokens]) for number, tokens in self.captions]
        together: dict[int, list[list[int]]] = {}
        for number, tokens in self.captions:
            together.setdefault(number, []).append(tokens)
        return list(together.items())

    def build_model(self) -> EncoderDecoder:
        return build_model(self.recipe, self.vocab)

    def epoch(self, number: int) -> CaptionEpoch:
        draw = getattr(batching, self.recipe.batching.kind)
        seed = self.recipe.training.seed
        batches = draw(self.lengths, self.recipe.batching.size, seed, number)
        return CaptionEpoch(self, number, batches)

    def loss(
        self, model: EncoderDecoder, batch: Batch, state: DecoderState | None
    ) -> tuple[Loss, DecoderState | None]:
        if not self.recipe.self_critical:
            return model.loss(batch)
        from sightline.training.self_critical import self_critical_loss

        return self_critical_loss(
            model,
            batch,
            partial(self.reward, batch.items),
            samples=self.recipe.self_critical,
            max_length=self.recipe.search.max_length,
        ), None

    @cached_property
    def reward(self) -> CaptionReward:
        from sightline.training.self_critical import CaptionReward

        references = {e.id: e.targets for e in self.train}
        return CaptionReward(self.vocab, references, **vars(self.recipe.reward))

    def evaluate(self, model: EncoderDecoder) -> dict[str, float]:
        """Likelihood of the dev captions, and the metrics of what the search writes."""
        from sightline.metrics import score

        described = self._described(model, self.dev)
        hypotheses = {e.id: d.text for e, d in zip(self.dev, described, strict=True)}
        references = {e.id: e.targets for e in self.dev}
        scores = score(hypotheses, references, TRAINING_METRICS, intervals=False)["corpus"]
        return {"loss": self._dev_loss(model), **scores}

    def _described(self, model: EncoderDecoder, examples: Sequence[Example]) -> list[Description]:
        from sightline.nn.stepper import TorchStepper

        captioner = Captioner(self.recipe, self.vocab, TorchStepper(model, banned=[UNKNOWN]))
        names = [example.id for example in examples]
        return captioner.describe_vectors(self.pictures.read, names, self.pictures.layout)

    def _dev_loss(self, model: EncoderDecoder) -> float:
        import torch

        from sightline.nn.model import Batch, pad

        nats, tokens, device = 0.0, 0, next(model.parameters()).device
        for at in range(0, len(self.dev), SEARCH_BATCH):
            some = [e for e in self.dev[at : at + SEARCH_BATCH] if len(e.targets) > 0]
            texts = [normalise_caption(e.targets[0]) for e in some]
            targets = pad([[BEGIN, *self.vocab.encode(text), END] for text in texts])
            vectors = torch.from_numpy(self.pictures.read([e.id for e in some])).float()
            loss, _ = model.loss(Batch(targets, vectors).to(device))
            nats, tokens = nats + loss.nats, tokens + loss.tokens
        return nats / max(1, tokens)

    def showcase(self, model: EncoderDecoder) -> str:
        shown = self.dev[:: max(1, len(self.dev) // 4)][:4]
        return "\n".join(
            f"    {e.id}: {d.text}   ({e.targets[0]})"
            for e, d in zip(shown, self._described(model, shown), strict=True)
        )


@dataclass(frozen=True)
class CaptionEpoch:
    """Captions in minibatches, each with what the encoder is given of its picture."""

    task: CaptionTask
    number: int
    batches: batching.Batches

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, position: int) -> Batch:
        import torch

        from sightline.nn.model import Batch, pad

        chosen = [self.task.examples[i] for i in self.batches[position]]
        items = tuple(self.task.train[number].id for number, _ in chosen)
        most = max(len(sequences) for _, sequences in chosen)
        # rows come in equal groups: a picture with fewer captions has rows of padding
        rows = [[*sequences, *[[BEGIN]] * (most - len(sequences))] for _, sequences in chosen]
        targets = pad([sequence for group in rows for sequence in group])  # (B · K, T)
        mirrored = None
        if self.task.recipe.encoder.mirror:
            key = [self.task.recipe.training.seed, self.number, position]
            mirrored = np.random.default_rng(key).random(len(items)) < 0.5
        inputs = torch.from_numpy(self.task.pictures.read(items, mirrored)).float()
        name = f"the captions of {', '.join(items[:4])}{' …' if len(items) > 4 else ''}"
        return Batch(targets, inputs, name, items)


class Pictures(Protocol):
    """What the model's encoder is given of each picture, by id."""

    key: Any  # what it depends on, for the run's fingerprint
    layout: Layout  # of the positions that are attended to

    def read(
        self, ids: Sequence[str], mirrored: NDArray[np.bool_] | None = None
    ) -> NDArray[Any]: ...


class CachedPictures:
    """Vectors from the cache: the frozen encoder's own, or those below what learns."""

    def __init__(
        self, recipe: CaptionRecipe, pictures: Mapping[str, Path], mirrored: Mapping[str, Path]
    ) -> None:
        from sightline.data.features import FeatureKey, extract_features

        encoder = build_picture_encoder(recipe)
        self.layout = Layout.grid(*encoder.grid())
        if recipe.encoder.learning == "upper":
            encoder = encoder.below()
        self.caches = [extract_features(pictures, encoder, recipe.features)]
        self.key = FeatureKey.of(encoder)
        if recipe.encoder.mirror:
            encoder.spec = replace(encoder.spec, mirror=True)
            self.caches.append(extract_features(mirrored, encoder, recipe.features))

    def read(self, ids: Sequence[str], mirrored: NDArray[np.bool_] | None = None) -> NDArray[Any]:
        vectors: NDArray[Any] = self.caches[0].read(ids).values  # (B, M, D)
        if mirrored is not None and mirrored.any():
            chosen = [name for name, seen in zip(ids, mirrored, strict=True) if seen]
            vectors[mirrored] = self.caches[1].read(chosen).values
        return vectors


class PicturesFromFiles:
    """Pixels, read anew each time: the whole encoder learns."""

    def __init__(self, recipe: CaptionRecipe, pictures: Mapping[str, Path]) -> None:
        encoder = build_picture_encoder(recipe, published=False)  # only to know its input
        self.layout = Layout.grid(*encoder.grid())
        self.spec = encoder.spec
        self.files = dict(pictures)
        self.key = (encoder.name, encoder.stride, encoder.spec)

    def read(self, ids: Sequence[str], mirrored: NDArray[np.bool_] | None = None) -> NDArray[Any]:
        specs = [self.spec] * len(ids)
        if mirrored is not None:
            specs = [replace(self.spec, mirror=bool(seen)) for seen in mirrored]
        images = [read_image(self.files[name]) for name in ids]
        return np.stack([preprocess(i, spec) for i, spec in zip(images, specs, strict=True)])


def open_pictures(
    recipe: CaptionRecipe, train: Sequence[Example], dev: Sequence[Example]
) -> Pictures:
    mirrored = {e.id: e.media for e in train if e.media is not None}
    files = mirrored | {e.id: e.media for e in dev if e.media is not None}
    if recipe.encoder.learning in ("frozen", "upper"):
        return CachedPictures(recipe, files, mirrored)
    return PicturesFromFiles(recipe, files)


def _check_encoder(recipe: CaptionRecipe) -> None:
    """A frozen encoder does not come with `training.initial`: one that learnt has to be named."""
    from sightline.tasks import read_recipe

    initial, encoder = recipe.training.initial, recipe.encoder
    if initial is None or encoder.learning != "frozen" or Path(encoder.weights).is_dir():
        return
    before = read_recipe(zoo.find(initial) / "config.yaml")
    if isinstance(before, CaptionRecipe) and before.encoder.learning != "frozen":
        raise ConfigError(
            f"training.initial={initial} has an encoder that learnt, and a frozen one is not taken "
            f"from there; add encoder.weights={initial}, or an encoder.learning"
        )


def build_picture_encoder(recipe: CaptionRecipe, published: bool = True) -> ImageEncoder:
    """The recipe's encoder, with its published weights or with random ones."""
    from sightline.nn.encoders.image import build_encoder

    options = {k: v for k, v in vars(recipe.encoder).items() if k != "mirror"}
    if not published or recipe.encoder.learning == "scratch":
        options["weights"] = None
    return build_encoder(**options)


def build_model(recipe: CaptionRecipe, vocab: Vocabulary, published: bool = True) -> EncoderDecoder:
    """The model that is trained; a frozen picture encoder is not part of it."""
    from sightline.nn.decoder import Decoder
    from sightline.nn.encoders.text import FeatureEncoder, LearnedEncoder
    from sightline.nn.model import EncoderDecoder

    frozen = recipe.encoder.learning == "frozen"
    encoder = build_picture_encoder(recipe, published and not frozen)
    decoder = Decoder(recipe.model, len(vocab), encoder.dimension)
    return EncoderDecoder(
        FeatureEncoder() if frozen else LearnedEncoder(encoder), decoder, recipe.loss
    )


def load_captioner(folder: Path, recipe: CaptionRecipe, device: torch.device) -> Captioner:
    """The captioner that a checkpoint holds."""
    from sightline.nn.encoders.image import for_inference
    from sightline.nn.encoders.text import FeatureEncoder, LearnedEncoder
    from sightline.nn.model import EncoderDecoder
    from sightline.nn.stepper import TorchStepper
    from sightline.training import checkpoint

    vocab = Vocabulary.load(folder / VOCAB)
    model = build_model(recipe, vocab, published=False)
    checkpoint.load_weights(model, folder)
    if isinstance(model.encoder, LearnedEncoder):  # runs by itself from here on
        encoder = model.encoder.pictures
        model = EncoderDecoder(FeatureEncoder(), model.decoder, recipe.loss)
    else:
        encoder = build_picture_encoder(recipe)
    stepper = TorchStepper(model.to(device).eval(), banned=[UNKNOWN])
    return Captioner(recipe, vocab, stepper, for_inference(encoder.to(device)))
