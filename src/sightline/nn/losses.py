"""What training minimises: log-likelihood, the doubly stochastic penalty, and hard attention's
variational bound by REINFORCE (Xu et al. §4).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from sightline.config import HardConfig, LossConfig
from sightline.data.vocabulary import PAD
from sightline.nn.decoder import Decoded, Decoder


@dataclass(frozen=True)
class Loss:
    total: Tensor  # what is differentiated
    nats: float  # the summed negative log-likelihood of the batch, without any penalty
    tokens: int  # target tokens, padding left out
    parts: dict[str, float]  # further numbers worth logging
    # of a part of a batch: so many tokens its total is the mean of, where only the samples tell how
    # many the whole has; 0: total is this part's share of the whole batch's loss
    mean_over: int = 0
    rewards: tuple[float, ...] = ()  # of hard attention's sampled rows


def sequence_loss(
    decoder: Decoder,
    decoded: Decoded,
    targets: Tensor,
    config: LossConfig,
    weights: Tensor | None = None,
    looks: Tensor | None = None,
    over: float | None = None,
) -> tuple[Tensor, Loss]:
    """The loss of a teacher-forced pass; targets (N, T), how much each counts (N,).

    `looks` (N, T) are the positions to look at, −1 for any. The sum is divided by `over`, if not by
    what these rows have. Also gives log p(y | …) per row, (N,).
    """
    mask = targets != PAD  # (N, T)
    smoothing, zeros = config.label_smoothing, decoded.readouts.new_zeros(targets.shape)
    chosen, mean = decoder.output.likelihood(
        decoded.readouts, targets, mask, decoded.state.pointers, smoothing=smoothing > 0
    )
    log_likelihood = zeros.masked_scatter(mask, chosen).sum(1)  # (N,)
    tokens = int(mask.sum())
    per_row = -log_likelihood
    if mean is not None:  # over all tokens
        uniform = -zeros.masked_scatter(mask, mean).sum(1)
        per_row = (1 - smoothing) * per_row + smoothing * uniform
    parts = {}
    if config.doubly_stochastic and decoded.weights is not None:
        context = decoded.state.context
        cells = None
        if context is not None and context.tokens is not None:  # tags need no look each
            cells = int((context.tokens[0] == PAD).sum())
        penalty = doubly_stochastic(decoded.weights[..., :cells], mask)  # (N,)
        per_row = per_row + config.doubly_stochastic * penalty
        parts["doubly_stochastic"] = float(penalty.detach().mean())
    if config.looks and looks is not None and decoded.weights is not None:
        away = looked_away(decoded.weights, looks)  # (N,)
        per_row = per_row + config.looks * away
        parts["looks"] = float(away.detach().sum() / (looks >= 0).sum().clamp_min(1))
    summed = per_row.sum() if weights is None else (weights * per_row).sum()
    total = summed / (divisor(config, targets, weights) if over is None else over)
    return log_likelihood, Loss(total, -float(log_likelihood.detach().sum()), tokens, parts)


def scale(config: LossConfig, tokens: int, rows: int) -> int:
    """What summed losses are divided by: the tokens, or the sequences, of the batch."""
    return max(1, tokens if config.per == "token" else rows)


def divisor(config: LossConfig, targets: Tensor, weights: Tensor | None) -> Tensor | int:
    """The same, where each row counts by its weight."""
    mask = targets != PAD
    if weights is None:
        return scale(config, int(mask.sum()), len(targets))
    count = mask.sum(1) if config.per == "token" else torch.ones_like(weights)
    return (weights * count).sum().clamp_min(1e-6)


def doubly_stochastic(weights: Tensor, mask: Tensor) -> Tensor:
    """Σ_i (1 − Σ_t α_ti)² per row (eq. 14): weights (N, T, M), mask (N, T) → (N,)."""
    looked = (weights * mask[..., None]).sum(1)  # (N, M): how much each place was looked at
    return (1 - looked).square().sum(1)


def looked_away(weights: Tensor, looks: Tensor) -> Tensor:
    """−Σ_t log α_t at the positions to look at, per row: (N, T, M), (N, T) → (N,)."""
    there = weights.gather(2, looks.clamp_min(0)[..., None])[..., 0].clamp_min(1e-10)
    return -(there.log() * (looks >= 0)).sum(1)


class Reinforce(nn.Module):
    """The variational bound L_s by sampling, with its moving-average baseline b.

    gradient = ∂log p(y|s̃) + λ_r (log p(y|s̃) − b) ∂log p(s̃) + λ_e ∂H[s̃], averaged over N samples.
    """

    baseline: Tensor  # b, kept in checkpoints
    variance: Tensor  # of rewards about b, a moving average too
    started: Tensor

    def __init__(self, config: HardConfig) -> None:
        super().__init__()
        self.config = config
        self.register_buffer("baseline", torch.zeros(()))
        self.register_buffer("variance", torch.zeros(()))
        self.register_buffer("started", torch.zeros((), dtype=torch.bool))

    def expected_rows(self, uniform: Tensor) -> Tensor:
        """Which pictures use α instead of samples, in all their captions, (pictures,) bool.

        By a number from 0 to 1 for each.
        """
        return uniform < self.config.expectation

    def forward(
        self,
        log_likelihood: Tensor,
        decoded: Decoded,
        expected: Tensor,
        mask: Tensor,
        *,
        follow: bool = True,
    ) -> tuple[Tensor, dict[str, float], Tensor]:
        """The terms to add to −log p(y|s̃), summed over rows, what is worth logging, and the rewards
        of sampled rows.

        log p(y | s̃, a) (rows,), which rows use α (rows,), which tokens are real (rows, T). The
        baseline does not `follow` a part of a batch, but all of them together.
        """
        reward, real = log_likelihood.detach(), mask.any(1)  # rows of padding have no reward
        advantage = reward - (self.baseline if self.config.baseline else 0.0)
        if self.config.normalise:  # Mnih and Gregor 2014: only ever made smaller
            advantage = advantage / self.variance.sqrt().clamp_min(1.0)
        terms, parts = self.terms(advantage, decoded, expected, mask)
        sampled = reward[~expected & real]
        if self.training and follow:
            self.follow(sampled)
        mean = float(reward.sum() / real.sum().clamp_min(1))
        parts = {"reward": mean, "baseline": float(self.baseline), **parts}
        return terms, parts, sampled

    def follow(self, rewards: Tensor) -> None:
        """b_k = 0.9 b_{k-1} + 0.1 log p(y|s̃_k), begun at the first reward; of sampled rows."""
        if not len(rewards):
            return
        decay = self.config.decay if bool(self.started) else 0.0
        self.baseline.mul_(decay).add_(rewards.mean(), alpha=1 - decay)
        spread = (rewards - self.baseline).square().mean()
        self.variance.mul_(decay).add_(spread, alpha=1 - decay)
        self.started.fill_(True)

    def terms(
        self, advantage: Tensor, decoded: Decoded, expected: Tensor, mask: Tensor
    ) -> tuple[Tensor, dict[str, float]]:
        """−λ_r advantage log p(s̃) − λ_e H[s̃], summed over rows, and the entropy to log."""
        assert decoded.weights is not None
        assert decoded.used is not None
        log_weights = decoded.weights.clamp_min(1e-20).log()  # (rows, T, M)
        log_location = ((log_weights * decoded.used.detach()).sum(-1) * mask).sum(1)
        entropy = -((decoded.weights * log_weights).sum(-1) * mask).sum(1)
        # rows in expectation have no sample and so no REINFORCE term
        credit = torch.where(expected, 0.0, advantage) * log_location
        bonus = self.config.reward * credit + self.config.entropy * entropy
        tokens = mask.sum().clamp_min(1)
        return -bonus.sum(), {"entropy": float(entropy.detach().sum() / tokens)}  # nats per step
