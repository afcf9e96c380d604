"""Translation (D §IV-A): a recurrent encoder of the source, attention, and the same decoder."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from sightline import config
from sightline.config import (
    BatchingConfig,
    DecoderConfig,
    LossConfig,
    Positive,
    RecurrentConfig,
    SearchConfig,
    TrainingConfig,
    VocabularyConfig,
)
from sightline.data import batching
from sightline.data.manifest import read_manifest
from sightline.data.sentences import Sentences
from sightline.data.vocabulary import BEGIN, END, VOCAB, Vocabulary
from sightline.errors import DataError
from sightline.tasks import fusion
from sightline.tasks.alignments import load_lexicon
from sightline.tasks.fusion import FusionConfig
from sightline.tasks.translator import SOURCE_VOCAB, Translator, never_written

if TYPE_CHECKING:
    import torch

    from sightline.nn.decoder import DecoderState
    from sightline.nn.losses import Loss
    from sightline.nn.model import Batch, EncoderDecoder


@dataclass(frozen=True)
class TranslateRecipe:
    """The keys of a translator's recipe."""

    manifest: str  # JSONL with `source` and `targets`, as `sightline prepare parallel` makes it
    task: Literal["translate"] = "translate"
    description: str = ""
    source: VocabularyConfig = field(default_factory=VocabularyConfig)
    target: VocabularyConfig = field(default_factory=VocabularyConfig)
    # Tokens: training pairs with more on either side are left out, longer sources are
    # translated in parts
    longest: Positive = 100
    batching: BatchingConfig = field(  # by the tokens of both sides
        default_factory=lambda: BatchingConfig(kind="token_budget", size=4000)
    )
    encoder: RecurrentConfig = field(default_factory=RecurrentConfig)
    model: DecoderConfig = field(default_factory=lambda: DecoderConfig(gate=False))
    loss: LossConfig = field(default_factory=LossConfig)
    search: SearchConfig = field(
        default_factory=lambda: SearchConfig(max_length=250, length_penalty=1.0)
    )
    # Two trained models made one; the vocabularies are the translator's
    fusion: FusionConfig | None = None
    training: TrainingConfig = field(default_factory=TrainingConfig)


