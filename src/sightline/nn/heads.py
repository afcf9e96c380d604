"""Heads: what a readout becomes. A token of a vocabulary, a class, a pointer to a position, or
a token that may also be copied from a position that names it.

A head turns readouts (…, R) into logits (…, V) and gives the log-likelihood of targets. It is the
decoder's `output`, and its weights are stored under that name.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sightline.config import AttentionConfig, DecoderConfig
from sightline.data.vocabulary import END, PAD, SPECIALS
from sightline.errors import ConfigError
from sightline.nn.attention import Attention, rows_of
from sightline.nn.kernels.likelihood import chosen_and_normaliser
from sightline.types import ContextSet

# log p of each target (R,), and the mean log p over all tokens (R,) for label smoothing
Likelihoods = tuple[Tensor, Tensor | None]


class VocabularyHead(nn.Linear):
    """L_o of Xu et al. eq. 7: a logit for each token; the first ones are never written."""

    def __init__(
        self,
        readout: int,
        vocab_size: int,
        *,
        first: int = END,  # <pad> and <begin> are never written; of a class, no special token
        negatives: int = 0,  # of the sampled softmax in training; 0 for the full one
    ) -> None:
        super().__init__(readout, vocab_size)
        self._limit(first, negatives)

    def _limit(self, first: int, negatives: int) -> None:
        self.first = first
        self.negatives = negatives
        # e^-10000 is 0 in any precision, so no gradient ever moves these
        self.bias.data[:first] = -1e4

    def shortlisted(self, index: Tensor) -> VocabularyHead:
        """The head of these tokens alone."""
        with torch.device("meta"):  # without weights of its own
            head = VocabularyHead(self.in_features, len(index), first=self.first)
        head.weight, head.bias = (
            nn.Parameter(part.detach()[index], requires_grad=False)
            for part in (self.weight, self.bias)
        )
        return head

    def forward(
        self,
        readouts: Tensor,
        pointers: ContextSet | None = None,
        without: Sequence[int] = (),  # tokens that get −inf
    ) -> Tensor:
        logits = F.linear(readouts, self.weight, self.bias)
        logits[..., list(without)] = -torch.inf
        return logits

    def likelihood(
        self,
        readouts: Tensor,  # (N, T, R)
        targets: Tensor,  # (N, T)
        real: Tensor,  # (N, T) bool: the targets that count, R of them
        pointers: ContextSet | None = None,
        *,
        smoothing: bool = False,
        without: Sequence[int] = (),  # tokens left out of the softmax
    ) -> Likelihoods:
        given, wanted = readouts[real], targets[real]
        if self.negatives and self.training and not without:
            chosen = sampled_log_probs(self.weight, self.bias, given, wanted, self.negatives)
            return chosen, None
        bias: Tensor = self.bias
        if without:
            left_out = torch.tensor(list(without), device=bias.device)
            bias = bias.index_fill(0, left_out, -torch.inf)
        score, normaliser = chosen_and_normaliser(given, self.weight, bias, wanted)
        if not smoothing:
            return score - normaliser, None
        # the mean score is one product
        mean = given @ self.weight[self.first :].mean(0) + self.bias[self.first :].mean()
        return score - normaliser, mean - normaliser


class TiedHead(VocabularyHead):
    """The same with the embedding's matrix: only the bias is its own."""

    def __init__(self, embed: nn.Embedding, *, first: int = END, negatives: int = 0) -> None:
        nn.Module.__init__(self)
        self.bias = nn.Parameter(torch.zeros(embed.num_embeddings))
        self._embed = (embed,)  # in a tuple it is no submodule: the matrix is saved once, there
        self.in_features, self.out_features = embed.embedding_dim, embed.num_embeddings
        self._limit(first, negatives)

    @property
    def weight(self) -> Tensor:  # type: ignore[override]
        return self._embed[0].weight


