"""Captions for pictures (Xu et al.): a convolutional encoder, attention, one sentence."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sightline import search
from sightline.config import (
    BatchingConfig,
    Count,
    DecoderConfig,
    ImageEncoderConfig,
    LossConfig,
    Positive,
    SearchConfig,
    TrainingConfig,
)
from sightline.data import batching
from sightline.data.manifest import Example, normalise_caption, read_manifest
from sightline.errors import DataError, UserError
from sightline.media.image import ImageSource, preprocess, read_image, visible_box
from sightline.steppers import Prefixed, Stepper
from sightline.types import Description, Hypothesis, Layout
from sightline.vocab import BEGIN, END, UNKNOWN, Vocabulary

if TYPE_CHECKING:
    from sightline.data.features import FeatureCache
    from sightline.nn.decoder import DecoderState
    from sightline.nn.image_encoders import ImageEncoder
    from sightline.nn.losses import Loss
    from sightline.nn.model import Batch, EncoderDecoder
    from sightline.training.self_critical import CiderReward

Picture = ImageSource | NDArray[np.uint8]  # a file, its bytes, or pixels (H, W, 3)

SEARCH_BATCH = 64  # pictures searched at a time
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
    # Samples per picture of self-critical training on CIDEr, with batches of `batching.size`
    # pictures; 0 trains on the likelihood of the captions
    self_critical: Count = 0
    model: DecoderConfig = field(default_factory=DecoderConfig)
    loss: LossConfig = field(default_factory=LossConfig)
    search: SearchConfig = field(default_factory=SearchConfig)
    training: TrainingConfig = field(default_factory=TrainingConfig)


class CaptionTask:
    """Trains a captioner on the manifest that its recipe names."""

    carries_state = False
    metrics = ("loss", "bleu_1", "bleu_2", "bleu_3", "bleu_4", "rouge_l", "cider")

    def __init__(self, recipe: CaptionRecipe) -> None:
        from sightline.data.features import extract_features
        from sightline.nn.image_encoders import build_encoder

        self.recipe = recipe
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
        self.files = {"vocab.json": self.vocab.to_json()}
        self.captions = [
            (number, [BEGIN, *self.vocab.encode(text), END])
            for number, text in captions
            if 0 < len(text.split()) <= recipe.longest
        ]
        self.lengths = [len(tokens) for _, tokens in self.captions]
        encoder = build_encoder(**vars(recipe.encoder))
        pictures = {e.id: e.media for e in (*self.train, *self.dev) if e.media is not None}
        self.cache = extract_features(pictures, encoder, recipe.features)
        content = repr((self.cache.key, self.captions)).encode()
        self.fingerprint = hashlib.sha256(content).hexdigest()

    def build_model(self) -> EncoderDecoder:
        return build_model(self.recipe, self.vocab, self.cache.key.dimension)

    def epoch(self, number: int) -> CaptionEpoch | PictureEpoch:
        if self.recipe.self_critical:
            return PictureEpoch(self, number)
        draw = getattr(batching, self.recipe.batching.kind)
        seed = self.recipe.training.seed
        batches = draw(self.lengths, self.recipe.batching.size, seed, number)
        return CaptionEpoch(self, batches)

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
    def reward(self) -> CiderReward:
        from sightline.training.self_critical import CiderReward

        return CiderReward(self.vocab, {e.id: e.targets for e in self.train})

    def evaluate(self, model: EncoderDecoder) -> dict[str, float]:
        """Likelihood of the dev captions, and the metrics of what the search writes."""
        from sightline.metrics import score

        captioner = Captioner(self.recipe, self.vocab, model)
        described = captioner.describe_cached(self.cache, [example.id for example in self.dev])
        hypotheses = {e.id: d.text for e, d in zip(self.dev, described, strict=True)}
        references = {e.id: e.targets for e in self.dev}
        scores = score(hypotheses, references, TRAINING_METRICS, intervals=False)["corpus"]
        return {"loss": self._dev_loss(model), **scores}

    def _dev_loss(self, model: EncoderDecoder) -> float:
        from sightline.nn.model import Batch, pad

        nats, tokens = 0.0, 0
        for at in range(0, len(self.dev), SEARCH_BATCH):
            some = [e for e in self.dev[at : at + SEARCH_BATCH] if len(e.targets) > 0]
            texts = [normalise_caption(e.targets[0]) for e in some]
            targets = pad([[BEGIN, *self.vocab.encode(text), END] for text in texts])
            loss, _ = model.loss(Batch(targets, features_of(self.cache, [e.id for e in some])))
            nats, tokens = nats + loss.nats, tokens + loss.tokens
        return nats / max(1, tokens)

    def showcase(self, model: EncoderDecoder) -> str:
        captioner = Captioner(self.recipe, self.vocab, model)
        shown = self.dev[:: max(1, len(self.dev) // 4)][:4]
        described = captioner.describe_cached(self.cache, [example.id for example in shown])
        return "\n".join(
            f"    {e.id}: {d.text}   ({e.targets[0]})"
            for e, d in zip(shown, described, strict=True)
        )


@dataclass(frozen=True)
class CaptionEpoch:
    """Captions in minibatches, each with its picture's features."""

    task: CaptionTask
    batches: batching.Batches

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, position: int) -> Batch:
        from sightline.nn.model import Batch, pad

        chosen = [self.task.captions[i] for i in self.batches[position]]
        names = [self.task.train[number].id for number, _ in chosen]
        shown = ", ".join(names[:4]) + (" …" if len(names) > 4 else "")
        targets = pad([tokens for _, tokens in chosen])
        return Batch(targets, features_of(self.task.cache, names), f"the captions of {shown}")