class TranslateTask:
    """Trains a translator on the manifest that its recipe names."""

    carries_state = False
    metrics = ("loss", "sacrebleu", "chrf")

    def __init__(self, recipe: TranslateRecipe) -> None:
        self.recipe = recipe
        examples = read_manifest(recipe.manifest, medium="source")
        texts = [(str(e.source), t) for e in examples if e.split == "train" for t in e.targets]
        self.dev = [e for e in examples if e.split == "dev"]
        if not texts or not self.dev:
            empty = "dev" if texts else "train"
            raise DataError(f'{recipe.manifest} has no item of split "{empty}"; training needs one')
        self.trained: fusion.Trained | None = None
        if recipe.fusion is None:
            self.source = Sentences.learn(recipe.source, (source for source, _ in texts))
            self.target = Sentences.learn(recipe.target, (target for _, target in texts))
        else:
            self.trained = fusion.find(recipe.fusion)
            self.source, self.target = self.trained.source, self.trained.target
        self.files = {
            VOCAB: self.target.vocab.to_json(),
            SOURCE_VOCAB: self.source.vocab.to_json(),
        }
        if self.trained is not None:
            self.files[fusion.LANGUAGE_MODEL] = config.to_yaml(self.trained.language_model)
        self.pairs = [pair for pair in map(self._tokens, texts) if self._fits(*pair)]
        if not self.pairs:
            raise DataError(
                f"no training pair of {recipe.manifest} has at most longest={recipe.longest} "
                "tokens on both sides; raise `longest`"
            )
        self.lengths = [len(source) + len(target) for source, target in self.pairs]
        self.fingerprint = hashlib.sha256(repr(self.pairs).encode()).hexdigest()

    def _tokens(self, pair: tuple[str, str]) -> tuple[list[int], list[int]]:
        source, target = pair
        ids = self.source.ids(self.source.split(source))
        written = self.target.ids(self.target.split(target))
        return [*ids, END], [BEGIN, *written, END]

    def _fits(self, source: list[int], target: list[int]) -> bool:
        longest = self.recipe.longest
        return 1 < len(source) <= longest + 1 and 2 < len(target) <= longest + 2

    def build_model(self) -> EncoderDecoder:
        source, target = self.source.vocab, self.target.vocab
        if self.trained is None:
            return build_model(self.recipe, source, target)
        fused = build_model(self.recipe, source, target, self.trained.language_model.model)
        self.trained.put_into(fused, build_model(self.recipe, source, target))
        return fused

    def epoch(self, number: int) -> PairEpoch:
        draw = getattr(batching, self.recipe.batching.kind)
        seed = self.recipe.training.seed
        return PairEpoch(self.pairs, draw(self.lengths, self.recipe.batching.size, seed, number))

    def loss(
        self, model: EncoderDecoder, batch: Batch, state: DecoderState | None
    ) -> tuple[Loss, DecoderState | None]:
        return model.loss(batch)

    def evaluate(self, model: EncoderDecoder) -> dict[str, float]:
        """Likelihood of the dev translations, and the metrics of what the search writes."""
        from sightline.metrics import score

        translator = translator_of(self.recipe, self.source, self.target, model)
        found = translator.translate([str(e.source) for e in self.dev])
        hypotheses = {e.id: d.text for e, d in zip(self.dev, found, strict=True)}
        references = {e.id: e.targets for e in self.dev}
        scores = score(hypotheses, references, ("sacrebleu", "chrf"), intervals=False)["corpus"]
        return {"loss": self._dev_loss(model), **scores}

    def _dev_loss(self, model: EncoderDecoder) -> float:
        device = next(model.parameters()).device
        pairs = [self._tokens((str(e.source), e.targets[0])) for e in self.dev]
        pairs = [pair for pair in pairs if self._fits(*pair)]
        lengths = [len(source) + len(target) for source, target in pairs]
        epoch = PairEpoch(pairs, batching.token_budget(lengths, 8192, 0, 0))
        losses = [model.loss(epoch[i].to(device))[0] for i in range(len(epoch))]
        return sum(loss.nats for loss in losses) / max(1, sum(loss.tokens for loss in losses))

    def showcase(self, model: EncoderDecoder) -> str:
        translator = translator_of(self.recipe, self.source, self.target, model)
        shown = self.dev[:: max(1, len(self.dev) // 3)][:3]
        found = translator.translate([str(e.source) for e in shown])
        return "\n".join(
            f"    {e.source}\n      → {d.text}\n        ({e.targets[0]})"
            for e, d in zip(shown, found, strict=True)
        )


@dataclass(frozen=True)
class PairEpoch:
    """Pairs of sentences in minibatches."""

    pairs: list[tuple[list[int], list[int]]]
    batches: batching.Batches

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, position: int) -> Batch:
        from sightline.nn.model import Batch, pad

        members = self.batches[position]
        shown = ", ".join(str(i + 1) for i in members[:8]) + (" …" if len(members) > 8 else "")
        chosen = [self.pairs[i] for i in members]
        sources, targets = pad([s for s, _ in chosen]), pad([t for _, t in chosen])
        return Batch(targets, sources, f"training pairs {shown} (counting those in use)")


def build_model(
    recipe: TranslateRecipe,
    source: Vocabulary,
    target: Vocabulary,
    prior: DecoderConfig | None = None,  # of a language model that is fused in
) -> EncoderDecoder:
    from sightline.nn.decoder import Decoder
    from sightline.nn.deep_fusion import FusedDecoder
    from sightline.nn.encoders.text import TextEncoder
    from sightline.nn.model import EncoderDecoder

    encoder = TextEncoder(recipe.encoder, len(source))
    sizes = (len(target), encoder.dimension)
    if prior is None:
        decoder = Decoder(recipe.model, *sizes)
    else:
        decoder = FusedDecoder(recipe.model, *sizes, prior)
    return EncoderDecoder(encoder, decoder, recipe.loss)


def load_translator(folder: Path, recipe: TranslateRecipe, device: torch.device) -> Translator:
    """The translator that a checkpoint holds."""
    from sightline.training import checkpoint

    source = Sentences(Vocabulary.load(folder / SOURCE_VOCAB))
    target = Sentences(Vocabulary.load(folder / VOCAB))
    prior = None if recipe.fusion is None else fusion.language_model_in(folder).model
    model = build_model(recipe, source.vocab, target.vocab, prior)
    checkpoint.load_weights(model, folder)
    translator = translator_of(recipe, source, target, model.to(device).eval())
    return replace(translator, lexicon=load_lexicon(folder))


def translator_of(
    recipe: TranslateRecipe, source: Sentences, target: Sentences, model: EncoderDecoder
) -> Translator:
    from sightline.nn.stepper import TorchStepper

    stepper = TorchStepper(model, banned=never_written(recipe, target))
    return Translator(recipe, source, target, stepper)
