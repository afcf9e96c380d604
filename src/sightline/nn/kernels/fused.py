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

from sightline.nn.kernels.additive import CompiledScorer, Scorer, scorer
from sightline.nn.kernels.packing import Packing
from sightline.types import ContextSet

aten = torch.ops.aten  # for the gradients of σ and tanh, each in one pass
Look = Callable[[Tensor, slice], Tensor]  # α (n, M), which of R → what a context is made with


def usable(tensor: Tensor) -> bool:
    """Whether to use these functions: for processors, and not while a graph is being exported."""
    exporting = torch.jit.is_tracing() or torch.compiler.is_compiling()  # type: ignore[no-untyped-call, attr-defined]
    return tensor.device.type == "cpu" and not exporting


def additive_scores(keys: Tensor, queries: Tensor, score: Tensor) -> Tensor:
    """e = v · tanh(key + query): keys (B, M, A), queries (N, A), v (A,) → (N, M); N = B · K."""
    scores: Tensor = _Scores.apply(keys, queries, score)  # type: ignore[no-untyped-call]
    return scores


class Steps(NamedTuple):
    """What T steps computed, for the rows that took part in them."""

    hidden: Tensor  # (N, T, H)
    context: Tensor  # (N, T, D): β ẑ
    weights: Tensor  # (N, T, M): α
    used: Tensor  # (N, T, M): α, or what `look` made of it


def attend_and_advance(
    packing: Packing,  # of N rows and T steps into R
    projected: Tensor,  # (R, 4H): W_x x + b of every step
    state: tuple[Tensor, Tensor],  # h, c: (N, H)
    context: ContextSet,  # of B examples, N = B · K; with keys (B, M, A)
    from_hidden: tuple[Tensor, Tensor],  # weight (4H + A + G, H): LSTM, query, gate f_β; its bias
    from_context: Tensor,  # (4H, D)
    score: Tensor,  # (A,): v, divided by the temperature
    look: Look | None = None,  # hard attention: replaces α by a sample
    expected: Tensor | None = None,  # (R,) bool: rows in which it does not
) -> tuple[Steps, tuple[Tensor, ...]]:
    """T steps of attending from h_{t-1} and advancing an LSTM; gives each row's last h, c, α too.

    G is 1 with the gate β, 0 without. The bias is (A + G,): the LSTM's is in `projected`.
    """
    read = (context.keys, context.values, context.mask)
    hidden, contexts, weights, used, cells = _Loop.apply(  # type: ignore[no-untyped-call]
        packing, projected, *state, *read, *from_hidden, from_context, score, look, expected
    )
    used = weights if look is None else used
    steps = Steps(*(packing.unpack(x) for x in (hidden, contexts, weights, used)))
    return steps, tuple(x[packing.last] for x in (hidden, cells, weights))


class _Scores(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, keys: Tensor, queries: Tensor, score: Tensor) -> Tensor:
        ctx.save_for_backward(keys, queries, score)
        return _scorer(keys, queries, score)(queries)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, d_scores: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        keys, queries, score = ctx.saved_tensors
        backward = _scorer(keys, queries, score).backward()
        d_queries = backward(queries, d_scores)
        d_keys, d_score = backward.finish()
        return d_keys, d_queries, d_score


def _scorer(keys: Tensor, queries: Tensor, score: Tensor) -> Scorer | CompiledScorer:
    """Of many queries to each example, as where a pointer is taught, not of one."""
    each = len(queries) // len(keys)
    return scorer(keys, score, each, many=each > 1)


