"""The output layer: readouts to logits, with a matrix of its own or with the embedding's."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from sightline.config import DecoderConfig
from sightline.data.vocabulary import BEGIN, PAD
from sightline.errors import ConfigError


class TiedOutput(nn.Module):
    """An output layer whose matrix is the embedding's: only the bias is its own."""

    def __init__(self, embed: nn.Embedding) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(embed.num_embeddings))
        self._embed = (embed,)  # in a tuple it is no part of this: the matrix is saved once, there
        self.out_features = embed.num_embeddings

    @property
    def weight(self) -> Tensor:
        return self._embed[0].weight

    def forward(self, readouts: Tensor) -> Tensor:
        return F.linear(readouts, self.weight, self.bias)


Output = nn.Linear | TiedOutput


def output_layer(config: DecoderConfig, readout: int, embed: nn.Embedding) -> Output:
    """L_o of Xu et al. eq. 7, from readouts of this size."""
    if config.tied and readout != config.embedding:
        raise ConfigError(
            f"model.tied: with model.output={config.output} the output layer takes {readout} "
            f"numbers and an embedding has {config.embedding}; make model.hidden and "
            "model.embedding equal, or set model.output=deep"
        )
    output = TiedOutput(embed) if config.tied else nn.Linear(readout, embed.num_embeddings)
    # never written; e^-10000 is 0 in any precision, so no gradient ever moves these
    output.bias.data[[PAD, BEGIN]] = -1e4
    return output
