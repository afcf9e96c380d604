"""The decoder of Xu et al.: a conditional recurrent language model that attends at every step.

With no context set it is a plain recurrent language model. Where the context enters (the first
state, a step before the first word, every step, attention) is configuration, not code.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sightline.config import DecoderConfig
from sightline.data.vocabulary import PAD, SPECIALS
from sightline.nn.attention import Attention, Focus, rows_of
from sightline.nn.dropout import Dropout
from sightline.nn.heads import CopyHead, PointerHead, VocabularyHead, build_head
from sightline.nn.kernels import fused
from sightline.nn.kernels.fused import Steps
from sightline.nn.kernels.packing import Packing
from sightline.nn.recurrent import Recurrent, RecurrentState
from sightline.types import ContextSet

M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True)
class DecoderState:
    """Everything that one step hands to the next; nothing is kept on the module."""

    recurrent: RecurrentState  # each (layers, N, H)
    context: ContextSet | None = None  # of B examples, N = B · K rows
    attended: Tensor | None = None  # (N, M): previous weights, their sum, or (N, 2, M) both
    constant: Tensor | None = None  # (N, H'): the context's mean, fed at every step
    # (N,) bool: hard attention uses α in these rows and samples in the others; None: α in all
    expected: Tensor | None = None
    # of a pointer head: position i is token i; of a copying one: the positions that name tokens
    pointers: ContextSet | None = None
    prior: RecurrentState = ()  # of deep fusion's language model
    draws: Tensor | None = None  # (N, T) in [0, 1): by which hard attention samples at each step

    def __len__(self) -> int:
        return int(self.recurrent[0].shape[1])

    @property
    def tensors(self) -> RecurrentState:
        """What has to be saved of a state that is carried over."""
        return self.recurrent

    def detach(self) -> DecoderState:
        """The same state without its history: truncated backpropagation cuts here."""
        return replace(self, recurrent=tuple(part.detach() for part in self.recurrent))


@dataclass(frozen=True)
class Decoded:
    """A teacher-forced pass over T tokens."""

    readouts: Tensor  # (N, T, R): what the head turns into logits
    weights: Tensor | None  # (N, T, M): α
    used: Tensor | None  # (N, T, M): α, or the one-hot samples of hard attention
    state: DecoderState


class Decoder(nn.Module):
    """p(y_t | y_<t, context set)."""

    def __init__(self, config: DecoderConfig, vocab_size: int, context_size: int = 0) -> None:
        super().__init__()
        self.config = config
        # 0: with a pointer head there are as many tokens as positions, and the special ones
        self.vocab_size = 0 if config.head == "pointer" else vocab_size
        self.context_size = context_size
        entries = config.context if context_size else ()
        if config.head != "pointer":
            self.embed = nn.Embedding(vocab_size, config.embedding, padding_idx=PAD)
            nn.init.normal_(self.embed.weight, std=config.embedding**-0.5)
        self.attention: Attention | None = None
        inputs = config.embedding
        if "first" in entries:
            self.enter_first = nn.Linear(context_size, config.embedding)
            # seen once, it has to leave its mark: PyTorch's own weights are a tenth as large
            nn.init.normal_(self.enter_first.weight, std=0.2)
        if "every" in entries:
            self.enter_every = nn.Linear(context_size, config.embedding)
            inputs += config.embedding
        if "state" in entries:
            parts = 2 if config.cell == "lstm" else 1
            self.enter_state = nn.ModuleList(  # f_init,h and f_init,c
                nn.Sequential(
                    nn.Linear(context_size, config.hidden),
                    nn.ReLU(),
                    nn.Linear(config.hidden, config.layers * config.hidden),
                    nn.Tanh(),
                )
                for _ in range(parts)
            )
        if context_size and config.attention.kind != "none":
            self.attention = Attention(config.attention, config.hidden, context_size)
            inputs += context_size
            if config.gate:
                self.gate = nn.Linear(config.hidden, 1)  # f_β
        self.entries = entries
        self.recurrent = Recurrent(
            config.cell, inputs, config.hidden, config.layers, config.dropout
        )
        if "first" in entries and config.cell == "lstm":
            self.recurrent.remember(3.0)  # with 1, a third of what it saw is left after ten words
        self.drop = Dropout(config.dropout)
        readout = config.hidden
        if config.output == "deep":
            readout = config.embedding
            self.from_hidden = nn.Linear(config.hidden, readout)  # L_h
            if self.attention is not None:
                self.from_context = nn.Linear(context_size, readout, bias=False)  # L_z
        self.readout_size = readout
        embed = None if config.head == "pointer" else self.embed
        self.output = build_head(config, readout, context_size, embed)  # L_o

    def start(self, context: ContextSet, per_example: int = 1) -> DecoderState:
        """The state before the first token: `per_example` rows for each context set."""
        rows = len(context) * per_example
        recurrent = self.recurrent.start(rows)
        if not self.context_size:  # a language model
            return DecoderState(recurrent)
        mean = rows_of(mean_value(context), rows)  # (N, D)
        if "state" in self.entries:
            shape = (rows, self.config.layers, self.config.hidden)
            recurrent = tuple(f(mean).view(shape).transpose(0, 1) for f in self.enter_state)
        constant = self.enter_every(mean) if "every" in self.entries else None
        head, attended = self.output, None
        pointers = None
        if isinstance(head, PointerHead | CopyHead):
            pointers = head.prepare(context)
        if self.attention is not None:
            context = self.attention.prepare(context)
            attended = self.attention.nothing(context.values, rows)
        state = DecoderState(recurrent, context, attended, constant, pointers=pointers)
        if "first" in self.entries:
            projected = self.recurrent.project(self._with_constant(self.enter_first(mean), state))
            _, recurrent = self.recurrent.step(projected, state.recurrent, train=self.training)
            state = replace(state, recurrent=recurrent)
        return state

    def select(self, state: DecoderState, rows: Tensor) -> DecoderState:
        """The state of the given rows. Contexts are shared, not copied, while rows stay grouped."""
        context, pointers = (
            None if shared is None else _select_context(shared, rows // (len(state) // len(shared)))
            for shared in (state.context, state.pointers)
        )
        attended, constant, expected = (
            None if part is None else part[rows]
            for part in (state.attended, state.constant, state.expected)
        )
        recurrent, prior = (
            tuple(part[:, rows] for part in parts) for parts in (state.recurrent, state.prior)
        )
        return DecoderState(recurrent, context, attended, constant, expected, pointers, prior)

    def forward(
        self,
        tokens: Tensor,  # (N, T): y_0 … y_{T-1}, the begin token first
        state: DecoderState,
        chosen: Tensor | None = None,  # (N, T): positions for hard attention instead of samples
    ) -> Decoded:
        """Teacher forcing: read the given tokens, predict the one after each."""
        embedded = self.drop(self._embed(tokens, state))  # (N, T, E)
        inputs = self._with_constant(embedded, state)
        if self.attention is None:  # nothing is fed back: the fused path
            hidden, recurrent = self.recurrent.sequence(inputs, state.recurrent)
            readouts = self._readout(embedded, self.drop(hidden), None)
            return Decoded(readouts, None, None, replace(state, recurrent=recurrent))
        one_lstm = self.config.cell == "lstm" and self.config.layers == 1
        steered = state.context is not None and state.context.bias is not None
        if one_lstm and self.attention.is_plain and not steered and fused.usable(inputs):
            steps, state = self._fused_loop(tokens, inputs, state, chosen)
        else:
            steps, state = self._loop(inputs, state, chosen)
        readouts = self._readout(embedded, self.drop(steps.hidden), steps.context)
        return Decoded(readouts, steps.weights, steps.used, state)

    def _loop(
        self, inputs: Tensor, state: DecoderState, chosen: Tensor | None
    ) -> tuple[Steps, DecoderState]:
        """Every step in turn, for any cell and attention."""
        projected = self.recurrent.project(inputs)  # all steps at once: (N, T, gates · H)
        from_context = self._context_weight
        parts = []
        # parts of tensors are taken once, for their gradients to be put together once
        for t, now in enumerate(projected.unbind(1)):
            look = None if chosen is None else chosen[:, t]
            draws = None if state.draws is None else state.draws[:, t]
            hidden, context, focus, state = self._step(
                now, from_context, state, look, draws, train=self.training
            )
            parts.append((hidden, context, focus.weights, focus.used))
        return Steps(*(torch.stack(part, 1) for part in zip(*parts, strict=True))), state

    def _fused_loop(
        self, tokens: Tensor, inputs: Tensor, state: DecoderState, chosen: Tensor | None
    ) -> tuple[Steps, DecoderState]:
        """The same for one LSTM layer and plain additive attention, several times faster.

        A row takes part in a step while something of it is still to be read.
        """
        packing = Packing(tokens)
        attention, context, expected = self.attention, state.context, state.expected
        assert attention is not None
        assert context is not None
        weight_ih, weight_hh, bias_ih, bias_hh = self.recurrent.weights(0)
        from_input, from_context = weight_ih.split([inputs.shape[-1], self.context_size], dim=1)
        factors = [weight_hh, attention.query.weight]  # all that h_{t-1} is multiplied with
        biases: list[Tensor] = [attention.key.bias]
        if self.config.gate:
            factors.append(self.gate.weight)
            biases.append(self.gate.bias)

        looks = None if chosen is None else packing.pack(chosen)
        in_mean = None if expected is None else packing.pack(expected[:, None].expand_as(tokens))
        draws = None if state.draws is None else packing.pack(state.draws)

        def look(weights: Tensor, now: slice) -> Tensor:
            given = (x if x is None else x[now] for x in (looks, in_mean, draws))
            return attention.look(weights, *given)

        one = attention.chooses(chosen, expected)
        steps, (hidden, cell, weights) = fused.attend_and_advance(
            packing,
            F.linear(packing.pack(inputs), from_input, bias_ih + bias_hh),
            (state.recurrent[0][0], state.recurrent[1][0]),
            context,
            (torch.cat(factors), torch.cat(biases)),
            from_context,
            attention.score.weight[0] / attention.config.temperature,
            look if one else None,
            in_mean if one else None,
        )
        return steps, replace(state, recurrent=(hidden[None], cell[None]), attended=weights)

    def step(
        self, tokens: Tensor, state: DecoderState, without: Sequence[int] = ()
    ) -> tuple[Tensor, Tensor | None, DecoderState]:
        """One step of generation: tokens (N,) → logits (N, V), weights (N, M), next state.

        Tokens `without` are left out. No dropout, in training too. The weights of a pointer are
        its output.
        """
        readout, weights, state = self.advance(tokens, state)
        logits = self.output(readout, state.pointers, without)
        if isinstance(self.output, PointerHead):
            weights = logits.softmax(-1)[:, len(SPECIALS) :]
        return logits, weights, state

    def advance(
        self, tokens: Tensor, state: DecoderState
    ) -> tuple[Tensor, Tensor | None, DecoderState]:
        """The same as far as the readout that the head takes, (N, R)."""
        embedded = self._embed(tokens, state)
        projected = self.recurrent.project(self._with_constant(embedded, state))
        if self.attention is None:
            hidden, recurrent = self.recurrent.step(projected, state.recurrent)
            readout = self._readout(embedded, hidden, None)
            return readout, None, replace(state, recurrent=recurrent)
        hidden, context, focus, state = self._step(projected, self._context_weight, state)
        return self._readout(embedded, hidden, context), focus.used, state

    def _step(
        self,
        projected: Tensor,  # (N, gates · H)
        from_context: Tensor,  # (gates · H, D)
        state: DecoderState,
        chosen: Tensor | None = None,
        draws: Tensor | None = None,
        *,
        train: bool = False,  # whether there is dropout between layers
    ) -> tuple[Tensor, Tensor, Focus, DecoderState]:
        """Attend from h_{t-1}, then advance the cell: h_t (N, H), ẑ_t (N, D)."""
        assert self.attention is not None
        assert state.context is not None
        assert state.attended is not None
        before = state.recurrent[0][-1]  # the top layer's h_{t-1}
        looks = chosen, state.expected, draws
        focus = self.attention(before, state.context, state.attended, *looks)
        context = focus.context
        if self.config.gate:
            context = torch.sigmoid(self.gate(before)) * context  # β_t ẑ_t
        projected = projected + F.linear(context, from_context)
        hidden, recurrent = self.recurrent.step(projected, state.recurrent, train=train)
        attended = self.attention.remember(state.attended, focus)
        return hidden, context, focus, replace(state, recurrent=recurrent, attended=attended)

    @property
    def _context_weight(self) -> Tensor:
        """The first layer's weight for ẑ, the last columns of its input, (gates · H, D)."""
        return self.recurrent.weights(0)[0][:, -self.context_size :]

    def _embed(self, tokens: Tensor, state: DecoderState) -> Tensor:
        if isinstance(self.output, PointerHead):
            assert state.pointers is not None
            return self.output.read(tokens, state.pointers)
        embedded: Tensor = self.embed(tokens)
        return embedded

    def _with_constant(self, embedded: Tensor, state: DecoderState) -> Tensor:
        """The cell's input: the embedding, and the context's mean where it enters."""
        if state.constant is None:
            return embedded
        constant = state.constant
        if embedded.dim() == 3:
            constant = constant[:, None].expand(-1, embedded.shape[1], -1)
        return torch.cat([embedded, constant], dim=-1)

    def _readout(self, embedded: Tensor, hidden: Tensor, context: Tensor | None) -> Tensor:
        """E y_{t-1} + L_h h_t + L_z ẑ_t (Xu et al. eq. 7), or h_t alone."""
        if self.config.output == "plain":
            return hidden
        readout = embedded + self.from_hidden(hidden)
        result: Tensor = readout if context is None else readout + self.from_context(context)
        return result

    def shortlisted(self, index: Tensor) -> Decoder:
        """The same over these tokens: token i is index[i]. All other weights are shared."""
        assert isinstance(self.output, VocabularyHead)
        twin = with_rows(self, self.embed, index)
        twin.output, twin.vocab_size = self.output.shortlisted(index), len(index)
        return twin

    def log_probs(self, decoded: Decoded) -> Tensor:
        """Of every token after each of the T that were read, (N, T, V)."""
        return F.log_softmax(self.output(decoded.readouts, decoded.state.pointers), dim=-1)


def with_rows(reader: M, embed: nn.Embedding, index: Tensor) -> M:
    """A copy that shares its parts but for its embedding, of which it has these rows."""
    twin = copy.copy(reader)
    rows = nn.Embedding.from_pretrained(embed.weight.detach()[index], padding_idx=PAD)
    twin._modules = {**reader._modules, "embed": rows}
    return twin


def mean_value(context: ContextSet) -> Tensor:
    """The mean annotation vector of each example, (B, D)."""
    mask = context.mask.to(context.values.dtype)[:, None]  # (B, 1, M)
    total = torch.bmm(mask, context.values)  # no copy of the values
    mean: Tensor = (total / mask.sum(2, keepdim=True).clamp_min(1.0)).squeeze(1)
    return mean


def _select_context(context: ContextSet, owners: Tensor) -> ContextSet:
    """Context sets for rows with these owners: whole examples where rows stay in equal groups."""
    examples, counts = torch.unique_consecutive(owners, return_counts=True)
    if bool((counts != counts[0]).any()) or examples.unique().numel() != examples.numel():
        return context.select(owners)  # irregular: one context per row
    if examples.numel() == len(context) and bool((examples[1:] > examples[:-1]).all()):
        return context
    return context.select(examples)
