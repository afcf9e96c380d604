"""Picture encoder: pixels, or what is cached of them, to a context set."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from sightline.errors import ConfigError
from sightline.nn.encoders.image import ImageEncoder, Learning, for_inference
from sightline.nn.encoders.streams import positions
from sightline.nn.encoders.tags import Tagger
from sightline.types import ContextSet, Inputs, Stream


class PictureEncoder(nn.Module):
    """Annotation vectors of whichever stream there is:

    vectors:  (B, M, D), finished and cached, of any number for each example
    lower:    (B, M', D'), cached maps below the part of the network that learns
    pictures: (B, 3, S, S), preprocessed pixels

    A network that learns is part of the model; a frozen one is no part of its weights, and is not
    needed where only vectors are read.
    """

    def __init__(
        self,
        network: ImageEncoder | None,
        learning: Learning = "frozen",
        dimension: int = 0,  # D, where there is no network
        tagger: Tagger | None = None,  # adds words that the picture may be about
    ) -> None:
        super().__init__()
        self.dimension = dimension if network is None else network.dimension
        self.tagger = tagger
        self.pictures: ImageEncoder | None = None
        self._frozen: ImageEncoder | None = None
        if network is not None and learning == "frozen":
            self.__dict__["_frozen"] = network  # past nn.Module, which would register it
        elif network is not None:
            self.pictures = network
            # gradients of depthwise convolutions take two thirds of the time this way
            network.network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    @property
    def network(self) -> ImageEncoder | None:
        return self.pictures or self._frozen

    def example(self) -> Inputs:
        """Two examples, for the tracer of exports."""
        assert self.network is not None
        side = self.network.spec.size
        return Inputs(2, {"pictures": Stream(torch.zeros(2, 3, side, side))})

    def for_inference(self) -> PictureEncoder:
        """A frozen copy that computes the same, faster."""
        assert self.network is not None
        # a part: exports trace it
        tagger = self.tagger and self.tagger.for_inference()
        return PictureEncoder(for_inference(self.network), "tuned", tagger=tagger)

    def forward(self, inputs: Inputs) -> ContextSet:
        context = self.cells(inputs)
        return context if self.tagger is None else self.tagger(context)

    def cells(self, inputs: Inputs) -> ContextSet:
        """The grid's vectors alone."""
        mask = None
        if "vectors" in inputs:
            values, mask = widened(inputs["vectors"].values), inputs["vectors"].mask
        elif self.network is None:
            raise ConfigError("this model was built without its picture encoder")
        elif "lower" in inputs:
            values = self.network.above(widened(inputs["lower"].values))
        else:
            values = self.network(widened(inputs["pictures"].values))
        return ContextSet(values, positions(values, mask))

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Any:
        """A frozen network is moved between devices with the model."""
        if self._frozen is not None:
            self._frozen._apply(fn, recurse)  # type: ignore[no-untyped-call]
        return super()._apply(fn, recurse)  # type: ignore[no-untyped-call]


def widened(values: Tensor) -> Tensor:
    """Caches hold half precision."""
    return values.float() if values.dtype == torch.float16 else values
