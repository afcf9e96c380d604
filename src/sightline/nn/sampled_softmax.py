"""The sampled softmax of Jean et al. (2015): a large target vocabulary by importance sampling."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional as F

from sightline.data.vocabulary import SPECIALS


def sampled_log_probs(
    weight: Tensor,  # (V, D)
    bias: Tensor,  # (V,)
    readouts: Tensor,  # (R, D)
    targets: Tensor,  # (R,)
    negatives: int,
) -> Tensor:
    """log p(target), (R,), under a softmax over the batch's targets and `negatives` samples.

    The candidates are the distinct targets of the batch plus distinct tokens drawn by the
    log-uniform law, which fits a vocabulary sorted by frequency. Each sampled logit is lowered by
    the log of its expected count: the estimated partition function is that of the full softmax.
    """
    seen, position = torch.unique(targets, return_inverse=True)  # (C,), (R,)
    sampled, log_expected = draw_log_uniform(len(weight), negatives, targets.device)
    fresh = ~torch.isin(sampled, seen)  # a target is already counted in full
    sampled, log_expected = sampled[fresh], log_expected[fresh]
    candidates = torch.cat([seen, sampled])
    logits = F.linear(readouts, weight[candidates], bias[candidates])
    logits = logits - torch.cat([torch.zeros_like(seen, dtype=logits.dtype), log_expected])
    return -F.cross_entropy(logits, position, reduction="none")


def draw_log_uniform(size: int, count: int, device: torch.device) -> tuple[Tensor, Tensor]:
    """Distinct tokens from `count` draws of P(k) ∝ log((k+2)/(k+1)), and log P(k is drawn).

    Special tokens are skipped: none but <end> is ever a target, and that is always in the batch.
    """
    skip = len(SPECIALS)
    ranks = torch.arange(size - skip, device=device, dtype=torch.float64)
    total = torch.log(ranks.new_tensor(size - skip + 1))
    probability = torch.log((ranks + 2) / (ranks + 1)) / total
    uniform = torch.rand(count, device=device, dtype=torch.float64)
    # inverse of the cumulative law log(k+2) / log(size+1)
    drawn = (torch.exp(uniform * total) - 1).long()
    drawn = drawn.clamp_(0, size - skip - 1).unique()
    included = -torch.expm1(count * torch.log1p(-probability[drawn]))
    return drawn + skip, included.log().float()
