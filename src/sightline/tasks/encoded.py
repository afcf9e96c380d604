"""Sources that are read and encoded once, for all that is then asked about them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sightline.runtime.describer import Describer
from sightline.runtime.onnx import side_by_side, workers
from sightline.types import ContextSet, Inputs, Stream


@dataclass(frozen=True)
class Encoded:
    """The reader and the encoder of a Describer whose sources are the numbers of what was read."""

    inputs: Sequence[Inputs]
    contexts: Sequence[ContextSet]  # of one example each
    batch: int
    takes: Literal["file", "text"] = "file"

    def read(self, source: Any, *, whole: bool = False) -> list[Inputs]:
        each = self.inputs[source]
        streams = {"number": Stream(np.array([source]))}
        if each.size:  # on which the longest output depends
            streams["positions"] = Stream.ragged([np.zeros((each.size, 0), np.float32)])
        return [replace(each, streams=streams)]

    def encode(self, inputs: Inputs) -> ContextSet:
        return together([self.contexts[number] for number in inputs["number"].values])


def encoded(describer: Describer, sources: Sequence[Any]) -> Describer:
    """The same describer of the numbers of these sources, each of which has to be one part."""

    def read(source: Any) -> tuple[Inputs, ContextSet]:
        (inputs,) = describer.reader.read(source, whole=True)
        return inputs, describer.encode(inputs)

    pairs = list(side_by_side(read, sources, workers(describer.stepper)))
    inputs, contexts = zip(*pairs, strict=True)
    made = Encoded(inputs, contexts, describer.reader.batch)
    return replace(describer, reader=made, encoder=made)


def together(contexts: Sequence[ContextSet]) -> ContextSet:
    """Context sets (NumPy arrays) as one, the shorter ones padded at their ends."""
    first, *others = contexts
    if not others:
        return first
    longest = max(each.values.shape[1] for each in contexts)

    def padded(name: str) -> NDArray[Any] | None:
        if getattr(first, name) is None:
            return None
        rows = []
        for each in contexts:
            values = getattr(each, name)
            room = [(0, 0), (0, longest - values.shape[1]), (0, 0)][: values.ndim]
            rows.append(np.pad(values, room))
        return np.concatenate(rows)

    parts = {name: padded(name) for name in ("values", "mask", "keys", "bias", "tokens", "sure")}
    members = zip(*(each.members for each in contexts), strict=True)
    return ContextSet(**parts, members=tuple(together(some) for some in members))