class _Loop(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any,
        packing: Packing,
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
        (total, gates_size), (groups, positions, size) = projected.shape, keys.shape
        split = (gates_size, size, len(weight) - gates_size - size)
        gates = torch.empty_like(projected)  # (R, 4H): σ(i), σ(f), tanh(g), σ(o)
        hiddens, cells, h_before, c_before = (
            projected.new_empty(total, hidden.shape[1]) for _ in range(4)
        )
        queries = projected.new_empty(total, size)
        weights = projected.new_empty(total, positions)
        used = weights if look is None else torch.empty_like(weights)
        seen, contexts = (projected.new_empty(total, values.shape[2]) for _ in range(2))
        beta = projected.new_ones(total, 1)
        hidden_mask = ~mask.repeat_interleave(len(hidden) // groups, 0)  # (N, M)
        attend = scorer(keys, score, len(hidden) // groups, many=True)
        from_context = from_context.contiguous()  # products with part of a matrix are slower
        h, c = hidden, cell
        for now, live, kept in zip(packing.spans, packing.live, packing.kept, strict=True):
            h, c = h_before[now], c_before[now] = _taken(h, kept), _taken(c, kept)
            # everything that takes h_{t-1}, in one product
            recurrent, query, opening = (h @ weight.t()).split(split, 1)
            torch.add(query, bias[:size], out=queries[now])
            unseen = _taken(hidden_mask, live)
            scores = attend(queries[now], live)
            scores.masked_fill_(unseen, torch.finfo(scores.dtype).min)
            # where a row has nothing to see the softmax is uniform, and then all zeros: never NaN
            weights[now] = scores.softmax(1).masked_fill_(unseen, 0)
            if look is not None:
                used[now] = look(weights[now], now)
            seen[now] = _grouped_product(used[now], values, live, len(hidden))
            if split[2]:
                beta[now] = torch.sigmoid(opening + bias[size:])
            torch.mul(beta[now], seen[now], out=contexts[now])
            torch.add(recurrent, projected[now], out=gates[now])
            gates[now].addmm_(contexts[now], from_context.t())
            c = _cell_forward(gates[now], c, cells[now], hiddens[now])
            h = hiddens[now]
        ctx.save_for_backward(
            values, weight, from_context, expected, gates, cells, h_before, c_before,
            queries, weights, used, seen, contexts, beta,
        )  # fmt: skip
        ctx.packing, ctx.attend = packing, attend
        ctx.split, ctx.soft = split, look is None
        ctx.set_materialize_grads(False)
        return hiddens, contexts, weights, None if look is None else used, cells

    @staticmethod
    @once_differentiable
    def backward(
        ctx: Any,
        d_hiddens: Tensor | None,
        d_contexts: Tensor | None,
        d_weights: Tensor | None,
        d_used: Tensor | None,
        d_cells: Tensor | None,
    ) -> tuple[Tensor | None, ...]:
        (
            values, weight, from_context, expected, gates, cells, h_before, c_before,
            queries, weights, used, seen, contexts, beta,
        ) = ctx.saved_tensors  # fmt: skip
        packing: Packing = ctx.packing
        # the gradients of gates, query and f_β next to each other, as their weights are
        d_inner = cells.new_empty(len(cells), len(weight))
        d_gates, d_queries, d_opening = d_inner.split(ctx.split, 1)
        d_seen = torch.empty_like(seen)
        attend = ctx.attend.backward()
        dh, dc = (torch.zeros_like(cells[packing.spans[-1]]) for _ in range(2))
        for t in reversed(range(len(packing.spans))):
            now, live = packing.spans[t], packing.live[t]
            dh, dc = _plus(dh, d_hiddens, now), _plus(dc, d_cells, now)
            dc = _cell_backward(gates[now], c_before[now], cells[now], dh, dc, d_gates[now])
            dz = _plus(d_gates[now] @ from_context, d_contexts, now)
            b = beta[now]
            if ctx.split[2]:
                d_beta = (dz * seen[now]).sum(1, keepdim=True)
                torch.mul(d_beta, b * (1 - b), out=d_opening[now])
            torch.mul(dz, b, out=d_seen[now])
            of_values = values.transpose(1, 2)
            d_alpha = _grouped_product(d_seen[now], of_values, live, packing.rows)
            d_alpha = _plus(d_alpha, d_used, now)
            if expected is not None:
                d_alpha = d_alpha * expected[now, None]
            elif not ctx.soft:  # a sample has no gradient to α
                d_alpha = torch.zeros_like(d_alpha)
            d_alpha = _plus(d_alpha, d_weights, now)
            alpha = weights[now]
            d_scores = alpha * (d_alpha - (alpha * d_alpha).sum(1, keepdim=True))
            d_queries[now] = attend(queries[now], d_scores, live)
            before = packing.spans[max(0, t - 1)]
            dh = _spread(d_inner[now] @ weight, packing.kept[t], before.stop - before.start)
            dc = _spread(dc, packing.kept[t], before.stop - before.start)
        d_keys, d_score = attend.finish()
        d_values = None
        if ctx.needs_input_grad[5]:
            groups = len(values)
            over_steps = (
                packing.unpack(x).unflatten(0, (groups, -1)).flatten(1, 2) for x in (used, d_seen)
            )  # (B, K · T, M or D)
            d_values = torch.bmm(next(over_steps).transpose(1, 2), next(over_steps))
        return (
            None, d_gates, dh, dc, d_keys, d_values, None,
            d_inner.t() @ h_before, d_inner[:, ctx.split[0] :].sum(0), d_gates.t() @ contexts,
            d_score, None, None,
        )  # fmt: skip


def _plus(gradient: Tensor, more: Tensor | None, now: slice) -> Tensor:
    """The gradient from within the loop and, where there is one, that from outside."""
    return gradient if more is None else gradient + more[now]


def _taken(rows: Tensor, which: Tensor | None) -> Tensor:
    return rows if which is None else rows.index_select(0, which)


def _spread(rows: Tensor, which: Tensor | None, total: int) -> Tensor:
    """The reverse: zeros in the rows that were not taken."""
    return (
        rows if which is None else rows.new_zeros(total, rows.shape[1]).index_copy_(0, which, rows)
    )


def _grouped_product(rows: Tensor, values: Tensor, live: Tensor | None, total: int) -> Tensor:
    """Each row with its example's matrix: (n, X), (B, X, Y) → (n, Y), of N rows the live ones."""
    grouped = _spread(rows, live, total).unflatten(0, (len(values), -1))  # (B, K, X)
    return _taken(torch.bmm(grouped, values).flatten(0, 1), live)


def _cell_forward(gates: Tensor, before: Tensor, cell: Tensor, hidden: Tensor) -> Tensor:
    """The LSTM's equations: turns sums into gates in place, writes and returns c_t, writes h_t."""
    width = cell.shape[1]
    gates[:, : 2 * width].sigmoid_()
    gates[:, 2 * width : 3 * width].tanh_()
    gates[:, 3 * width :].sigmoid_()
    i, f, g, o = gates.chunk(4, 1)  # Xu et al. eq. 1-3
    torch.addcmul(f * before, i, g, out=cell)
    torch.mul(o, torch.tanh(cell), out=hidden)
    return cell


def _cell_backward(
    gates: Tensor, before: Tensor, after: Tensor, dh: Tensor, dc: Tensor, d_gates: Tensor
) -> Tensor:
    """The LSTM's equations backward: writes the gradient before σ and tanh, returns c_{t-1}'s."""
    i, f, g, o = gates.chunk(4, 1)
    d_i, d_f, d_g, d_o = d_gates.chunk(4, 1)
    squashed = torch.tanh(after)
    dc = dc + aten.tanh_backward(dh * o, squashed)
    aten.sigmoid_backward(dc * g, i, grad_input=d_i)
    aten.sigmoid_backward(dc * before, f, grad_input=d_f)
    aten.tanh_backward(dc * i, g, grad_input=d_g)
    aten.sigmoid_backward(dh * squashed, o, grad_input=d_o)
    return dc * f
