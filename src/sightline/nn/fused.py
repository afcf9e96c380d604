"""Additive attention, alone and in the decoder's loop over time, with hand-written gradients.

Left to autograd, every step keeps its (N, M, A) tanh layer, T gradients of the size of the keys are
summed, and each weight has one small product per step. Here the tanh layer is computed again in the
backward pass (`additive`), the keys' gradient is summed in place, and each weight's gradient is one
product over all steps.

The functions give what the plain equations give (tests/nn/test_fused.py) and keep no state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

from sightline.nn.additive import Scorer, ScorerBackward
from sightline.types import ContextSet

Look = Callable[[Tensor, int], Tensor]  # α (N, M), step → what the context is made with (N, M)


def usable(tensor: Tensor) -> bool:
    """Whether to use these functions: for processors, and not while a graph is being exported."""
    exporting = torch.jit.is_tracing() or torch.compiler.is_compiling()
    return tensor.device.type == "cpu" and not exporting


def additive_scores(keys: Tensor, queries: Tensor, score: Tensor) -> Tensor:
    """e = v · tanh(key + query): keys (B, M, A), queries (N, A), v (A,) → (N, M); N = B · K."""
    scores: Tensor = _Scores.apply(keys, queries, score)
    return scores


class Steps(NamedTuple):
    """What T steps computed."""

    hidden: Tensor  # (N, T, H)
    context: Tensor  # (N, T, D): β ẑ
    weights: Tensor  # (N, T, M): α
    used: Tensor  # (N, T, M): α, or what `look` made of it


def attend_and_advance(
    projected: Tensor,  # (N, T, 4H): W_x x + b of every step
    state: tuple[Tensor, Tensor],  # h, c: (N, H)
    context: ContextSet,  # of B examples, N = B · K; with keys (B, M, A)
    from_hidden: tuple[Tensor, Tensor],  # weight (4H + A + G, H), bias: LSTM, query, gate f_β
    from_context: Tensor,  # (4H, D)
    score: Tensor,  # (A,): v, divided by the temperature
    look: Look | None = None,  # hard attention: replaces α by a sample
    expected: Tensor | None = None,  # (N,) bool: rows in which it does not
) -> tuple[Steps, Tensor]:
    """T steps of attending from h_{t-1} and advancing an LSTM; gives its last c (N, H) too.

    G is 1 with the gate β, 0 without.
    """
    read = (context.keys, context.values, context.mask)
    hidden, contexts, weights, used, cell = _Loop.apply(
        projected, *state, *read, *from_hidden, from_context, score, look, expected
    )
    return Steps(hidden, contexts, weights, weights if look is None else used), cell


class _Scores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, keys: Tensor, queries: Tensor, score: Tensor) -> Tensor:
        ctx.save_for_backward(keys, queries, score)
        return Scorer(keys, score, len(queries) // len(keys), many=False)(queries)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        keys, queries, score = ctx.saved_tensors
        backward = ScorerBackward(Scorer(keys, score, len(queries) // len(keys), many=False))
        d_queries = backward(queries, d_scores)
        d_keys, d_score = backward.finish()
        return d_keys, d_queries, d_score


class _Loop(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        projected: Tensor,
        hidden: Tensor,
        cell: Tensor,
        keys: Tensor,
        values: Tensor,
        mask: Tensor,
        weight: Tensor,
        bias: Tensor,
        from_context: Tensor,
        score: Tensor,
        look: Look | None,
        expected: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        (rows, steps, gates_size), (groups, positions, size) = projected.shape, keys.shape
        width = hidden.shape[1]
        split = (gates_size, size, len(weight) - gates_size - size)
        gates = torch.empty_like(projected)  # (N, T, 4H): σ(i), σ(f), tanh(g), σ(o)
        hiddens, cells = (projected.new_empty(rows, steps, width) for _ in range(2))
        queries = projected.new_empty(rows, steps, size)
        weights = projected.new_empty(rows, steps, positions)
        used = weights if look is None else torch.empty_like(weights)
        seen, contexts = (projected.new_empty(rows, steps, values.shape[2]) for _ in range(2))
        beta = projected.new_ones(rows, steps, 1)
        hidden_mask = ~mask.repeat_interleave(rows // groups, 0)  # (N, M)
        scorer = Scorer(keys, score, rows // groups, many=True)
        # a product with few rows wants its other factor to lie in the order it is read
        weight_t, from_context_t = weight.t().contiguous(), from_context.t().contiguous()
        h, c = hidden, cell
        for t in range(steps):
            # everything that takes h_{t-1}, in one product
            recurrent, queries[:, t], opening = torch.addmm(bias, h, weight_t).split(split, 1)
            scores = scorer(queries[:, t])
            scores.masked_fill_(hidden_mask, torch.finfo(scores.dtype).min)
            # where a row has nothing to see the softmax is uniform, and then all zeros: never NaN
            weights[:, t] = scores.softmax(1).masked_fill_(hidden_mask, 0)
            if look is not None:
                used[:, t] = look(weights[:, t], t)
            seen[:, t] = torch.bmm(_grouped(used[:, t], groups), values).flatten(0, 1)
            if split[2]:
                beta[:, t] = torch.sigmoid(opening)
            torch.mul(beta[:, t], seen[:, t], out=contexts[:, t])
            inner = torch.addmm(recurrent, contexts[:, t], from_context_t)
            now = torch.add(inner, projected[:, t], out=gates[:, t])
            now[:, : 2 * width].sigmoid_()
            now[:, 2 * width : 3 * width].tanh_()
            now[:, 3 * width :].sigmoid_()
            i, f, g, o = now.chunk(4, 1)  # Xu et al. eq. 1-3
            c = torch.addcmul(f * c, i, g, out=cells[:, t])
            h = torch.mul(o, torch.tanh(c), out=hiddens[:, t])
        ctx.save_for_backward(
            hidden, cell, values, weight, from_context, expected,
            gates, hiddens, cells, queries, weights, used, seen, contexts, beta,
        )  # fmt: skip
        ctx.scorer = scorer
        ctx.split = split
        ctx.soft = look is None
        ctx.set_materialize_grads(False)
        return hiddens, contexts, weights, None if look is None else used, cells[:, -1].clone()

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any,
        d_hiddens: Tensor | None,
        d_contexts: Tensor | None,
        d_weights: Tensor | None,
        d_used: Tensor | None,
        d_cell: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        (
            hidden, cell, values, weight, from_context, expected,
            gates, hiddens, cells, queries, weights, used, seen, contexts, beta,
        ) = ctx.saved_tensors  # fmt: skip
        groups = len(values)
        from_context = from_context.contiguous()
        befores = torch.cat([hidden[:, None], hiddens[:, :-1]], 1)  # h_{t-1}
        # the gradients of gates, query and f_β beside each other, as their weights are
        d_inner = hiddens.new_empty(*hiddens.shape[:2], len(weight))
        d_gates, d_queries, d_opening = d_inner.split(ctx.split, 2)
        d_seen = torch.empty_like(seen)
        scorer = ScorerBackward(ctx.scorer)
        dh = torch.zeros_like(hidden)
        dc = torch.zeros_like(cell) if d_cell is None else d_cell
        for t in reversed(range(hiddens.shape[1])):
            dh = _plus(dh, d_hiddens, t)
            c_before = cells[:, t - 1] if t else cell
            dc = _cell_backward(gates[:, t], c_before, cells[:, t], dh, dc, d_gates[:, t])
            dz = _plus(d_gates[:, t] @ from_context, d_contexts, t)
            b = beta[:, t]
            if ctx.split[2]:
                d_beta = (dz * seen[:, t]).sum(1, keepdim=True)
                torch.mul(d_beta, b * (1 - b), out=d_opening[:, t])
            torch.mul(dz, b, out=d_seen[:, t])
            d_alpha = torch.bmm(_grouped(d_seen[:, t], groups), values.transpose(1, 2))
            d_alpha = _plus(d_alpha.flatten(0, 1), d_used, t)
            if expected is not None:
                d_alpha = d_alpha * expected[:, None]
            elif not ctx.soft:  # a sample has no gradient to α
                d_alpha = torch.zeros_like(d_alpha)
            d_alpha = _plus(d_alpha, d_weights, t)
            alpha = weights[:, t]
            d_scores = alpha * (d_alpha - (alpha * d_alpha).sum(1, keepdim=True))
            d_queries[:, t] = scorer(queries[:, t], d_scores)
            dh = d_inner[:, t] @ weight
        flat = d_inner.flatten(0, 1)  # (N · T, 4H + A + G)
        d_keys, d_score = scorer.finish()
        d_values = None
        if ctx.needs_input_grad[4]:
            over_steps = (x.unflatten(0, (groups, -1)).flatten(1, 2) for x in (used, d_seen))
            d_values = torch.bmm(next(over_steps).transpose(1, 2), next(over_steps))
        return (
            d_gates, dh, dc, d_keys, d_values, None,
            flat.t() @ befores.flatten(0, 1), flat.sum(0),
            d_gates.flatten(0, 1).t() @ contexts.flatten(0, 1), d_score, None, None,
        )  # fmt: skip


def _plus(gradient: Tensor, more: Tensor | None, t: int) -> Tensor:
    """The gradient from within the loop and, where there is one, that from outside."""
    return gradient if more is None else gradient + more[:, t]


def _grouped(rows: Tensor, groups: int) -> Tensor:
    """(N, X) → (B, K, X)."""
    return rows.unflatten(0, (groups, -1))


def _cell_backward(
    gates: Tensor, before: Tensor, after: Tensor, dh: Tensor, dc: Tensor, d_gates: Tensor
) -> Tensor:
    """The LSTM's equations backward: writes the gradient before σ and tanh, returns c_{t-1}'s."""
    i, f, g, o = gates.chunk(4, 1)
    d_i, d_f, d_g, d_o = d_gates.chunk(4, 1)
    squashed = torch.tanh(after)
    dc = dc + dh * o * (1 - squashed * squashed)
    torch.mul(dc * g, i * (1 - i), out=d_i)
    torch.mul(dc * before, f * (1 - f), out=d_f)
    torch.mul(dc * i, 1 - g * g, out=d_g)
    torch.mul(dh * squashed, o * (1 - o), out=d_o)
    return dc * f