class PointerHead(nn.Module):
    """The pointer network of Vinyals et al. 2015: attention weights are the output distribution.

    u_i = v · tanh(W_1 c_i + W_2 r_t), p(y_t = i) = softmax(u)_i, where r_t is the readout after
    the cell's step. Token i < 4 is a special one, with a learnt vector for its context vector;
    token 4 + i is position i of the context set. <end> can be pointed at, so outputs end by
    themselves; of the other special tokens <begin> is read. A token is read as W_e c_i.
    """

    def __init__(self, config: DecoderConfig, readout: int, context_size: int) -> None:
        super().__init__()
        if not context_size:
            raise ConfigError("model.head=pointer needs an encoder: there is nothing to point at")
        for name in ("tied", "sampled_softmax"):
            if getattr(config, name):
                raise ConfigError(f"model.{name} is for a vocabulary; model.head=pointer has none")
        looks = config.attention
        if looks.hard:
            raise ConfigError("model.attention.hard does not go with model.head=pointer")
        options = AttentionConfig(size=looks.size, temperature=looks.temperature)
        self.attention = Attention(options, readout, context_size)
        self.specials = nn.Parameter(torch.randn(len(SPECIALS), context_size) * 0.1)
        self.embed = nn.Linear(context_size, config.embedding)

    def prepare(self, context: ContextSet) -> ContextSet:
        """The context set whose position i is token i, with its keys, (B, 4 + M, …)."""
        count, specials = len(context), len(SPECIALS)
        values = torch.cat([self.specials.expand(count, -1, -1), context.values], 1)
        mask = F.pad(context.mask, (specials, 0))
        mask[:, END] = True
        bias = None if context.bias is None else F.pad(context.bias, (specials, 0))
        return self.attention.prepare(ContextSet(values, mask, bias=bias))

    def read(self, tokens: Tensor, pointers: ContextSet) -> Tensor:
        """The embeddings of tokens (N,) or (N, T): (…, E)."""
        owners = torch.arange(len(pointers), device=tokens.device)
        owners = rows_of(owners, len(tokens)).view(-1, *[1] * (tokens.dim() - 1))
        embedded: Tensor = self.embed(pointers.values[owners, tokens])
        return embedded

    def forward(
        self,
        readouts: Tensor,
        pointers: ContextSet | None = None,
        without: Sequence[int] = (),
    ) -> Tensor:
        """Scores (…, 4 + M), −inf for what cannot be pointed at."""
        assert pointers is not None
        scores = point(self.attention, readouts, pointers)
        scores[..., list(without)] = -torch.inf
        return scores

    def likelihood(
        self,
        readouts: Tensor,
        targets: Tensor,
        real: Tensor,
        pointers: ContextSet | None = None,
        *,
        smoothing: bool = False,
        without: Sequence[int] = (),
    ) -> Likelihoods:
        log_probs = self(readouts, pointers, without).log_softmax(-1)[real]  # (R, 4 + M)
        return log_probs.gather(1, targets[real][:, None])[:, 0], None


class CopyHead(VocabularyHead):
    """A vocabulary mixed with a pointer at positions that name a token (See et al. 2017).

    p(w) = (1 − g) softmax(L_o r)_w + g Σ_{i: token i is w} α_i, with g and α of the readout r. So a
    word can be written that no target had, if an encoder names it.
    """

    def __init__(
        self, readout: int, vocab_size: int, context_size: int, *, size: int, negatives: int = 0
    ) -> None:
        super().__init__(readout, vocab_size, negatives=negatives)
        self.pointer = Attention(AttentionConfig(size=size), readout, context_size)
        self.share = nn.Linear(readout, 1)  # g before σ
        nn.init.constant_(self.share.bias, -2.0)  # copying is the exception

    def prepare(self, context: ContextSet) -> ContextSet:
        """The positions that name a token, which stand behind all others, with their keys."""
        if context.tokens is None:
            raise ConfigError("model.head=copy needs an encoder that names words (encoder.tags)")
        named = context.tokens != PAD  # (B, M)
        first = int((~named).all(0).sum())
        values, tokens = context.values[:, first:], context.tokens[:, first:]
        tags = ContextSet(values, named[:, first:], tokens=tokens)
        return self.pointer.prepare(tags)

    def copying(self, readouts: Tensor, pointers: ContextSet) -> tuple[Tensor, Tensor]:
        """g before σ (…), and the share of each named position (…, K)."""
        gate: Tensor = self.share(readouts)
        return gate[..., 0], point(self.pointer, readouts, pointers).softmax(-1)

    def forward(
        self,
        readouts: Tensor,
        pointers: ContextSet | None = None,
        without: Sequence[int] = (),
    ) -> Tensor:
        """log p of each token."""
        assert pointers is not None
        assert pointers.tokens is not None
        written = super().forward(readouts, without=without).log_softmax(-1)
        gate, weights = self.copying(readouts, pointers)
        rows = written.shape[:-1].numel()
        tokens = rows_of(pointers.tokens, rows).view(weights.shape)
        copied = torch.zeros_like(written).scatter_add(-1, tokens, weights).gather(-1, tokens)
        with_copied = mixed(gate[..., None], written.gather(-1, tokens), copied)
        # elsewhere nothing is copied: a tenth of the time of mixing the whole vocabulary
        return (F.logsigmoid(-gate)[..., None] + written).scatter(-1, tokens, with_copied)

    def likelihood(
        self,
        readouts: Tensor,
        targets: Tensor,
        real: Tensor,
        pointers: ContextSet | None = None,
        *,
        smoothing: bool = False,
        without: Sequence[int] = (),
    ) -> Likelihoods:
        assert pointers is not None
        assert pointers.tokens is not None
        written, mean = super().likelihood(
            readouts, targets, real, smoothing=smoothing, without=without
        )
        gate, weights = self.copying(readouts, pointers)  # (N, T), (N, T, K)
        same = rows_of(pointers.tokens, len(targets))[:, None] == targets[..., None]
        return mixed(gate[real], written, (weights * same).sum(-1)[real]), mean