class PictureEpoch:
    """Pictures in minibatches, for training on what the model itself writes of them."""

    def __init__(self, task: CaptionTask, number: int) -> None:
        self.task = task
        ones = [1] * len(task.train)
        seed = task.recipe.training.seed
        self.batches = batching.same_length(ones, task.recipe.batching.size, seed, number)

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, position: int) -> Batch:
        from sightline.nn.model import Batch, pad

        items = tuple(self.task.train[i].id for i in self.batches[position])
        name = f"the pictures {', '.join(items[:4])}{' …' if len(items) > 4 else ''}"
        targets = pad([[BEGIN]] * len(items))  # nothing is given: the model writes
        return Batch(targets, features_of(self.task.cache, items), name, items)


class Captioner:
    """A trained captioner: pictures in, descriptions out."""

    def __init__(
        self,
        recipe: CaptionRecipe,
        vocab: Vocabulary,
        model: EncoderDecoder,
        encoder: ImageEncoder | None = None,
    ) -> None:
        self.recipe = recipe
        self.vocab = vocab
        self.model = model
        self._encoder = encoder

    @staticmethod
    def load(folder: Path, recipe: CaptionRecipe) -> Captioner:
        from sightline.nn.image_encoders import build_encoder, for_inference
        from sightline.training import checkpoint

        vocab = Vocabulary.load(folder / checkpoint.VOCAB)
        encoder = build_encoder(**vars(recipe.encoder))
        model = build_model(recipe, vocab, encoder.dimension)
        checkpoint.load_weights(model, folder)
        return Captioner(recipe, vocab, model.eval(), for_inference(encoder))

    def stepper(self) -> Stepper:
        from sightline.nn.stepper import TorchStepper

        return TorchStepper(self.model, banned=[UNKNOWN])

    def describe(
        self,
        pictures: Picture | Sequence[Picture],
        *,
        beam: int | None = None,
        n_best: int = 1,
        prefix: str = "",
    ) -> Any:
        """A Description of each picture (a file, bytes or pixels); of one, if one was given."""
        import torch

        many = isinstance(pictures, Sequence) and not isinstance(pictures, str | bytes)
        sources: Sequence[Any] = pictures if many else [pictures]  # type: ignore[assignment]
        encoder = self.encoder
        layout = Layout.grid(*encoder.grid())
        found: list[Description] = []
        for at in range(0, len(sources), SEARCH_BATCH):
            images = [preprocess(_pixels(s), encoder.spec) for s in sources[at : at + SEARCH_BATCH]]
            with torch.inference_mode():
                features = encoder(torch.from_numpy(np.stack(images)))
            found += self._search(features, layout, beam, n_best, prefix)
        return found if many else found[0]

    @property
    def encoder(self) -> ImageEncoder:
        """The picture encoder; a captioner in training has none, for it reads cached features."""
        if self._encoder is None:
            raise UserError("this captioner has no picture encoder; load it with sightline.load")
        return self._encoder

    def visible_box(self, picture: NDArray[np.uint8]) -> tuple[float, float, float, float]:
        """The part of a picture (H, W, 3) that the encoder sees, for figures."""
        height, width, _ = picture.shape
        return visible_box(height, width, self.encoder.spec)

    def describe_cached(
        self, cache: FeatureCache, ids: Sequence[str], beam: int | None = None
    ) -> list[Description]:
        """Descriptions of pictures whose features are in a cache."""
        found: list[Description] = []
        for at in range(0, len(ids), SEARCH_BATCH):
            features = features_of(cache, ids[at : at + SEARCH_BATCH])
            found += self._search(features, cache.layout, beam, 1, "")
        return found

    def describe_examples(
        self, examples: Sequence[Example], beam: int | None = None
    ) -> list[Description]:
        """Descriptions of a manifest's pictures, through the feature cache of the recipe."""
        from sightline.data.features import extract_features
        from sightline.nn.image_encoders import build_encoder

        pictures = {e.id: e.media for e in examples if e.media is not None}
        encoder = build_encoder(**vars(self.recipe.encoder))
        cache = extract_features(pictures, encoder, self.recipe.features)
        return self.describe_cached(cache, list(pictures), beam)

    def _search(
        self, features: Any, layout: Layout, beam: int | None, n_best: int, prefix: str
    ) -> list[Description]:
        settings = self.recipe.search
        words = self.vocab.encode(normalise_caption(prefix))
        if UNKNOWN in words:
            unknown = normalise_caption(prefix).split()[words.index(UNKNOWN)]
            raise UserError(f"the prefix has {unknown!r}, which is not in the model's vocabulary")
        size = beam or settings.beam
        options = search.BeamOptions(
            max_length=settings.max_length + len(words),
            size=max(size, n_best),
            min_length=settings.min_length,
            length_penalty=settings.length_penalty,
            n_best=n_best,
        )
        stepper = self.stepper()
        if words:
            stepper = Prefixed(stepper, [words] * len(features))
        device = next(self.model.parameters()).device
        found = search.finish(search.beam(stepper, features.to(device), options))
        return [self._describe(hypotheses, layout) for hypotheses in found]

    def _describe(self, hypotheses: list[Hypothesis], layout: Layout) -> Description:
        best, *others = (self._description(h, layout) for h in hypotheses)
        return Description(**vars(best) | {"alternatives": tuple(others)})

    def _description(self, hypothesis: Hypothesis, layout: Layout) -> Description:
        kept = len(hypothesis.tokens) - hypothesis.finished  # the end token is not a word
        words = hypothesis.tokens[:kept]
        looked = hypothesis.attention
        return Description(
            text=self.vocab.decode(words),
            tokens=tuple(self.vocab.tokens[token] for token in words),
            score=hypothesis.score,
            log_probs=tuple(float(value) for value in hypothesis.log_probs[:kept]),
            attention=None if looked is None else looked[:kept],
            layout=None if looked is None else layout,
        )


def _pixels(picture: Picture) -> NDArray[np.uint8]:
    return picture if isinstance(picture, np.ndarray) else read_image(picture)


def features_of(cache: FeatureCache, ids: Sequence[str]) -> Any:
    """The features of these pictures as a float tensor, (B, M, D)."""
    import torch

    return torch.from_numpy(cache.read(ids, np.float16)).float()


def build_model(recipe: CaptionRecipe, vocab: Vocabulary, dimension: int) -> EncoderDecoder:
    from sightline.nn.decoder import Decoder
    from sightline.nn.encoders import FeatureEncoder
    from sightline.nn.model import EncoderDecoder

    decoder = Decoder(recipe.model, len(vocab), dimension)
    return EncoderDecoder(FeatureEncoder(), decoder, recipe.loss)
