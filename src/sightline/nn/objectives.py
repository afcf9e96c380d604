"""Objectives: what a model is trained for. Here the likelihood; others derive from it.

An objective is given to `EncoderDecoder`, and `model.loss(batch, state)` calls it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from sightline.config import LossConfig
from sightline.data.vocabulary import PAD, SPECIALS
from sightline.errors import ConfigError
from sightline.nn.decoder import Decoder, DecoderState
from sightline.nn.encoders.tags import Tagger, renamed, tag_loss
from sightline.nn.losses import Loss, divisor, scale, sequence_loss
from sightline.types import ContextSet, Inputs

if TYPE_CHECKING:
    from sightline.nn.model import Batch, EncoderDecoder


LOOKS = "looks"  # a stream of training: the position that each target's step should look at


class Likelihood:
    """Cross-entropy under teacher forcing or scheduled sampling (Bengio et al. 2015).

    Of hard attention it is the variational bound with its REINFORCE terms (Xu et al. §4.1).
    """

    def __init__(self, config: LossConfig | None = None, scheduled_sampling: float = 0.0) -> None:
        self.config = LossConfig() if config is None else config
        # of the previous tokens, the share that the model draws itself at the end of training
        self.scheduled_sampling = scheduled_sampling

    def check(self, decoder: Decoder) -> None:
        """A ConfigError where this objective has no meaning for this decoder."""
        if not self.config.label_smoothing:
            return
        if decoder.config.sampled_softmax:
            raise ConfigError(
                "loss.label_smoothing needs the scores of all tokens, and model.sampled_softmax "
                "computes those of a few; set one of them to 0"
            )
        if decoder.config.head == "pointer":
            raise ConfigError(
                "loss.label_smoothing spreads probability over a vocabulary, which "
                "model.head=pointer has not; set it to 0"
            )

    def read(self, model: EncoderDecoder, batch: Batch) -> tuple[ContextSet, Tensor]:
        """What is attended to, and the targets."""
        return model.encode(batch.inputs, batch.name), batch.targets

    def __call__(
        self, model: EncoderDecoder, batch: Batch, state: DecoderState | None = None
    ) -> tuple[Loss, DecoderState | None]:
        """The loss of a batch, from `state` where one is carried over (truncated BPTT)."""
        decoder, hard = model.decoder, model.hard if model.training else None
        context, given = self.read(model, batch) if state is None else (None, batch.targets)
        before, targets, samples, expected = given[:, :-1], given[:, 1:], 1, None
        weights, draws = batch.weights, None
        if state is None:
            assert context is not None
            if hard is not None:  # N sampled paths per target, as rows that share a context set
                samples = hard.config.samples
                each = len(targets) // len(context)
                drawn = batch.uniform(each, 1 + samples * targets.shape[1])
                draws = drawn[:, 1:].reshape(-1, targets.shape[1])
                expected = hard.expected_rows(drawn[::each, 0])  # one draw a picture
                expected = expected.repeat_interleave(each)
                before, targets, expected = (
                    each.repeat_interleave(samples, 0) for each in (before, targets, expected)
                )
                weights = None if weights is None else weights.repeat_interleave(samples, 0)
            state = decoder.start(context, per_example=len(targets) // len(context))
            state = replace(state, expected=expected, draws=draws)
        if model.training:
            share = self.scheduled_sampling * batch.progress
            before = scheduled_sampling(decoder, before, state, share)
        decoded = decoder(before, state)
        looks = given_looks(batch) if hard is None else None
        over = self.divided_by(batch, samples)
        likelihood, loss = sequence_loss(
            decoder, decoded, targets, self.config, weights, looks, over
        )
        if hard is None or expected is None:
            return loss, decoded.state
        whole = batch.whole
        mask = targets != PAD
        bonus, parts, rewards = hard(likelihood, decoded, expected, mask, follow=whole is None)
        rows = targets if whole is None else whole.targets[:, 1:].repeat(samples, 1)
        total = loss.total + bonus / scale(self.config, int((rows != PAD).sum()), len(rows))
        return Loss(
            total,
            loss.nats / samples,
            loss.tokens // samples,
            loss.parts | parts,
            rewards=tuple(rewards.tolist()),
        ), decoded.state

    def divided_by(self, batch: Batch, samples: int = 1) -> float | None:
        """What summed losses are divided by where a batch is only a part; None: what it has."""
        if batch.whole is None:
            return None
        whole = batch.whole
        return samples * float(divisor(self.config, whole.targets[:, 1:], whole.weights))


def given_looks(batch: Batch) -> Tensor | None:
    """Where each target's step should look (N, T), if the batch says so; −1 for anywhere."""
    if LOOKS not in batch.inputs:
        return None
    stream = batch.inputs[LOOKS]
    looks: Tensor = stream.values if stream.mask is None else stream.values.where(stream.mask, -1)
    return looks


@torch.no_grad()
def scheduled_sampling(
    decoder: Decoder, before: Tensor, state: DecoderState, share: float
) -> Tensor:
    """The previous tokens (N, T) with this share of them drawn from the model.

    Each is drawn given all before it, drawn or true; no gradient passes through them.
    """
    if not share:
        return before
    drawn = (torch.rand(before.shape, device=before.device) < share) & (before != PAD)
    drawn[:, 0] = False  # <begin>
    last = int(drawn.any(0).nonzero().max()) if bool(drawn.any()) else 0
    mixed = before.clone()
    for t in range(1, last + 1):
        logits, _, state = decoder.step(mixed[:, t - 1], state)
        logits[:, : len(SPECIALS)] = -torch.inf
        token = torch.multinomial(logits.softmax(1), 1)[:, 0]
        mixed[:, t] = torch.where(drawn[:, t], token, before[:, t])
    return mixed


class WithTags(Likelihood):
    """The likelihood, and that of the tags that its picture encoder finds.

    Some tags are renamed, so that copying is learnt for words that no target has.
    """

    def __init__(
        self,
        config: LossConfig,
        scheduled_sampling: float = 0.0,
        published: Callable[[Inputs], Tensor] | None = None,  # ImageNet's logits, to keep
    ) -> None:
        super().__init__(config, scheduled_sampling)
        self.published = published

    def read(self, model: EncoderDecoder, batch: Batch) -> tuple[ContextSet, Tensor]:
        context, targets = super().read(model, batch)
        tagger = getattr(model.encoder, "tagger", None)
        if not model.training or not isinstance(tagger, Tagger) or not self.config.rename:
            return context, targets
        assert context.tokens is not None
        tokens, targets = renamed(context.tokens, targets, tagger.tokens, self.config.rename)
        return replace(context, tokens=tokens), targets

    def __call__(
        self, model: EncoderDecoder, batch: Batch, state: DecoderState | None = None
    ) -> tuple[Loss, DecoderState | None]:
        loss, state = super().__call__(model, batch, state)
        tagger = getattr(model.encoder, "tagger", None)
        if not model.training or not isinstance(tagger, Tagger) or not self.config.tags:
            return loss, state
        assert state is not None
        assert state.context is not None
        vectors = state.context.values[:, : -tagger.count]
        kept = None if self.published is None else self.published(batch.inputs)
        found = tag_loss(tagger, vectors, batch.targets, kept)
        if batch.whole is not None:  # a mean over pictures
            found = found * (len(batch.inputs) / len(batch.whole.inputs))
        parts = loss.parts | {"tags": float(found.detach())}
        return replace(loss, total=loss.total + self.config.tags * found, parts=parts), state
