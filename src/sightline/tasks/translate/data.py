"""What a translator is trained on: a manifest's pairs of sentences."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from sightline import config
from sightline.data import batching
from sightline.data.manifest import read_manifest
from sightline.data.sentences import Sentences
from sightline.data.vocabulary import BEGIN, END, VOCAB
from sightline.errors import DataError
from sightline.runtime.describer import Describer
from sightline.tasks.translate import fusion
from sightline.tasks.translate.parts import SOURCE_VOCAB, SentenceReader, TranslationCodec
from sightline.tasks.translate.recipe import TranslateRecipe
from sightline.types import Inputs, Stream

if TYPE_CHECKING:
    from sightline.nn.model import Batch, EncoderDecoder


class TranslationData:
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

    def prepare(self) -> None:
        """Nothing: sentences are read as they are."""

    def build_model(self) -> EncoderDecoder:
        from sightline.tasks.translate.model import build_model

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

    def evaluate(self, model: EncoderDecoder) -> dict[str, float]:
        """The dev translations' likelihood, and the metrics of what the search writes."""
        from sightline.metrics import score

        described = self._describer(model).describe([str(e.source) for e in self.dev])
        texts = {e.id: d.text for e, d in zip(self.dev, described, strict=True)}
        references = {e.id: e.targets for e in self.dev}
        scores = score(texts, references, ("sacrebleu", "chrf"), intervals=False)["corpus"]
        return {"loss": self._dev_loss(model), **scores}

    def _describer(self, model: EncoderDecoder) -> Describer:
        from sightline.tasks import spec_of
        from sightline.training.load import describer_of

        recipe, same_unit = self.recipe, self.source.vocab.kind == self.target.vocab.kind
        reader = SentenceReader(self.source, recipe.longest)
        codec = TranslationCodec(self.target, recipe, same_unit, {})
        return describer_of(spec_of(recipe.task), recipe, reader, codec, model)

    def _dev_loss(self, model: EncoderDecoder) -> float:
        device = next(model.parameters()).device
        pairs = [self._tokens((str(e.source), e.targets[0])) for e in self.dev]
        pairs = [pair for pair in pairs if self._fits(*pair)]
        lengths = [len(source) + len(target) for source, target in pairs]
        epoch = PairEpoch(pairs, batching.token_budget(lengths, 8192, 0, 0))
        losses = [model.loss(epoch[i].to(device))[0] for i in range(len(epoch))]
        return sum(loss.nats for loss in losses) / max(1, sum(loss.tokens for loss in losses))

    def samples(self, model: EncoderDecoder) -> str:
        shown = self.dev[:: max(1, len(self.dev) // 3)][:3]
        described = self._describer(model).describe([str(e.source) for e in shown])
        return "\n".join(
            f"    {e.source}\n      → {d.text}\n        ({e.targets[0]})"
            for e, d in zip(shown, described, strict=True)
        )


@dataclass(frozen=True)
class PairEpoch:
    """Pairs of sentences in minibatches."""

    pairs: list[tuple[list[int], list[int]]]
    batches: batching.Batches

    def __len__(self) -> int:
        return len(self.batches)

    def __getitem__(self, position: int) -> Batch:
        import torch

        from sightline.nn.model import Batch, pad

        members = self.batches[position]
        shown = ", ".join(str(i + 1) for i in members[:8]) + (" …" if len(members) > 8 else "")
        chosen = [self.pairs[i] for i in members]
        sources = Stream.ragged([np.array(source) for source, _ in chosen])
        inputs = Inputs(len(chosen), {"tokens": sources}).map(torch.from_numpy)
        name = f"training pairs {shown} (counting those in use)"
        return Batch(pad([target for _, target in chosen]), inputs, name)
