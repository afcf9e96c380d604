"""Where a known word came from: attention after the word has been seen, by Bayes' rule.

α_t is where the decoder looks before it knows y_t: a plan. For a word that is known,

    p(i | y_t) ∝ α_ti p(y_t | i),

where p(y_t | i) is the output layer's with L_z c_i, one place's vector, for L_z ẑ_t, their mean.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sightline.data.vocabulary import PAD
from sightline.nn.decoder import Decoder, DecoderState
from sightline.nn.heads import VocabularyHead
from sightline.nn.kernels.likelihood import chosen_and_normaliser

LEAST = 1e-3  # places with less of the largest weight than this are out of the question
CELLS = 8_000_000  # scores computed at a time


def has_posterior(decoder: Decoder) -> bool:
    """Whether the attended vector itself enters a vocabulary's logits, and nothing scales it."""
    config = decoder.config
    deep = config.output == "deep" and not config.gate and config.head != "pointer"
    return decoder.attention is not None and deep


@torch.inference_mode()
def posterior(decoder: Decoder, tokens: Tensor, state: DecoderState) -> Tensor:
    """p(i | y_t), (N, T, M), of tokens <begin> y_1 … y_T (N, T + 1), from the first state."""
    targets, head = tokens[:, 1:], decoder.output
    assert isinstance(head, VocabularyHead)
    decoded = decoder(tokens[:, :-1], state)
    assert decoded.weights is not None
    assert state.context is not None
    weights = decoded.weights  # (N, T, M): α
    places = decoder.from_context(state.context.values)  # (N, M, R): L_z c_i
    without = decoded.readouts - weights @ places  # (N, T, R): all but L_z ẑ_t
    likely = weights >= LEAST * weights.amax(2, keepdim=True)
    row, step, place = (likely & (targets != PAD)[..., None]).nonzero(as_tuple=True)
    scores = torch.full_like(weights, -torch.inf)
    rows = max(1, CELLS // decoder.vocab_size)
    for some in torch.arange(len(row), device=row.device).split(rows):
        n, t, i = row[some], step[some], place[some]
        chosen, normaliser = chosen_and_normaliser(
            without[n, t] + places[n, i], head.weight, head.bias, targets[n, t]
        )
        scores[n, t, i] = weights[n, t, i].log() + chosen - normaliser
    return torch.softmax(scores, 2).nan_to_num(0.0)  # padding looked nowhere
