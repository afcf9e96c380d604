"""A decoder with a small output layer: only some tokens of its vocabulary, for quick decoding."""

from __future__ import annotations

import copy
from typing import TypeVar

import torch
from torch import nn

from sightline.data.vocabulary import PAD
from sightline.nn.decoder import Decoder
from sightline.nn.deep_fusion import FusedDecoder
from sightline.nn.heads import VocabularyHead

M = TypeVar("M", bound=nn.Module)


def shortlisted(model: Decoder, tokens: list[int]) -> Decoder:
    """The same decoder over these tokens: token i is tokens[i]. All other weights are shared."""
    decoder, head = _shallow(model), model.output
    assert isinstance(head, VocabularyHead)
    index = torch.tensor(tokens, device=head.bias.device)
    with torch.no_grad():
        embedding = model.embed.weight[index]
        weight, bias = head.weight[index], head.bias[index]
    decoder.embed = nn.Embedding.from_pretrained(embedding, padding_idx=PAD)
    with torch.device("meta"):  # without weights of its own
        small_head = VocabularyHead(weight.shape[1], len(tokens), first=head.first)
    small_head.weight = nn.Parameter(weight, requires_grad=False)
    small_head.bias = nn.Parameter(bias, requires_grad=False)
    decoder.output = small_head
    decoder.vocab_size = len(tokens)
    if isinstance(decoder, FusedDecoder):  # its language model reads the same tokens
        decoder.prior = _shallow(decoder.prior)
        read = decoder.prior.embed.weight.detach()[index]
        decoder.prior.embed = nn.Embedding.from_pretrained(read, padding_idx=PAD)
    return decoder


def _shallow(module: M) -> M:
    """A copy that shares its parts, any of which can then be put in another's place."""
    twin = copy.copy(module)
    twin._modules = dict(module._modules)
    return twin
