"""log p of given tokens under the softmax of an output layer, with a hand-written gradient.

The scores of all tokens of a vocabulary, (R, V), are by far the largest thing in a training step.
Left to autograd they are written five times over (scores, their exponentials, two gradients and
their sum); here there is one such buffer, which holds scores, then probabilities, then gradients.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


def chosen_and_normaliser(
    readouts: Tensor, weight: Tensor, bias: Tensor, targets: Tensor
) -> tuple[Tensor, Tensor]:
    """The score of each target and the log Σ exp of all scores; log p is their difference.

    readouts (R, D), weight (V, D), bias (V,), targets (R,) → (R,), (R,).
    """
    chosen: Tensor
    normaliser: Tensor
    chosen, normaliser = _Likelihood.apply(readouts, weight, bias, targets)
    return chosen, normaliser


class _Likelihood(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, readouts: Tensor, weight: Tensor, bias: Tensor, targets: Tensor
    ) -> tuple[Tensor, Tensor]:
        scores = torch.addmm(bias, readouts, weight.t())  # (R, V)
        chosen = scores.gather(1, targets[:, None])[:, 0]
        top = scores.amax(1)
        exponentials = scores.sub_(top[:, None]).exp_()
        total = exponentials.sum(1)
        ctx.save_for_backward(readouts, weight, targets, total)
        ctx.exponentials = exponentials
        return chosen, total.log() + top

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any, d_chosen: Tensor, d_normaliser: Tensor
    ) -> tuple[Tensor, Tensor, Tensor, None]:
        readouts, weight, targets, total = ctx.saved_tensors
        if ctx.exponentials is None:
            raise RuntimeError("the gradient of a likelihood can be taken once only")
        d_scores = ctx.exponentials.mul_((d_normaliser / total)[:, None])  # (R, V)
        ctx.exponentials = None
        d_scores.scatter_add_(1, targets[:, None], d_chosen[:, None])
        return d_scores @ weight, d_scores.t() @ readouts, d_scores.sum(0), None
