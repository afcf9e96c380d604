"""Self-critical training (Rennie et al. 2017): raise the expected score of what is written.

The gradient is that of E[r(ŷ)] over sampled outputs ŷ. Each of the K samples of an example has the
mean score of the others as its baseline (Luo 2020), which needs no greedy pass and stays unbiased.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sightline import search
from sightline.metrics import Cider, Corpus, DocumentFrequencies, Metric
from sightline.metrics.meteor_metric import MeteorMetric
from sightline.nn.likelihood import chosen_and_normaliser
from sightline.nn.losses import Loss
from sightline.nn.model import Batch, EncoderDecoder, pad
from sightline.nn.stepper import TorchStepper
from sightline.types import ContextSet
from sightline.vocab import BEGIN, END, PAD, UNKNOWN, Vocabulary

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
    drawn = search.sample(stepper, fixed, max_length=max_length, samples=samples, seed=seed)
    written = [h.tokens for hypotheses in search.finish(drawn) for h in hypotheses]
    rewards = torch.from_numpy(reward(written)).float().view(-1, samples)  # (B, K)
    others = (rewards.sum(1, keepdim=True) - rewards) / (samples - 1)
    advantage = (rewards - others).flatten().to(stepper.device)  # (B · K,)
    log_likelihood, tokens = _log_likelihood(model, context, written)
    loss = -(advantage * log_likelihood).sum() / max(1, tokens)
    parts = {"reward": float(rewards.mean()), "advantage": float(advantage.abs().mean())}
    return Loss(loss, -float(log_likelihood.detach().sum()), tokens, parts)


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


def _log_likelihood(
    model: EncoderDecoder, context: ContextSet, written: Sequence[Sequence[int]]
) -> tuple[Tensor, int]:
    """log p of each written sequence, (B · K,), its rows sharing their example's context set."""
    targets = pad([[BEGIN, *tokens] for tokens in written], context.values.device)
    state = model.decoder.start(context, per_example=len(targets) // len(context))
    decoded = model.decoder(targets[:, :-1], state)
    # As it is sampled: <unknown> is never drawn, so nothing would ever keep its share from growing.
    output, forbidden = model.decoder.output, torch.tensor([UNKNOWN], device=targets.device)
    bias = output.bias.index_fill(0, forbidden, -torch.inf)
    truth = targets[:, 1:]
    real = truth != PAD
    chosen, normaliser = chosen_and_normaliser(
        decoded.readouts[real], output.weight, bias, truth[real]
    )
    log_probs = decoded.readouts.new_zeros(truth.shape).masked_scatter(real, chosen - normaliser)
    return log_probs.sum(1), int(real.sum())
