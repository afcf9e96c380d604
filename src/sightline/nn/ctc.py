"""CTC beside attention (Graves et al. 2006; Watanabe et al. 2017): the encoder's positions, read
from left to right, have to spell the targets too, which keeps attention in order.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor
from torch.nn import functional as F

from sightline.data.vocabulary import PAD
from sightline.errors import ConfigError
from sightline.nn.decoder import Decoder, DecoderState
from sightline.nn.losses import Loss
from sightline.nn.objectives import Likelihood
from sightline.types import ContextSet

if TYPE_CHECKING:
    from sightline.nn.model import Batch, EncoderDecoder


class WithCtc(Likelihood):
    """The likelihood of the decoder, and the CTC loss of an encoder that has its output layer."""

    def check(self, decoder: Decoder) -> None:
        super().check(decoder)
        if decoder.attention is None:
            raise ConfigError("loss.ctc reads the positions that attention reads; there is none")

    def __call__(
        self, model: EncoderDecoder, batch: Batch, state: DecoderState | None = None
    ) -> tuple[Loss, DecoderState | None]:
        head = getattr(model.encoder, "ctc", None)
        if not model.training or not isinstance(head, torch.nn.Linear):
            return super().__call__(model, batch, state)
        alone = self._alone(batch)
        if alone:
            context, targets = self.read(model, batch)
            tokens = int((targets[:, 1:] != PAD).sum())
            loss, state = Loss(context.values.new_zeros(()), 0.0, tokens, {}), None
        else:
            loss, state = super().__call__(model, batch, state)
            assert state is not None
            assert state.context is not None
            context = state.context
        nats, tokens = ctc_loss(head(context.values), context, batch.targets), loss.tokens
        if batch.whole is not None:
            tokens = int((batch.whole.targets[:, 1:] != PAD).sum())
        each = nats / max(1, tokens)
        parts = loss.parts | {"ctc": float(each.detach())}
        total = loss.total + self.config.ctc * each
        nats_of = float(nats.detach()) if alone else loss.nats
        return replace(loss, total=total, nats=nats_of, parts=parts), state

    def _alone(self, batch: Batch) -> bool:
        """Whether the decoder has no part in this batch: the same for all parts of it."""
        share, seed = self.config.ctc_alone, batch.seed
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        return share > 0 and float(torch.rand((), generator=generator)) < share


def ctc_loss(logits: Tensor, context: ContextSet, targets: Tensor) -> Tensor:
    """−log p summed over a batch; logits (B, M, V), <begin> y_1 … y_T <end> (B, T + 2).

    The blank is <pad>. An utterance with fewer positions than its targets need has no loss.
    """
    written = (targets != PAD).sum(1) - 2  # without <begin> and <end>
    log_probs = logits.float().log_softmax(-1).transpose(0, 1)  # (M, B, V)
    return F.ctc_loss(
        log_probs,
        targets[:, 1:],
        context.mask.sum(1),
        written,
        blank=PAD,
        reduction="sum",
        zero_infinity=True,
    )
