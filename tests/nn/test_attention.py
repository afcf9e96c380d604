"""Each attention against a plain NumPy loop written from the equations."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from sightline.config import AttentionConfig
from sightline.nn.attention import Attention, Focus, masked_softmax
from sightline.types import ContextSet

B, K, M, D, Q = 3, 2, 6, 5, 4
N = B * K

VARIANTS = {
    "content": AttentionConfig(size=7),
    "location": AttentionConfig(kind="location", size=7, filters=3, width=5),
    "cold": AttentionConfig(size=7, temperature=0.5),
    "top_k": AttentionConfig(size=7, top_k=2),
    "window": AttentionConfig(size=7, window=1),
    "smoothing": AttentionConfig(size=7, smoothing=True),
    "everything": AttentionConfig(
        kind="location", size=7, filters=3, width=3, temperature=0.7, top_k=3, window=2
    ),
}


def setting(config):
    torch.manual_seed(0)
    attention = Attention(config, Q, D).double().eval()
    mask = torch.ones(B, M, dtype=torch.bool)
    mask[1, 4:] = False
    context = ContextSet(torch.randn(B, M, D, dtype=torch.float64), mask)
    query = torch.randn(N, Q, dtype=torch.float64)
    previous = torch.softmax(torch.randn(N, M, dtype=torch.float64), -1) * mask.repeat_interleave(
        K, 0
    )
    return attention, context, query, previous


def by_hand(attention, context, query, previous):
    """One number at a time, as the papers write it."""
    config = attention.config
    w = {name: p.detach().numpy() for name, p in attention.named_parameters()}
    all_weights, all_contexts = [], []
    for row in range(N):
        values = context.values[row // K].numpy()
        allowed = list(context.mask[row // K].numpy())
        before = previous[row].numpy()
        scores = []
        for i in range(M):
            inner = (
                w["key.weight"] @ values[i] + w["key.bias"] + w["query.weight"] @ query[row].numpy()
            )
            if config.kind == "location":
                half = config.width // 2
                seen = np.array(
                    [
                        sum(
                            w["filters.weight"][f, 0, j] * before[i + j - half]
                            for j in range(config.width)
                            if 0 <= i + j - half < M
                        )
                        for f in range(config.filters)
                    ]
                )
                inner = inner + w["location.weight"] @ seen
            scores.append(float(w["score.weight"][0] @ np.tanh(inner)))
        if config.window:
            focus = int(np.argmax(np.cumsum(before) >= sum(before) / 2))  # the median
            allowed = [ok and abs(i - focus) <= config.window for i, ok in enumerate(allowed)]
        if config.top_k:
            ranked = sorted((i for i in range(M) if allowed[i]), key=lambda i: -scores[i])
            allowed = [i in ranked[: config.top_k] for i in range(M)]
        function = (lambda e: 1 / (1 + math.exp(-e))) if config.smoothing else math.exp
        mass = [
            function(e / config.temperature) if ok else 0.0
            for e, ok in zip(scores, allowed, strict=True)
        ]
        weights = np.array(mass) / sum(mass)
        all_weights.append(weights)
        all_contexts.append(sum(weights[i] * values[i] for i in range(M)))
    return np.array(all_weights), np.array(all_contexts)


@pytest.mark.parametrize("name", VARIANTS)
def test_attention_equals_the_equations(name):
    attention, context, query, previous = setting(VARIANTS[name])
    focus = attention(query, attention.prepare(context), previous)
    weights, contexts = by_hand(attention, context, query, previous)
    np.testing.assert_allclose(focus.weights.detach().numpy(), weights, atol=1e-12)
    np.testing.assert_allclose(focus.context.detach().numpy(), contexts, atol=1e-12)


@pytest.mark.parametrize("name", VARIANTS)
def test_gradients_by_finite_differences(name):
    attention, context, query, previous = setting(VARIANTS[name])

    def run(query, values, previous):
        focus = attention(query, attention.prepare(ContextSet(values, context.mask)), previous)
        return focus.context, focus.weights

    arguments = (query, context.values, previous)
    assert torch.autograd.gradcheck(run, tuple(a.requires_grad_() for a in arguments), atol=1e-6)


def test_rows_that_share_a_context_equal_rows_with_their_own():
    attention, context, query, previous = setting(VARIANTS["location"])
    shared = attention(query, attention.prepare(context), previous)
    own = attention(
        query, attention.prepare(context.select(torch.arange(B).repeat_interleave(K))), previous
    )
    torch.testing.assert_close(shared.weights, own.weights)
    torch.testing.assert_close(shared.context, own.context)


def test_hard_attention_samples_positions_as_often_as_their_weights():
    torch.manual_seed(1)
    attention = Attention(AttentionConfig(size=7, hard=True), Q, D).train()
    draws = 20_000
    context = ContextSet(torch.randn(1, 4, D), torch.tensor([[True, True, True, False]]))
    query, previous = torch.randn(1, Q).expand(draws, Q), torch.zeros(draws, 4)
    sampled = torch.zeros(draws, dtype=torch.bool)
    focus = attention(query, attention.prepare(context), previous, expected=sampled)
    assert torch.equal(focus.used.sum(1), torch.ones(draws))
    assert set(focus.used.unique().tolist()) == {0.0, 1.0}
    expected = focus.weights[0].detach()
    error = (focus.used.mean(0) - expected).abs()
    assert bool((error <= 4 * (expected * (1 - expected) / draws).sqrt() + 1e-9).all())
    assert float(focus.used[:, 3].sum()) == 0  # never a masked place


def test_hard_attention_uses_the_expectation_unless_it_is_to_sample():
    attention = Attention(AttentionConfig(size=7, hard=True), Q, D).train()
    context = attention.prepare(ContextSet(torch.randn(2, 4, D), torch.ones(2, 4).bool()))
    query, previous = torch.randn(2, Q), torch.zeros(2, 4)
    focus = attention(query, context, previous, expected=torch.tensor([True, False]))
    torch.testing.assert_close(focus.used[0], focus.weights[0])
    assert float(focus.used[1].detach().max()) == 1.0
    focus = attention(query, context, previous)
    torch.testing.assert_close(focus.used, focus.weights)


def test_cumulative_attention_remembers_the_sum():
    attention = Attention(AttentionConfig(kind="location", size=7, cumulative=True), Q, D)
    context = attention.prepare(ContextSet(torch.randn(1, 4, D), torch.ones(1, 4).bool()))
    seen = torch.zeros(1, 4)
    weights = []
    for _ in range(3):
        focus = attention(torch.randn(1, Q), context, seen)
        seen = attention.remember(seen, focus)
        weights.append(focus.weights)
    torch.testing.assert_close(seen, sum(weights))


def test_a_window_follows_the_last_weights_and_not_their_sum():
    """After two steps at position 2 and one at 9 the sum's median is at 2, the last one's at 9."""
    config = AttentionConfig(kind="location", size=7, cumulative=True, window=1)
    attention = Attention(config, Q, D)
    context = attention.prepare(ContextSet(torch.randn(1, 12, D), torch.ones(1, 12).bool()))
    seen = attention.nothing(context.values, 1)
    for place in (2, 2, 9):
        weights = F.one_hot(torch.tensor([place]), 12).float()
        seen = attention.remember(seen, Focus(weights, weights, weights))
    last, summed = attention._recall(seen)
    assert summed[0, [2, 9]].tolist() == [2, 1]
    assert last[0].argmax() == 9
    focus = attention(torch.randn(1, Q), context, seen)
    assert focus.weights[0].nonzero().flatten().tolist() == [8, 9, 10]


@pytest.mark.parametrize("scale", [1.0, 1e4, 1e30])
def test_masked_softmax_never_gives_nan(scale):
    scores = torch.tensor([[1.0, -2.0, 3.0], [0.0, 0.0, 0.0], [-5.0, 5.0, 1.0]]) * scale
    mask = torch.tensor([[True, True, False], [False, False, False], [False, True, False]])
    weights = masked_softmax(scores.requires_grad_(), mask)
    weights.square().sum().backward()
    assert torch.isfinite(weights).all()
    assert torch.isfinite(scores.grad).all()
    assert weights[1].tolist() == [0, 0, 0]
    assert weights[2].tolist() == [0, 1, 0]


def test_smoothing_survives_scores_that_underflow():
    attention, context, query, previous = setting(VARIANTS["smoothing"])
    attention.score.weight.data.fill_(-1e4)
    attention.key.bias.data.fill_(5.0)
    focus = attention(query, attention.prepare(context), previous)
    assert torch.isfinite(focus.weights).all()
