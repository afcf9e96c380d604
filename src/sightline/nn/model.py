"""The encoder-decoder: reads inputs into a context set, and trains for an objective."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from sightline.data.vocabulary import PAD
from sightline.errors import DataError
from sightline.nn.decoder import Decoder, DecoderState
from sightline.nn.losses import Loss, Reinforce
from sightline.nn.objectives import Likelihood
from sightline.types import ContextSet, Inputs


@dataclass(frozen=True)
class Batch:
    """A minibatch of target sequences, with what they describe."""

    targets: Tensor  # (N, T + 1): <begin> y_1 … y_T, padded with <pad>
    inputs: Inputs  # of B examples; N = B · K
    name: str = ""  # says which examples these are, for error messages
    items: tuple[str, ...] = ()  # the examples' ids, where the objective needs them
    progress: float = 0.0  # the share of training that is done
    weights: Tensor | None = None  # (N,): how much each target counts; None: alike
    seed: int | None = None  # of what is drawn for each example; None: from torch's own state
    whole: Batch | None = None  # what this is a part of: losses are divided by what that has
    first: int = 0  # which example of the whole is this part's first

    def part(self, index: int, parts: int) -> Batch:
        """One of so many shares of neighbouring examples; with few examples some are empty."""
        count, each = len(self.inputs), len(self.targets) // max(1, len(self.inputs))
        first, last = (count * i // parts for i in (index, index + 1))
        examples, rows = slice(first, last), slice(first * each, last * each)
        inputs = self.inputs.map(lambda array: array[examples])
        return replace(
            self,
            targets=self.targets[rows],
            inputs=replace(inputs, count=last - first, layouts=inputs.layouts[examples]),
            items=self.items[examples],
            weights=None if self.weights is None else self.weights[rows],
            whole=self,
            first=first,
        )

    def uniform(self, rows: int, width: int) -> Tensor:
        """Numbers from 0 to 1 for `rows` rows of each example, (B · rows, width): those that the
        examples would get in the whole batch."""
        seed, count = self.seed, len((self.whole or self).inputs)
        generator = None if seed is None else torch.Generator().manual_seed(seed)
        drawn = torch.rand(count, rows, width, generator=generator)
        mine = drawn[self.first : self.first + len(self.inputs)]
        return mine.flatten(0, 1).to(self.targets.device)

    def to(self, device: torch.device | str) -> Batch:
        """On a device; arrays become tensors."""
        inputs = self.inputs.map(lambda array: torch.as_tensor(array).to(device))
        weights = None if self.weights is None else self.weights.to(device)
        return replace(self, targets=self.targets.to(device), inputs=inputs, weights=weights)


class EncoderDecoder(nn.Module):
    """An encoder (or none: a language model), a decoder, and what they are trained for.

    An encoder is a module with a `dimension` D that makes a ContextSet of Inputs.
    """

    # What a model that training begins with may lack, or have in excess: a picture encoder that
    # begins to learn keeps its published weights, one that no longer learns is outside the model,
    # one without tags copies none, and only hard attention has a baseline
    optional_weights = (
        "encoder.pictures.", "encoder.tagger.", "encoder.", "hard.",
        "decoder.output.pointer.", "decoder.output.share.",
    )  # fmt: skip

    def __init__(self, encoder: nn.Module | None, decoder: Decoder, objective: Likelihood) -> None:
        super().__init__()
        objective.check(decoder)
        self.encoder = encoder
        self.decoder = decoder
        self.objective = objective
        self.hard: Reinforce | None = None
        if decoder.attention is not None and decoder.config.attention.hard:
            self.hard = Reinforce(objective.config.hard)

    def carried(self, tensors: Sequence[Tensor]) -> DecoderState:
        """The state that `DecoderState.tensors` were saved from (truncated BPTT)."""
        return DecoderState(tuple(tensors))

    def encode(self, inputs: Inputs, name: str = "") -> ContextSet:
        """Read the inputs; one with nothing to attend to is an error that says which it is."""
        if self.encoder is None:
            values = next(self.decoder.parameters()).new_zeros(len(inputs), 0, 0)
            return ContextSet(values, values.new_zeros(len(inputs), 0, dtype=torch.bool))
        context: ContextSet = self.encoder(inputs)
        exists = context.mask.any(1)  # (B,)
        if not bool(exists.all()):
            number = int((~exists).nonzero()[0]) + 1
            where = f" of {name}" if name else ""
            raise DataError(f"example {number}{where} is empty: there is nothing to attend to")
        return context

    def follow(self, rewards: Sequence[float]) -> None:
        """Bring hard attention's baseline up to date with what all parts of a batch earned."""
        if self.hard is not None:
            self.hard.follow(self.hard.baseline.new_tensor(rewards))

    def loss(
        self, batch: Batch, state: DecoderState | None = None
    ) -> tuple[Loss, DecoderState | None]:
        """The loss of a batch, and the state after it, which may be carried to the next."""
        return self.objective(self, batch, state)


def pad(sequences: list[list[int]], device: torch.device | str = "cpu") -> Tensor:
    """Token lists as one (N, T) tensor, padded at the end."""
    longest = max(map(len, sequences))
    rows = [sequence + [PAD] * (longest - len(sequence)) for sequence in sequences]
    return torch.tensor(rows, dtype=torch.long, device=device)
