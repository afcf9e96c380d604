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
        if model.training and isinstance(head, torch.nn.Linear) and self._alone():
            context, targets = self.read(model, batch)
            tokens = int((targets[:, 1:] != PAD).sum())
            nats = ctc_loss(head(context.values), context, targets)
            each = nats / max(1, tokens)
            parts = {"ctc": float(each.detach())}
            return Loss(self.config.ctc * each, float(nats.detach()), tokens, parts), None
        loss, state = super().__call__(model, batch, state)
        if not model.training or not isinstance(head, torch.nn.Linear):
            return loss, state
        assert state is not None
        assert state.context is not None
        nats = ctc_loss(head(state.context.values), state.context, batch.targets)
        tokens = loss.tokens
        if batch.whole is not None:
            tokens = int((batch.whole.targets[:, 1:] != PAD).sum())
        each = nats / max(1, tokens)
        parts = loss.parts | {"ctc": float(each.detach())}
        return replace(loss, total=loss.total + self.config.ctc * each, parts=parts), state

    def _alone(self) -> bool:
        """Whether this batch is one in which the decoder has no part."""
        share = self.config.ctc_alone
        return share > 0 and float(torch.rand(())) < share


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
