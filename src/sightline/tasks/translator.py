"""Translator: a trained translation model, sentences in and descriptions out; not torch's.

What computes is given to it: a Stepper that is started with the source's token ids.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from sightline import search
from sightline.data.sentences import Sentences
from sightline.data.vocabulary import END, PAD, SPECIALS, UNKNOWN
from sightline.errors import DataError, UserError
from sightline.runtime.batches import joined, similar
from sightline.runtime.onnx import side_by_side, workers
from sightline.runtime.partial import Partial, partial_result
from sightline.search.steppers import Ensemble, Fusion, Stepper, posterior_of
from sightline.tasks.alignments import Lexicon, WordAlignment, word_alignment
from sightline.tasks.shortlist import candidates, shorten
from sightline.types import Description, Hypothesis, Layout

if TYPE_CHECKING:
    from sightline.tasks.text_writer import LanguageModel
    from sightline.tasks.translate import TranslateRecipe

SOURCE_VOCAB = "source_vocab.json"
LONGEST_FORCED = 2000  # tokens of either side of a pair that is to be aligned


def never_written(recipe: TranslateRecipe, target: Sentences) -> list[int]:
    """An unknown word can be replaced only where it is known from which word it came."""
    replaceable = target.vocab.kind == "word" and recipe.model.attention.kind != "none"
    return [] if replaceable else [UNKNOWN]


@dataclass(frozen=True)
class Prior:
    """A language model to be fused in."""

    stepper: Stepper
    weight: float
    ids: NDArray[np.int64] | None  # (V,): its id of each target token; None: the same


@dataclass(frozen=True)
class Translator:
    """A trained translator, or several as one: sentences in, descriptions out."""

    recipe: TranslateRecipe
    source: Sentences
    target: Sentences
    stepper: Stepper
    lexicon: Lexicon = field(default_factory=dict)  # for unknown words and shortlists
    prior: Prior | None = None

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
        prior = Prior(language_model.stepper(banned=()), weight, None)
        if language_model.vocab == self.target.vocab:
            return replace(self, prior=prior)
        known = language_model.vocab.ids
        tokens = self.target.vocab.tokens
        ids = [known.get(token, UNKNOWN) for token in tokens]
        shared = sum(token in known for token in tokens[len(SPECIALS) :])
        if shared < 0.5 * (len(tokens) - len(SPECIALS)):
            raise UserError(
                f"the language model knows {shared} of the translator's {len(tokens)} tokens; "
                "train one that is `like` the translator: its recipe's key like=RUN"
            )
        return replace(self, prior=replace(prior, ids=np.array(ids)))

    def _fused(self, stepper: Stepper, tokens: list[int] | None = None) -> Stepper:
        """With the language model, if there is one; `tokens` are those of a shortlist."""
        if self.prior is None:
            return stepper
        ids = self.prior.ids
        if tokens is not None:
            ids = np.array(tokens) if ids is None else ids[tokens]
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

    def stream(
        self, text: str, *, beam: int | None = None, n_best: int = 1
    ) -> Iterator[Partial | Description]:
        """What `translate` gives of one text, after a Partial for each step of the search.

        A text that is translated in parts has no single search to show: it comes whole.
        """
        parts = self.source.parts(self.source.split(text), self.recipe.longest)
        if len(parts) != 1:
            yield self.translate(text, beam=beam, n_best=n_best)
            return
        (source,), ((reach, _),) = parts, similar([len(parts[0])])
        options = self._options(reach, beam or self.recipe.search.beam, n_best, keep_tree=True)
        for snapshot in search.beam(self._fused(self.stepper), self._inputs(parts), options):
            best = self._description(snapshot.hypotheses[0][0], source)
            yield partial_result(snapshot, 0, best, self.target.vocab.tokens)
        best, *others = (self._description(h, source) for h in snapshot.hypotheses[0])
        yield replace(best, alternatives=tuple(others))

    def _search(
        self, sources: list[list[str]], beam: int, n_best: int, shortlist: int
    ) -> list[list[Description]]:
        """The n best of each, searched beside others of about their length."""
        found: list[list[Description]] = [[] for _ in sources]
        batches = similar([len(tokens) for tokens in sources])

        def searched(batch: tuple[int, list[int]]) -> list[list[Hypothesis]]:
            reach, rows = batch
            options = self._options(reach, beam, n_best)
            return self._beam([sources[row] for row in rows], options, shortlist)

        every = side_by_side(searched, batches, workers(self.stepper))
        for (_, rows), several in zip(batches, every, strict=True):
            for row, hypotheses in zip(rows, several, strict=True):
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

    def _options(
        self, reach: int, beam: int, n_best: int, keep_tree: bool = False
    ) -> search.BeamOptions:
        return search.BeamOptions(
            max_length=self._longest_output(reach),
            size=max(beam, n_best),
            min_length=self.recipe.search.min_length,
            length_penalty=self.recipe.search.length_penalty,
            n_best=n_best,
            keep_tree=keep_tree,
        )

    def _longest_output(self, source_length: int) -> int:
        """Depends on nothing but the source's length, so that a batch equals its singles."""
        most = self.recipe.search.max_length
        same_unit = self.source.vocab.kind == self.target.vocab.kind
        return min(most, 10 + 3 * source_length // 2) if same_unit else most

    def _inputs(self, sources: Sequence[list[str]]) -> NDArray[np.int64]:
        """The sentences' ids with an end token each, padded: (B, M)."""
        inputs = np.full((len(sources), 1 + max(map(len, sources))), PAD)
        for row, tokens in enumerate(sources):
            inputs[row, : len(tokens) + 1] = [*self.source.ids(tokens), END]
        return inputs

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
        found = self.force(sources, targets, knowing=True)
        return [self.alignment(forced) for forced in found]

    def alignment(self, description: Description) -> WordAlignment:
        """The word alignment of what `translate` or `force` gave.

        An empty one of a line so long that its attention was not kept.
        """
        if description.attention is None and self.recipe.model.attention.kind != "none":
            description = replace(description, tokens=())
        return word_alignment(description, self.source, self.target)

    def force(
        self, sources: Sequence[str], targets: Sequence[str], *, knowing: bool = False
    ) -> list[Description]:
        """Known translations as if the model had written them: log-probabilities, attention.

        With `knowing`, attention is where each token came from, now that it is known, and not
        where the model looked before it wrote it (where it has no such thing, as an export, it
        stays that). A pair with an empty side, or one of more than LONGEST_FORCED tokens, gives an
        empty description.
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
            forced = search.rescore(stepper, inputs, ids)
            known = posterior_of(self.stepper, inputs, ids) if knowing else None
            if known is not None:
                both = zip(forced, known, strict=True)
                forced = [replace(hypothesis, attention=weights) for hypothesis, weights in both]
            for i, hypothesis in zip(chosen, forced, strict=True):
                description = self._description(hypothesis, read[i])
                text = self.target.text(written[i])  # unknown words as they were given
                found[i] = replace(description, text=text, tokens=tuple(written[i]))
        return found
