"""Self-critical training (Rennie et al. 2017): raise the expected score of what is written.

The gradient is that of E[r(ŷ)] over sampled outputs ŷ. Each of the K samples of an example has the
mean score of the others as its baseline (Luo 2020), which needs no greedy pass and stays unbiased.
Hard attention samples its places with the words, and both are credited with the score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sightline import search
from sightline.data.vocabulary import BEGIN, END, PAD, UNKNOWN, Vocabulary
from sightline.metrics import Cider, Corpus, DocumentFrequencies, Metric
from sightline.metrics.meteor_metric import MeteorMetric
from sightline.nn.decoder import Decoded
from sightline.nn.kernels.likelihood import chosen_and_normaliser
from sightline.nn.losses import Loss
from sightline.nn.model import Batch, EncoderDecoder, pad
from sightline.nn.stepper import TorchStepper
from sightline.types import Hypothesis

# token sequences, K for each example in turn, the end token included where it came → rewards
Reward = Callable[[Sequence[Sequence[int]]], NDArray[np.float64]]


def self_critical_loss(
    model: EncoderDecoder, batch: Batch, reward: Reward, *, samples: int, max_length: int
) -> Loss:
    """The loss whose gradient is −∂E[r]/∂θ, estimated with `samples` outputs per example."""
    seed = int(torch.randint(2**31 - 1, ()))  # from the run's own random state: resumes exactly
    stepper = TorchStepper(model, banned=[UNKNOWN])
    # Without dropout: what is learnt from must be what drew the samples, or the likelihood of
    # those with a negative advantage falls without end.
    model.eval()
    context = model.encode(batch.inputs)  # once: the encoder may be most of the work
    assert context is not None
    fixed = replace(context, values=context.values.detach())
    expected = None
    if model.hard is not None:
        expected = model.hard.expected_rows(len(context), stepper.device)
    with torch.inference_mode():
        begun = replace(model.decoder.start(fixed), expected=expected)
    drawn = search.sample(stepper, begun, max_length=max_length, samples=samples, seed=seed)
    found = [hypothesis for hypotheses in search.finish(drawn) for hypothesis in hypotheses]
    written = [hypothesis.tokens for hypothesis in found]
    rewards = torch.from_numpy(reward(written)).float().view(-1, samples)  # (B, K)
    others = (rewards.sum(1, keepdim=True) - rewards) / (samples - 1)
    advantage = (rewards - others).flatten().to(stepper.device)  # (B · K,)
    parts = {"reward": float(rewards.mean()), "advantage": float(advantage.abs().mean())}
    targets = pad([[BEGIN, *tokens] for tokens in written], stepper.device)
    real = targets[:, 1:] != PAD
    state, looks = model.decoder.start(context, per_example=samples), None
    if expected is not None:
        state = replace(state, expected=expected.repeat_interleave(samples))
        looks = pad([_places(hypothesis) for hypothesis in found], stepper.device)
    decoded = model.decoder(targets[:, :-1], state, looks)
    log_likelihood = _log_likelihood(model, decoded, targets[:, 1:])
    total = -(advantage * log_likelihood).sum()
    if model.hard is not None and state.expected is not None:
        terms, more = model.hard.terms(advantage, decoded, state.expected, real)
        total, parts = total + terms, parts | more
    tokens = int(real.sum())
    return Loss(total / max(1, tokens), -float(log_likelihood.detach().sum()), tokens, parts)


class CaptionReward:
    """CIDEr-D and METEOR, each by its weight, of written sequences against their items' references.

    CIDEr weighs words by the whole set's references. Every text ends with a mark, where it ended:
    without it, captions learn to stop at "in a".
    """

    MARK = " zzz"

    def __init__(
        self,
        vocab: Vocabulary,
        references: Mapping[str, Sequence[str]],
        *,
        cider: float = 1.0,
        meteor: float = 0.0,
    ) -> None:
        self.vocab = vocab
        self.references = {
            item: [text + self.MARK for text in texts] for item, texts in references.items()
        }
        frequencies = DocumentFrequencies.of(self.references)
        weighted: list[tuple[float, Metric]] = [
            (cider, Cider(frequencies=frequencies)),
            (meteor, MeteorMetric()),
        ]
        self.metrics = [(weight, metric) for weight, metric in weighted if weight]

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
        corpus = Corpus.of(hypotheses, references)
        rewards = np.zeros(len(written))
        for weight, metric in self.metrics:
            rewards += weight * metric.item_scores(metric.statistics(corpus))[:, 0]
        return rewards


def _places(hypothesis: Hypothesis) -> list[int]:
    """Where each step of a sampled path looked; of a row that used α, where it looked most."""
    assert hypothesis.attention is not None
    return [int(place) for place in hypothesis.attention.argmax(1)]


def _log_likelihood(model: EncoderDecoder, decoded: Decoded, truth: Tensor) -> Tensor:
    """log p of each written sequence, (B · K,), as it was sampled.

    <unknown> is never drawn, so nothing would ever keep its share from growing.
    """
    output, forbidden = model.decoder.output, torch.tensor([UNKNOWN], device=truth.device)
    bias = output.bias.index_fill(0, forbidden, -torch.inf)
    real = truth != PAD
    chosen, normaliser = chosen_and_normaliser(
        decoded.readouts[real], output.weight, bias, truth[real]
    )
    log_probs = decoded.readouts.new_zeros(truth.shape).masked_scatter(real, chosen - normaliser)
    return log_probs.sum(1)
