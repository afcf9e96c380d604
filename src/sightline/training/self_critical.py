"""Self-critical training (Rennie et al. 2017): raise the expected score of what is written.

The gradient is that of E[r(ŷ)] over sampled outputs ŷ. Each of the K samples of an example has the
mean score of the others as its baseline (Luo 2020), which needs no greedy pass and stays unbiased.
Hard attention samples its positions with the tokens, and both are credited with the score.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sightline import search
from sightline.config import LossConfig
from sightline.data.manifest import normalise_caption
from sightline.data.vocabulary import BEGIN, END, PAD, UNKNOWN, Vocabulary
from sightline.errors import ConfigError
from sightline.metrics import Cider, Corpus, DocumentFrequencies, Metric
from sightline.metrics.meteor_metric import MeteorMetric
from sightline.nn.decoder import Decoder, DecoderState
from sightline.nn.losses import Loss
from sightline.nn.model import Batch, EncoderDecoder, pad
from sightline.nn.objectives import Likelihood
from sightline.nn.stepper import TorchStepper
from sightline.search.steppers import Started
from sightline.types import ContextSet, Hypothesis

# the examples' ids, then K token sequences for each in turn (with <end> where it came) → rewards
Reward = Callable[[Sequence[str], Sequence[Sequence[int]]], NDArray[np.float64]]


class SelfCritical(Likelihood):
    """The loss whose gradient is −∂E[r]/∂θ, estimated with `samples` outputs per example.

    <unk> is never drawn. A model that is not in training gets the likelihood of the targets.

    A temperature below 1 draws likelier outputs: a model that was trained with smoothed labels
    gives a tenth of every word to chance. They are credited as of p all the same, which raises what
    scores above the other samples, but is no longer the gradient of an expectation under p.
    """

    def __init__(
        self,
        reward: Reward,
        samples: int,
        max_length: int,
        config: LossConfig | None = None,
        temperature: float = 1.0,
    ) -> None:
        super().__init__(config)
        self.temperature = temperature
        self.reward = reward
        self.samples = samples
        self.max_length = max_length

    def check(self, decoder: Decoder) -> None:
        if decoder.config.dropout:
            raise ConfigError(
                "set model.dropout=0: self-critical training learns from samples, and with dropout "
                "it would learn from another model than the one that drew them"
            )

    def __call__(
        self, model: EncoderDecoder, batch: Batch, state: DecoderState | None = None
    ) -> tuple[Loss, DecoderState | None]:
        if not model.training:
            return super().__call__(model, batch, state)
        seed = int(torch.randint(2**31 - 1, ())) if batch.seed is None else batch.seed
        context = model.encode(batch.inputs, batch.name)  # once: it may be most of the work
        expected = None
        if model.hard is not None:
            expected = model.hard.expected_rows(batch.uniform(1, 1)[:, 0])
        indices = range(batch.first, batch.first + len(context))  # whatever part of a batch this is
        drawn = self._sample(model.decoder, context, expected, seed, indices)
        written = [hypothesis.tokens for hypothesis in drawn]
        rewards = torch.from_numpy(self.reward(batch.items, written)).float()
        rewards = rewards.view(-1, self.samples)  # (B, K)
        others = (rewards.sum(1, keepdim=True) - rewards) / (self.samples - 1)
        advantage = (rewards - others).flatten().to(context.values.device)  # (B · K,)
        parts = {"reward": float(rewards.mean()), "advantage": float(advantage.abs().mean())}
        targets = pad([[BEGIN, *tokens] for tokens in written], context.values.device)
        real = targets[:, 1:] != PAD
        start, positions = model.decoder.start(context, per_example=self.samples), None
        if expected is not None:
            start = replace(start, expected=expected.repeat_interleave(self.samples))
            positions = pad([_positions(hypothesis) for hypothesis in drawn], targets.device)
        decoded = model.decoder(targets[:, :-1], start, positions)
        log_probs, _ = model.decoder.output.likelihood(  # as they were drawn
            decoded.readouts, targets[:, 1:], real, start.pointers, without=[UNKNOWN]
        )
        zeros = decoded.readouts.new_zeros(real.shape)
        log_likelihood = zeros.masked_scatter(real, log_probs).sum(1)  # (B · K,)
        total = -(advantage * log_likelihood).sum()
        if model.hard is not None and start.expected is not None:
            terms, more = model.hard.terms(advantage, decoded, start.expected, real)
            total, parts = total + terms, parts | more
        tokens = int(real.sum())
        nats = -float(log_likelihood.detach().sum())
        return Loss(total / max(1, tokens), nats, tokens, parts, mean_over=tokens), None

    def _sample(
        self,
        decoder: Decoder,
        context: ContextSet,
        expected: Tensor | None,
        seed: int,
        indices: Sequence[int],
    ) -> list[Hypothesis]:
        """K outputs for each example in turn, without gradients.

        Hard attention draws its positions with the tokens, but not in the `expected` examples.
        """
        stepper = TorchStepper(decoder).without([UNKNOWN])
        fixed = replace(context, values=context.values.detach())
        start = stepper.start(fixed)
        assert isinstance(start, DecoderState)
        begun = Started(stepper, replace(start, expected=expected))
        drawn = search.sample(
            begun,
            fixed,
            max_length=self.max_length,
            samples=self.samples,
            temperature=self.temperature,
            seed=seed,
            indices=indices,
        )
        return [hypothesis for hypotheses in search.finish(drawn) for hypothesis in hypotheses]


class Fluency:
    """The share of n words in a row, the end among them, that some given text has.

    Metrics forgive a text that stops at "on a"; nobody wrote that.
    """

    def __init__(self, texts: Iterable[Sequence[int]], n: int = 4) -> None:
        """Texts are token ids with <end>."""
        self.n = n
        seen = [gram for text in texts for gram in self._grams(text)]
        self.seen = frozenset(seen)

    def __call__(self, tokens: Sequence[int]) -> float:
        grams = self._grams(tokens)
        return sum(gram in self.seen for gram in grams) / max(1, len(grams))

    def _grams(self, tokens: Sequence[int]) -> list[tuple[int, ...]]:
        padded = (*[BEGIN] * (self.n - 1), *tokens)
        return [tuple(padded[i : i + self.n]) for i in range(len(tokens))]


class CaptionReward:
    """CIDEr-D, METEOR and fluency, each by its weight, of written sequences.

    Metrics are against the items' references, fluency by those of all items.

    CIDEr weighs words by the references of the item's own data set, as it will be scored: "dog" is
    rare in COCO and says nothing in Flickr8k. A text that ended has a mark at its end: without it,
    captions learn to stop at "in a".
    """

    MARK = " zzz"

    def __init__(
        self,
        vocab: Vocabulary,
        references: Sequence[Mapping[str, Sequence[str]]],  # of each data set, by item
        *,
        cider: float = 1.0,
        meteor: float = 0.0,
        fluency: float = 0.0,
    ) -> None:
        self.vocab = vocab
        marked = [
            {item: [text + self.MARK for text in texts] for item, texts in some.items()}
            for some in references
        ]
        self.references = {item: texts for some in marked for item, texts in some.items()}
        self.data_set = {item: number for number, some in enumerate(marked) for item in some}
        every = (texts for some in references for texts in some.values())
        texts = (text for texts in every for text in texts) if fluency else ()
        encoded = ((*vocab.encode(normalise_caption(text)), END) for text in texts)
        self.fluency, self.fluent = fluency, Fluency(encoded)
        alike: list[tuple[float, Metric]] = [(meteor, MeteorMetric())] if meteor else []
        self.metrics = [alike] * len(marked)
        if cider:
            frequencies = map(DocumentFrequencies.of, marked)
            self.metrics = [[(cider, Cider(frequencies=each)), *alike] for each in frequencies]

    def __call__(
        self, items: Sequence[str], written: Sequence[Sequence[int]]
    ) -> NDArray[np.float64]:
        """The scores of K sequences for each item, in turn."""
        samples = len(written) // len(items)
        hypotheses = {
            number: self.vocab.decode(tokens) + (self.MARK if END in tokens else "")
            for number, tokens in enumerate(written)
        }
        references = {number: self.references[items[number // samples]] for number in hypotheses}
        rewards = np.zeros(len(written))
        of_set = np.array([self.data_set[item] for item in items]).repeat(samples)
        for data_set in np.unique(of_set):
            (rows,) = np.nonzero(of_set == data_set)
            some = {row: hypotheses[row] for row in rows.tolist()}
            corpus = Corpus.of(some, {row: references[row] for row in some})
            for weight, metric in self.metrics[data_set]:
                rewards[rows] += weight * metric.item_scores(metric.statistics(corpus))[:, 0]
        if self.fluency:
            rewards += self.fluency * np.array([self.fluent(tokens) for tokens in written])
        return rewards


def _positions(hypothesis: Hypothesis) -> list[int]:
    """Where each step of a sampled path attended; of a row that used α, where most."""
    assert hypothesis.attention is not None
    return [int(position) for position in hypothesis.attention.argmax(1)]
