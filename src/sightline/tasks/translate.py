"""Translation (D §IV-A): a recurrent encoder of the source, attention, and the same decoder."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from sightline import search
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
from sightline.errors import DataError, UserError
from sightline.steppers import Ensemble, Fusion, Stepper
from sightline.tasks.alignments import Lexicon, WordAlignment, load_lexicon, word_alignment
from sightline.tasks.parts import joined, similar
from sightline.tasks.sentences import Sentences
from sightline.tasks.shortlist import candidates, shorten
from sightline.types import Description, Hypothesis, Layout
from sightline.vocab import BEGIN, END, SPECIALS, UNKNOWN, Vocabulary

if TYPE_CHECKING:
    from sightline.nn.decoder import DecoderState
    from sightline.nn.losses import Loss
    from sightline.nn.model import Batch, EncoderDecoder
    from sightline.tasks.language_model import LanguageModel

SOURCE_VOCAB = "source_vocab.json"
LONGEST_FORCED = 2000  # tokens of either side of a pair that is to be aligned


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
        self.source = Sentences.learn(recipe.source, (source for source, _ in texts))
        self.target = Sentences.learn(recipe.target, (target for _, target in texts))
        self.files = {
            "vocab.json": self.target.vocab.to_json(),
            SOURCE_VOCAB: self.source.vocab.to_json(),
        }
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
        return build_model(self.recipe, self.source.vocab, self.target.vocab)

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

        translator = Translator.of(self.recipe, self.source, self.target, model)
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
        translator = Translator.of(self.recipe, self.source, self.target, model)
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


@dataclass(frozen=True)
class Prior:
    """A language model to be fused in."""

    stepper: Stepper
    weight: float
    ids: NDArray[np.int64]  # (V,): the language model's id of each target token


@dataclass(frozen=True)
class Translator:
    """A trained translator, or several as one: sentences in, descriptions out."""

    recipe: TranslateRecipe
    source: Sentences
    target: Sentences
    stepper: Stepper
    device: Any = "cpu"  # where the stepper's models are
    lexicon: Lexicon = field(default_factory=dict)  # for unknown words and shortlists
    prior: Prior | None = None

    @staticmethod
    def load(folder: Path, recipe: TranslateRecipe) -> Translator:
        from sightline.training import checkpoint

        source = Sentences(Vocabulary.load(folder / SOURCE_VOCAB))
        target = Sentences(Vocabulary.load(folder / checkpoint.VOCAB))
        model = build_model(recipe, source.vocab, target.vocab)
        checkpoint.load_weights(model, folder)
        translator = Translator.of(recipe, source, target, model.eval())
        return replace(translator, lexicon=load_lexicon(folder))

    @staticmethod
    def of(
        recipe: TranslateRecipe,
        source: Sentences,
        target: Sentences,
        model: EncoderDecoder,
    ) -> Translator:
        from sightline.nn.stepper import TorchStepper

        # an unknown word can be replaced only where it is known from which word it came
        replaceable = target.vocab.kind == "word" and model.decoder.attention is not None
        stepper = TorchStepper(model, banned=[] if replaceable else [UNKNOWN])
        return Translator(recipe, source, target, stepper, stepper.device)

    def together(self, *others: Translator) -> Translator:
        """An ensemble of this translator and others with the same vocabularies."""
        for number, other in enumerate(others, start=2):
            for side in ("source", "target"):
                if getattr(self, side).vocab != getattr(other, side).vocab:
                    raise UserError(
                        f"model {number} has another {side} vocabulary than the first; an ensemble "
                        "needs models that were trained on the same data with the same vocabularies"
                    )
        steppers = [self.stepper, *(other.stepper for other in others)]
        return replace(self, stepper=Ensemble(steppers))

    def fused(self, language_model: LanguageModel, weight: float) -> Translator:
        """Shallow fusion with a language model of sentences in this target language."""
        if language_model.recipe.sequence != "line":
            raise UserError("the language model was trained on a stream; train it sequence=line")
        known = language_model.vocab.ids
        tokens = self.target.vocab.tokens
        ids = [known.get(token, UNKNOWN) for token in tokens]
        shared = sum(token in known for token in tokens[len(SPECIALS) :])
        if shared < 0.5 * (len(tokens) - len(SPECIALS)):
            raise UserError(
                f"the language model knows {shared} of the translator's {len(tokens)} tokens; "
                "train one with the same unit on text cut the same way"
            )
        return replace(self, prior=Prior(language_model.stepper(banned=()), weight, np.array(ids)))

    def _fused(self, stepper: Stepper, tokens: list[int] | None = None) -> Stepper:
        """With the language model, if there is one; `tokens` are those of a shortlist."""
        if self.prior is None:
            return stepper
        ids = self.prior.ids if tokens is None else self.prior.ids[tokens]
        return Fusion(stepper, self.prior.stepper, self.prior.weight, ids)

    # ---------------------------------------------------------------------------- translating

    def translate(
        self,
        texts: str | Sequence[str],
        *,
        beam: int | None = None,
        n_best: int = 1,
        shortlist: int = 0,
    ) -> Any:
        """A Description of each sentence, in order; of one, if one was given.

        The sentence of an empty text is empty. A text longer than the recipe's `longest` is
        translated in parts. With `shortlist` only that many of the commonest tokens can be
        written, besides those that the lexicon has for the sentence.
        """
        sentences = [texts] if isinstance(texts, str) else list(texts)
        parts = [self.source.parts(self.source.split(t), self.recipe.longest) for t in sentences]
        flat = [part for several in parts for part in several]
        found = iter(self._search(flat, beam or self.recipe.search.beam, n_best, shortlist))
        described = []
        for several in parts:
            best_of_parts = [next(found) for _ in several]
            ranked = [joined(same) for same in zip(*best_of_parts, strict=False)]
            best, *others = ranked or [Description("", (), 0.0, ())]
            described.append(replace(best, alternatives=tuple(others)))
        return described[0] if isinstance(texts, str) else described

    def _search(
        self, sources: list[list[str]], beam: int, n_best: int, shortlist: int
    ) -> list[list[Description]]:
        """The n best of each, searched beside others of about their length."""
        settings = self.recipe.search
        found: list[list[Description]] = [[] for _ in sources]
        for reach, rows in similar([len(tokens) for tokens in sources]):
            options = search.BeamOptions(
                max_length=self._longest_output(reach),
                size=max(beam, n_best),
                min_length=settings.min_length,
                length_penalty=settings.length_penalty,
                n_best=n_best,
            )
            chosen = [sources[row] for row in rows]
            for row, hypotheses in zip(rows, self._beam(chosen, options, shortlist), strict=True):
                found[row] = [self._description(h, sources[row]) for h in hypotheses]
        return found

    def _beam(
        self, sources: list[list[str]], options: search.BeamOptions, shortlist: int
    ) -> list[list[Hypothesis]]:
        inputs = self._inputs(sources)
        if not shortlist:
            return search.finish(search.beam(self._fused(self.stepper), inputs, options))
        tokens, allowed = candidates(sources, shortlist, self.lexicon, self.target.vocab)
        stepper = self._fused(shorten(self.stepper, tokens, allowed), tokens)
        return [
            [replace(h, tokens=tuple(tokens[token] for token in h.tokens)) for h in hypotheses]
            for hypotheses in search.finish(search.beam(stepper, inputs, options))
        ]

    def _longest_output(self, source_length: int) -> int:
        """Depends on nothing but the source's length, so that a batch equals its singles."""
        most = self.recipe.search.max_length
        same_unit = self.source.vocab.kind == self.target.vocab.kind
        return min(most, 10 + 3 * source_length // 2) if same_unit else most

    def _inputs(self, sources: Sequence[list[str]]) -> Any:
        from sightline.nn.model import pad

        return pad([[*self.source.ids(tokens), END] for tokens in sources], self.device)

    def _description(self, hypothesis: Hypothesis, source: list[str]) -> Description:
        kept = len(hypothesis.tokens) - hypothesis.finished  # the end token is not a word
        looked, layout = hypothesis.attention, None
        tokens = [self.target.vocab.tokens[token] for token in hypothesis.tokens[:kept]]
        if looked is not None:
            looked = looked[:kept, : len(source) + 1]  # without the batch's padding
            layout = Layout.words([*source, SPECIALS[END]])
            for t in np.flatnonzero(np.array(hypothesis.tokens[:kept]) == UNKNOWN):
                word = source[int(looked[t, :-1].argmax())]
                tokens[t] = next(iter(self.lexicon.get(word, {})), word)
        return Description(
            text=self.target.text(tokens),
            tokens=tuple(tokens),
            score=hypothesis.score,
            log_probs=tuple(float(value) for value in hypothesis.log_probs[:kept]),
            attention=looked,
            layout=layout,
        )

    # ---------------------------------------------------------------------------- aligning

    def align(self, sources: Sequence[str], targets: Sequence[str]) -> list[WordAlignment]:
        """The word alignments of known pairs; of a pair that `force` leaves empty, an empty one."""
        return [self.alignment(forced) for forced in self.force(sources, targets)]

    def alignment(self, description: Description) -> WordAlignment:
        """The word alignment of what `translate` or `force` gave."""
        return word_alignment(description, self.source, self.target)

    def force(self, sources: Sequence[str], targets: Sequence[str]) -> list[Description]:
        """Known translations as if the model had written them: log-probabilities, attention.

        A pair with an empty side, or one of more than LONGEST_FORCED tokens, gives an empty one.
        """
        if len(sources) != len(targets):
            raise DataError(f"{len(sources)} sources and {len(targets)} targets are no pairs")
        read = [self.source.split(text) for text in sources]
        written = [self.target.split(text) for text in targets]
        found = [Description("", (), 0.0, ()) for _ in read]
        sizes = [(len(r), len(w)) for r, w in zip(read, written, strict=True)]
        stepper = self._fused(self.stepper)
        full = [i for i, both in enumerate(sizes) if min(both) and max(both) <= LONGEST_FORCED]
        for _, rows in similar([len(read[i]) for i in full]):
            chosen = [full[row] for row in rows]
            ids = [[*self.target.ids(written[i]), END] for i in chosen]
            inputs = self._inputs([read[i] for i in chosen])
            for i, hypothesis in zip(chosen, search.rescore(stepper, inputs, ids), strict=True):
                description = self._description(hypothesis, read[i])
                text = self.target.text(written[i])  # unknown words as they were given
                found[i] = replace(description, text=text, tokens=tuple(written[i]))
        return found


def build_model(recipe: TranslateRecipe, source: Vocabulary, target: Vocabulary) -> EncoderDecoder:
    from sightline.nn.decoder import Decoder
    from sightline.nn.encoders import TextEncoder
    from sightline.nn.model import EncoderDecoder

    encoder = TextEncoder(recipe.encoder, len(source))
    decoder = Decoder(recipe.model, len(target), encoder.dimension)
    return EncoderDecoder(encoder, decoder, recipe.loss)