def mixed(gate: Tensor, written: Tensor, copied: Tensor) -> Tensor:
    """log((1 − σ(gate)) e^written + σ(gate) copied), where copied may be 0."""
    pointed = copied.clamp_min(1e-20).log()
    return torch.logaddexp(F.logsigmoid(-gate) + written, F.logsigmoid(gate) + pointed)


def point(attention: Attention, readouts: Tensor, pointers: ContextSet) -> Tensor:
    """Scores of positions for readouts (…, R): (…, M), −inf where there is none."""
    rows = readouts.reshape(-1, readouts.shape[-1])
    scores = attention.scores(rows, pointers)
    if pointers.bias is not None:
        scores = scores + rows_of(pointers.bias, len(rows))
    scores = scores / attention.config.temperature
    allowed = rows_of(pointers.mask, len(rows))
    return scores.masked_fill(~allowed, -torch.inf).view(*readouts.shape[:-1], -1)


Head = VocabularyHead | PointerHead


def build_head(
    config: DecoderConfig, readout: int, context_size: int, embed: nn.Embedding | None
) -> Head:
    """The head for readouts of this size; only a pointer has no embedding of tokens."""
    if embed is None:
        return PointerHead(config, readout, context_size)
    options: dict[str, Any] = {
        "first": len(SPECIALS) if config.head == "class" else END,
        "negatives": config.sampled_softmax,
    }
    if config.head == "copy":
        if config.tied:
            raise ConfigError("model.tied does not go with model.head=copy; set it to false")
        sizes = {"size": config.attention.size, "negatives": config.sampled_softmax}
        return CopyHead(readout, embed.num_embeddings, context_size, **sizes)
    if not config.tied:
        return VocabularyHead(readout, embed.num_embeddings, **options)
    if readout != config.embedding:
        raise ConfigError(
            f"model.tied: with model.output={config.output} the output layer takes {readout} "
            f"numbers and an embedding has {config.embedding}; make model.hidden and "
            "model.embedding equal, or set model.output=deep"
        )
    return TiedHead(embed, **options)


def sampled_log_probs(
    weight: Tensor,  # (V, D)
    bias: Tensor,  # (V,)
    readouts: Tensor,  # (R, D)
    targets: Tensor,  # (R,)
    negatives: int,
) -> Tensor:
    """log p(target), (R,), under a softmax over the batch's targets and `negatives` samples.

    Jean et al. 2015. The candidates are the distinct targets of the batch plus distinct tokens
    drawn by the log-uniform law, which fits a vocabulary sorted by frequency. Each sampled logit is
    lowered by the log of its expected count: the estimated partition function is that of the full
    softmax.
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
    drawn = torch.unique(drawn.clamp_(0, size - skip - 1))
    included = -torch.expm1(count * torch.log1p(-probability[drawn]))
    return drawn + skip, included.log().float()
