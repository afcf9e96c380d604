"""Recurrent cells (vanilla, GRU, LSTM), in stacks of any number of layers.

Where nothing is fed back between steps, `sequence` runs the whole input in PyTorch's fused
kernel; where something is (attention, sampling), `step` computes one step from the equations.
Both use the same weights, named as in `torch.nn.LSTM`, so its state dicts load unchanged.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sightline.config import CellKind

# One tensor (h) for vanilla and GRU, two (h, c) for LSTM; each (layers, N, hidden).
RecurrentState = tuple[Tensor, ...]

NAMES = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")  # of each layer
GATES = {"rnn": 1, "gru": 3, "lstm": 4}


class Recurrent(nn.Module):
    """`layers` cells, each fed by the one below; `h^l` from `h^{l-1}`."""

    def __init__(
        self, kind: CellKind, input_size: int, hidden: int, layers: int = 1, dropout: float = 0.0
    ) -> None:
        super().__init__()
        self.kind: CellKind = kind
        self.input_size = input_size
        self.hidden = hidden
        self.layers = layers
        self.dropout = dropout  # between layers
        rows = GATES[kind] * hidden
        for layer in range(layers):
            fan_in = input_size if layer == 0 else hidden
            shapes: list[tuple[int, ...]] = [(rows, fan_in), (rows, hidden), (rows,), (rows,)]
            for name, shape in zip(NAMES, shapes, strict=True):
                self.register_parameter(f"{name}_l{layer}", nn.Parameter(torch.empty(shape)))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Uniform input weights, orthogonal recurrent ones; an LSTM begins by remembering."""
        bound = 1 / math.sqrt(self.hidden)
        for name, parameter in self.named_parameters():
            if name.startswith("weight_hh"):
                for block in parameter.data.chunk(GATES[self.kind]):
                    nn.init.orthogonal_(block)
            elif name.startswith("weight_ih"):
                nn.init.uniform_(parameter, -bound, bound)
            else:
                nn.init.zeros_(parameter)
        if self.kind == "lstm":
            self.remember(1.0)

    def remember(self, bias: float) -> None:
        """Begin an LSTM's forget gates with this bias: a cell keeps σ(bias) of itself a step."""
        for layer in range(self.layers):
            self.weights(layer)[2].data[self.hidden : 2 * self.hidden] = bias

    def weights(self, layer: int) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """weight_ih, weight_hh, bias_ih, bias_hh of one layer."""
        return tuple(getattr(self, f"{name}_l{layer}") for name in NAMES)

    def start(self, rows: int) -> RecurrentState:
        """The state of zeros."""
        weight = self.weights(0)[0]
        zeros = weight.new_zeros(self.layers, rows, self.hidden)
        return (zeros, zeros) if self.kind == "lstm" else (zeros,)

    def sequence(self, inputs: Tensor, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """All steps at once: (N, T, input_size) → top layer's h (N, T, hidden), last state."""
        weights = [weight for layer in range(self.layers) for weight in self.weights(layer)]
        has_bias, bidirectional, batch_first = True, False, True
        options = (has_bias, self.layers, self.dropout, self.training, bidirectional, batch_first)
        if self.kind == "lstm":
            if _halves(inputs):
                weights, inputs = [weight.bfloat16() for weight in weights], inputs.bfloat16()
                state = tuple(part.bfloat16() for part in state)
            outputs, h, c = torch.lstm(inputs, state, weights, *options)
            exact = self.weights(0)[0].dtype
            return outputs.to(exact), (h.to(exact), c.to(exact))
        fused = torch.gru if self.kind == "gru" else torch.rnn_tanh
        outputs, h = fused(inputs, state[0], weights, *options)
        return outputs, (h,)

    def project(self, inputs: Tensor) -> Tensor:
        """The part of the first layer's gates that does not depend on the state: W x + b.

        Takes (…, input_size), or the leading columns of it, for a decoder that computes these for
        all steps at once and adds the rest at each.
        """
        weight, _, bias, _ = self.weights(0)
        return F.linear(inputs, weight[:, : inputs.shape[-1]], bias)  # (…, gates · hidden)

    def step(
        self, projected: Tensor, state: RecurrentState, *, train: bool = False
    ) -> tuple[Tensor, RecurrentState]:
        """One step: a projected input (N, gates · hidden) → top layer's h (N, hidden), state.

        There is dropout between layers only with `train`: tokens are drawn without.
        """
        layers: list[RecurrentState] = []
        for layer in range(self.layers):
            _, weight_hh, _, bias_hh = self.weights(layer)
            before = tuple(part[layer] for part in state)
            recurrent = F.linear(before[0], weight_hh, bias_hh)
            layers.append(_cell(self.kind, projected, recurrent, before))
            if layer + 1 < self.layers:
                weight_ih, _, bias_ih, _ = self.weights(layer + 1)
                below = F.dropout(layers[-1][0], self.dropout, train)
                projected = F.linear(below, weight_ih, bias_ih)
        return layers[-1][0], tuple(torch.stack(parts) for parts in zip(*layers, strict=True))


def _halves(inputs: Tensor) -> bool:
    """Whether a fused LSTM rounds as `training.precision` lets products do: half of its time.

    PyTorch rounds the factors of other products by itself.
    """
    allowed = torch.get_float32_matmul_precision() == "medium"
    here = inputs.device.type == "cpu" and inputs.dtype == torch.float32
    return bool(allowed and here and torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _cell(
    kind: CellKind, inputs: Tensor, recurrent: Tensor, before: RecurrentState
) -> RecurrentState:
    """One cell's equations, given W x + b and U h₋ + b' (both (N, gates · hidden))."""
    if kind == "rnn":
        return (torch.tanh(inputs + recurrent),)
    if kind == "gru":
        x_reset, x_update, x_new = inputs.chunk(3, dim=-1)
        h_reset, h_update, h_new = recurrent.chunk(3, dim=-1)
        reset = torch.sigmoid(x_reset + h_reset)
        update = torch.sigmoid(x_update + h_update)
        new = torch.tanh(x_new + reset * h_new)
        return (new + update * (before[0] - new),)
    i, f, g, o = (inputs + recurrent).chunk(4, dim=-1)  # Xu et al. eq. 1-3
    c = torch.sigmoid(f) * before[1] + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c
