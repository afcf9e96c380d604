"""End-to-end memory networks (Sukhbaatar et al. 2015): facts as the context set, hops as steps.

The encoder makes of each fact a vector by each embedding matrix; position 0 of the context set is
the question. A step of the decoder is one hop: it attends to the facts and adds what it read to
its state u. The token of every hop but the last is <pad>, which says nothing; that of the last is
the answer. So the loop, the search and the attention's record are those of every other task.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sightline.config import LossConfig, MemoryConfig
from sightline.data.vocabulary import PAD, SPECIALS, UNKNOWN
from sightline.nn.attention import masked_softmax, rows_of
from sightline.nn.decoder import Decoded, Decoder, DecoderState
from sightline.nn.heads import TiedHead, VocabularyHead
from sightline.nn.losses import Loss, sequence_loss
from sightline.nn.objectives import Likelihood, given_looks
from sightline.types import ContextSet, Inputs, Stream

if TYPE_CHECKING:
    from sightline.nn.model import Batch, EncoderDecoder


class FactEncoder(nn.Module):
    """Word ids (B, 1 + M, L), the question first, to vectors (B, 1 + M, S · d).

    S embedding matrices: A₁, C₁ = A₂, …, C_K with adjacent tying, A, C, B with layer-wise tying.
    """

    def __init__(self, config: MemoryConfig, vocab_size: int) -> None:
        super().__init__()
        self.config = config
        count = config.hops + 1 if config.tying == "adjacent" else 3
        self.tables = nn.ModuleList(
            nn.Embedding(vocab_size, config.size, padding_idx=PAD) for _ in range(count)
        )
        self.times = nn.ParameterList()  # T_A, T_C: of the latest fact, of the one before it …
        for table in self.tables:
            assert isinstance(table, nn.Embedding)
            nn.init.normal_(table.weight, std=0.1)
            table.weight.data[[PAD, UNKNOWN]] = 0.0  # words that were never seen say nothing
            if config.temporal:
                self.times.append(nn.Parameter(0.1 * torch.randn(config.memory, config.size)))
        self.dimension = count * config.size

    def example(self) -> Inputs:
        """Two stories, for the tracer of exports."""
        facts = torch.full((2, 3, self.config.longest), UNKNOWN + 1)
        return Inputs(2, {"facts": Stream(facts, torch.ones(2, 3, dtype=torch.bool))})

    def forward(self, inputs: Inputs) -> ContextSet:
        words, mask = inputs["facts"].values, inputs["facts"].mask  # (B, P, L), (B, P)
        assert mask is not None
        if self.training:  # stories tell the same: each sentence of a batch is read once
            told, which = _distinct(words.flatten(0, 1))
            facts = F.embedding(which.view(words.shape[:2]), self._read(told))
        else:
            facts = self._read(words)  # (B, P, S · d)
        present = mask.to(facts.dtype)[..., None]  # (B, P, 1)
        if self.config.temporal:
            places = torch.arange(words.shape[1], device=words.device)
            is_fact = present * (places > 0)[:, None]
            age = present[..., 0].sum(1, keepdim=True) - 1 - places  # of the latest fact 0
            age = age.clamp(0, self.config.memory - 1).long()  # (B, P)
            facts = facts + F.embedding(age, torch.cat(list(self.times), 1)) * is_fact
        return ContextSet(facts * present, mask)

    def _read(self, words: Tensor) -> Tensor:
        """Sentences (…, L) by each embedding matrix, (…, S · d)."""
        tables = torch.cat(list(self.tables.parameters()), 1)  # (V, S · d)
        sums = self._weights(words) @ F.embedding(words, tables, padding_idx=PAD)  # (…, 2, S · d)
        share = torch.arange(1, self.config.size + 1, device=words.device) / self.config.size
        facts: Tensor = sums[..., 0, :] - share.repeat(len(self.tables)) * sums[..., 1, :]
        return facts

    def _weights(self, words: Tensor) -> Tensor:
        """Of word j in l_kj = (1 − j/J) − (k/d)(1 − 2j/J): 1 − j/J, and 1 − 2j/J; (…, 2, L)."""
        exists = (words != PAD).float()
        if self.config.encoding == "words":
            return torch.stack([exists, torch.zeros_like(exists)], -2)
        length = exists.sum(-1, keepdim=True).clamp_min(1.0)
        place = torch.arange(1, words.shape[-1] + 1, device=words.device) / length
        return torch.stack([(1 - place) * exists, (1 - 2 * place) * exists], -2)


def _distinct(sentences: Tensor) -> tuple[Tensor, Tensor]:
    """The different rows of (R, L), without columns of padding, and which of them each row is."""
    # rows that differ have the same sum with a chance of 2^-64 (unique of rows takes ten times
    # as long)
    base = 6364136223846793005
    powers = [pow(base, j + 1, 2**64) for j in range(sentences.shape[1])]
    factors = [power - 2**64 if power >= 2**63 else power for power in powers]
    sums = (sentences * torch.tensor(factors, device=sentences.device)).sum(1)
    kinds, which = torch.unique(sums, return_inverse=True)
    told = sentences.new_zeros(len(kinds), sentences.shape[1])
    told[which] = sentences
    longest = int((told != PAD).sum(1).max().clamp_min(1))
    return told[:, :longest], which


@dataclass(frozen=True)
class HopState(DecoderState):
    """u in `recurrent`; how many hops there were, the same for all rows."""

    hop: int = 0


class MemoryDecoder(Decoder):
    """A decoder whose steps are hops: u ← u + o, where o = Σ p_i c_i and p = softmax(u · m_i).

    With a gate u ← (1 − T(u)) ⊙ u + T(u) ⊙ o, T(u) = σ(W u + b).
    """

    def __init__(self, config: MemoryConfig, encoder: FactEncoder, vocab_size: int) -> None:
        nn.Module.__init__(self)  # nothing of a recurrent decoder
        self.memory = config
        self.vocab_size = vocab_size
        self.attention = None
        self.slots_in_all = len(encoder.tables)
        first = len(SPECIALS)  # no special token is an answer
        self.output: VocabularyHead
        if config.tying == "adjacent":
            last = encoder.tables[-1]
            assert isinstance(last, nn.Embedding)
            self.output = TiedHead(last, first=first)
        else:
            self.output = VocabularyHead(config.size, vocab_size, first=first)
            self.turn = nn.Linear(config.size, config.size, bias=False)  # H
        if config.gate:
            self.gate = nn.Linear(config.size, config.size)  # T, the same for all hops

    def start(self, context: ContextSet, per_example: int = 1) -> HopState:
        at = 0 if self.memory.tying == "adjacent" else 2  # B = A₁, or its own
        question = self._part(context.values[:, 0], at)  # (B, d)
        return HopState((rows_of(question, len(context) * per_example)[None],), context)

    def select(self, state: DecoderState, rows: Tensor) -> HopState:
        assert isinstance(state, HopState)
        chosen = super().select(state, rows)
        return HopState(chosen.recurrent, chosen.context, hop=state.hop)

    def slots(self, hop: int) -> tuple[int, int]:
        """The places of a hop's keys and of its values among a fact's vectors."""
        return (hop, hop + 1) if self.memory.tying == "adjacent" else (0, 1)

    def _part(self, values: Tensor, at: int) -> Tensor:
        return values[..., at * self.memory.size : (at + 1) * self.memory.size]

    def look(
        self, state: HopState, chosen: Tensor | None = None, *, linear: bool = False
    ) -> tuple[Tensor, Tensor, HopState]:
        """One hop: weights (N, P), what was used of them, and the state after it."""
        context, u = state.context, state.recurrent[0][0]  # (N, d)
        assert context is not None
        key, value = self.slots(state.hop)
        groups, places, _ = context.values.shape
        queries = u.view(groups, -1, self.memory.size)
        scores = queries @ self._part(context.values, key).transpose(1, 2)  # (B, K, P)
        allowed = context.mask.clone()
        allowed[:, 0] = False  # the question is no fact
        allowed = allowed[:, None].expand_as(scores)
        if context.bias is not None:
            scores = scores + context.bias[:, None]
        weights = scores * allowed if linear else masked_softmax(scores, allowed)
        used = weights
        if self.memory.hard:
            best = weights.argmax(-1) if chosen is None else chosen.view(groups, -1)
            used = F.one_hot(best, places) * allowed.any(-1, keepdim=True)
            used = used.to(weights.dtype)
        read = (used @ self._part(context.values, value)).view_as(u)
        kept = self.turn(u) if self.memory.tying == "layerwise" else u
        if self.memory.gate:
            u = torch.lerp(kept, read, torch.sigmoid(self.gate(u)))
        else:
            u = kept + read
        after = replace(state, recurrent=(u[None],), hop=state.hop + 1)
        return weights.reshape(len(u), places), used.reshape(len(u), places), after

    def forward(
        self,
        tokens: Tensor,  # (N, hops), of which only the number counts
        state: DecoderState,
        chosen: Tensor | None = None,  # (N, hops): hard attention looks here, −1 for anywhere
        *,
        linear: bool = False,
    ) -> Decoded:
        assert isinstance(state, HopState)
        steps = []
        for hop in range(tokens.shape[1]):
            given = None if chosen is None else self._given(state, chosen[:, hop])
            weights, used, state = self.look(state, given, linear=linear)
            steps.append((state.recurrent[0][0], weights, used))
        readouts, weights, used = (torch.stack(part, 1) for part in zip(*steps, strict=True))
        return Decoded(readouts, weights, used, state)

    def _given(self, state: HopState, chosen: Tensor) -> Tensor:
        """The supporting fact, or where none is named the one that the model would look at."""
        weights, _, _ = self.look(state)
        return torch.where(chosen >= 0, chosen, weights.argmax(-1))

    def step(
        self, tokens: Tensor, state: DecoderState, without: Sequence[int] = ()
    ) -> tuple[Tensor, Tensor | None, DecoderState]:
        assert isinstance(state, HopState)
        _, used, state = self.look(state)
        u = state.recurrent[0][0]
        if state.hop < self.memory.hops:
            logits = u.new_full((len(u), self.vocab_size), -torch.inf)
            logits[:, PAD] = 0.0
            return logits, used, state
        return self.output(u, without=without), used, state


class Answering(Likelihood):
    """The answer's cross-entropy, and that of looking at the facts that support it."""

    def __init__(self, config: LossConfig, memory: MemoryConfig) -> None:
        super().__init__(config)
        self.memory = memory

    def check(self, decoder: Decoder) -> None:
        """Any goes."""

    def __call__(
        self, model: EncoderDecoder, batch: Batch, state: DecoderState | None = None
    ) -> tuple[Loss, DecoderState | None]:
        decoder, memory = model.decoder, self.memory
        assert isinstance(decoder, MemoryDecoder)
        before, targets = batch.targets[:, :-1], batch.targets[:, 1:]
        looks = given_looks(batch)  # (N, hops)
        linear = model.training and batch.progress < memory.linear_start
        start = decoder.start(model.encode(batch.inputs, batch.name))
        given = looks if model.training and memory.hard else None
        decoded = decoder(before, start, given, linear=linear)
        looks = None if linear else looks
        over = self.divided_by(batch)
        _, loss = sequence_loss(decoder, decoded, targets, self.config, None, looks, over)
        return loss, None
