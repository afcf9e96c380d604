"""One training step of the captioner against its matrix products at the machine's measured peak.

    python -m benchmarks.training_step [repeats]

Forward pass, loss and backward pass of the decoder with soft attention at the sizes of Xu et al.
(64 captions, 14 × 14 places of 512 numbers), the optimiser left out. Every time is the best of
`repeats`, all things measured in turns, the peak among them, so that a busy machine shows in all.
With one thread (OMP_NUM_THREADS=1) it is processor time, which other work disturbs less.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from unittest.mock import patch

import torch
from torch import Tensor
from torch.nn import functional as F

from benchmarks import machine
from sightline.config import DecoderConfig, LossConfig
from sightline.nn.decoder import Decoder, mean_value
from sightline.nn.kernels import additive, fused
from sightline.nn.kernels.additive import scorer
from sightline.nn.kernels.malloc import keep_freed_memory
from sightline.nn.losses import sequence_loss
from sightline.types import ContextSet

B, M, T, V, WIDTH = 64, 196, 12, 8000, 512  # WIDTH: of values, embedding, state and attention
BEAM = 5
SHARED = 4  # captions of one picture in a batch, in the row that says so
Work = dict[str, Callable[[], object]]


def products(of_values: bool = False, pictures: int = B) -> dict[str, int]:
    """FLOPs of the matrix products of a step: forward, and to inputs and weights backward.

    Values that come from a cache need no gradient: their products backward are not counted.
    """
    rows, square = B * T, 2 * WIDTH * WIDTH
    backward = 3 if of_values else 2
    return {
        "keys": backward * pictures * M * square,
        "first state": (backward + 3) * 2 * B * square,
        "LSTM": 3 * rows * 3 * 4 * square,
        "query and gate": 3 * rows * (square + 2 * WIDTH),
        "weighted sum": backward * 2 * rows * M * WIDTH,
        "deep output": 3 * rows * 2 * square,
        "output layer": 3 * rows * 2 * WIDTH * V,
    }


def straightforward(
    decoder: Decoder, tokens: Tensor, values: Tensor, once: bool
) -> tuple[Tensor, Tensor]:
    """The loop as tutorials write it, step by step, all left to autograd.

    tokens (N, T), values (N, M, D), a copy for each row → logits (N, T, V), weights (N, T, M).
    """
    attention, cell = decoder.attention, decoder.recurrent
    assert attention is not None
    mean = values.mean(1)
    h, c = (f(mean) for f in decoder.enter_state)
    embedded, keys = decoder.drop(decoder.embed(tokens)), attention.key(values)
    logits, weights = [], []
    for t in range(tokens.shape[1]):
        projected = keys if once else attention.key(values)
        scores = attention.score(torch.tanh(projected + attention.query(h)[:, None])).squeeze(2)
        alpha = torch.softmax(scores, 1)
        z = torch.sigmoid(decoder.gate(h)) * (values * alpha[..., None]).sum(1)
        h, c = torch.lstm_cell(torch.cat([embedded[:, t], z], 1), (h, c), *cell.weights(0))
        out = decoder.from_hidden(decoder.drop(h)) + decoder.from_context(z)
        logits.append(decoder.output(embedded[:, t] + out))
        weights.append(alpha)
    return torch.stack(logits, 1), torch.stack(weights, 1)


def training_steps(
    decoder: Decoder, values: Tensor, tokens: Tensor
) -> tuple[Work, dict[str, dict[str, int]]]:
    """Ours, ours with the fused paths off, and the straightforward loop; and their products."""
    before, after = tokens[:, :-1], tokens[:, 1:]

    def ours(given: Tensor = values) -> None:
        decoder.zero_grad()
        context = ContextSet(given, torch.ones(given.shape[:2], dtype=torch.bool))
        decoded = decoder(before, decoder.start(context, per_example=B // len(given)))
        sequence_loss(decoder, decoded, after, LossConfig())[1].total.backward()

    def tutorial(once: bool) -> None:
        decoder.zero_grad()
        logits, _ = straightforward(decoder, before, values, once)
        F.cross_entropy(logits.flatten(0, 1), after.flatten()).backward()

    shared = f"ours, {SHARED} captions of each picture"
    work: Work = {
        "ours": ours,
        "ours, values need a gradient too": lambda: ours(values.detach().requires_grad_()),
        shared: lambda: ours(values[: B // SHARED]),
        "ours, without a C compiler": lambda: in_tiles(ours),
        "ours, fused paths off": lambda: plainly(ours),
        "straightforward, keys once": lambda: tutorial(once=True),
        "straightforward, keys at every step": lambda: tutorial(once=False),
    }
    needs = {name: products() for name in work}
    needs["ours, values need a gradient too"] = products(of_values=True)
    needs[shared] = products(pictures=B // SHARED)
    return work, needs


def plainly(work: Callable[[], object]) -> None:
    """The same work with the plain equations and autograd."""
    with patch.object(fused, "usable", lambda _: False):
        work()


def in_tiles(work: Callable[[], object]) -> None:
    """The same work with attention's scores by PyTorch's operations, as without a compiler."""
    with patch.object(additive, "compiled", lambda _: None):
        work()


def parts(decoder: Decoder, values: Tensor) -> Work:
    """The pieces that a step is made of, alone, T times where a step has them T times."""
    attention, cell = decoder.attention, decoder.recurrent
    assert attention is not None
    keys, v = attention.key(values).detach(), attention.score.weight[0].detach()
    attend = scorer(keys, v, each=1, many=True)
    state, wide = torch.randn(B, WIDTH), torch.randn(B, 4 * WIDTH)
    d_scores = torch.randn(B, M)
    w = torch.cat([p.detach() for p in (cell.weight_hh_l0, attention.query.weight)])
    w_z = cell.weight_ih_l0[:, WIDTH:].detach().contiguous()
    d_all, d_gates = torch.randn(B * T, 5 * WIDTH), torch.randn(B * T, 4 * WIDTH)
    readouts, d_logits = torch.randn(B * T, WIDTH), torch.randn(B * T, V)
    logits, targets = d_logits.clone().requires_grad_(), torch.randint(4, V, (B * T,))
    weight, bias = decoder.output.weight.detach(), decoder.output.bias.detach()

    def times(run: Callable[[], object]) -> Callable[[], object]:
        return lambda: [run() for _ in range(T)]

    def attention_scores() -> None:
        attend = scorer(keys, v, each=1, many=True)
        times(lambda: attend(state))()

    def attention_scores_backward() -> None:
        backward = attend.backward()
        times(lambda: backward(state, d_scores))()
        backward.finish()

    def weighted_sums() -> None:
        torch.bmm(d_scores[:, None], values)
        torch.bmm(state[:, None], values.transpose(1, 2))

    def pointwise() -> None:
        gates = wide.sigmoid()
        fused._cell_backward(gates, state, state, state, state, wide)
        torch.addcmul(state * state, state, state).tanh_().mul_(state)

    return {
        "keys": lambda: (
            values @ attention.key.weight.t(), keys.flatten(0, 1).t() @ values.flatten(0, 1)
        ),
        "mean value": lambda: mean_value(ContextSet(values, torch.ones(B, M, dtype=torch.bool))),
        "attention scores": attention_scores,
        "attention scores, backward": attention_scores_backward,
        "weighted sums": times(weighted_sums),
        "LSTM and query, products of the steps": times(
            lambda: (state @ w.t(), state @ w_z.t(), wide @ w_z, d_all[:B] @ w)
        ),
        "LSTM and query, products at once": lambda: (
            readouts @ w_z.t(), d_gates @ w_z, d_gates.t() @ readouts,
            d_all.t() @ readouts, d_gates.t() @ readouts,
        ),
        "LSTM, pointwise": times(pointwise),
        "deep output": lambda: [readouts @ weight[:WIDTH] for _ in range(6)],
        "output layer": lambda: (
            F.linear(readouts, weight, bias), d_logits @ weight,
            d_logits.t() @ readouts, d_logits.sum(0),
        ),
        "softmax": lambda: F.cross_entropy(logits, targets).backward(),
    }  # fmt: skip


def search_steps(decoder: Decoder, values: Tensor) -> Work:
    """One step of a beam search over B pictures."""
    with torch.inference_mode():
        state = decoder.start(ContextSet(values, torch.ones(B, M, dtype=torch.bool)))
        state = decoder.select(state, torch.arange(B).repeat_interleave(BEAM))

    @torch.inference_mode()
    def step() -> None:
        decoder.step(torch.full((B * BEAM,), 5), state)

    return {"search step": step, "search step, fused paths off": lambda: plainly(step)}


def best_of(works: Work, repeats: int) -> dict[str, float]:
    """The best time of each, in milliseconds, taken in turns."""
    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    best = dict.fromkeys(works, float("inf"))
    for _ in range(repeats):
        for name, work in works.items():
            began = clock()
            work()
            best[name] = min(best[name], 1e3 * (clock() - began))
    return best


def main() -> None:
    repeats = int(sys.argv[1]) if len(sys.argv) > 1 else 7
    kept = keep_freed_memory()
    torch.manual_seed(0)
    decoder = Decoder(DecoderConfig(), V, WIDTH).train()
    values, tokens = torch.randn(B, M, WIDTH).relu(), torch.randint(4, V, (B, T + 1))
    square = torch.randn(2048, 2048)
    steps, needs = training_steps(decoder, values, tokens)
    pieces, search = parts(decoder, values), search_steps(decoder, values)
    best = best_of({"peak": lambda: square @ square} | steps | pieces | search, repeats)
    peak = 2 * 2048**3 / best["peak"]  # FLOP per millisecond

    print(machine.describe())
    print(f"torch: {torch.get_num_threads()} threads, peak {peak / 1e6:.0f} GFLOP/s")
    compiled = additive.compiled(torch.float32) is not None
    print(f"attention's scores: {'compiled' if compiled else 'in tiles, for want of a compiler'}")
    print(f"B {B}, places {M}, T {T}, V {V}, all widths {WIDTH}; float32; no optimiser;", end=" ")
    print(f"freed memory is {'kept' if kept else 'handed back'}\n")
    print(f"{'training step':<38} {'ms':>7}  × its products at the peak")
    for name in steps:
        floor = sum(needs[name].values()) / peak
        print(f"{name:<38} {best[name]:7.0f}  {best[name] / floor:5.2f}  of {floor:4.0f} ms")
    print(f"\n{'where the time of ours goes':<38} {'ms':>7}   share")
    for name in pieces:
        print(f"{name:<38} {best[name]:7.1f}  {best[name] / best['ours']:5.1%}")
    rest = best["ours"] - sum(best[name] for name in pieces)
    print(f"{'rest (embedding, copies, Python)':<38} {rest:7.1f}  {rest / best['ours']:5.1%}")
    counted = ", ".join(f"{name} {flops / 1e9:.1f}" for name, flops in products().items())
    print(f"\nits products, GFLOP: {counted}")
    print(f"\n{f'inference, {B} × beam {BEAM}':<38} {'ms':>7}")
    for name in search:
        print(f"{name:<38} {best[name]:7.1f}")


if __name__ == "__main__":
    main()
