"""Pictures that are encoded once, for several searches over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from sightline.data.progress import counted
from sightline.runtime.describer import Describer
from sightline.types import ContextSet, Inputs, Stream


@dataclass(frozen=True)
class EncodedPictures:
    """The reader and the encoder of a Describer whose sources are the numbers of pictures."""

    pictures: Sequence[Inputs]  # each with a stream "vectors" (1, M, D)
    takes: Literal["file", "text"] = "file"
    batch: int = 8

    def read(self, source: Any, *, whole: bool = False) -> list[Inputs]:
        return [self.pictures[source]]

    def encode(self, inputs: Inputs) -> ContextSet:
        values = inputs["vectors"].values.astype(np.float32)
        tokens = inputs["named"].values if "named" in inputs else None
        return ContextSet(values, np.ones(values.shape[:2], dtype=bool), tokens=tokens)

    def given_to(self, captioner: Describer) -> Describer:
        return replace(captioner, reader=self, encoder=self)


def encode_pictures(
    captioner: Describer, sources: Sequence[Any], dtype: type[np.floating[Any]] = np.float32
) -> EncodedPictures:
    pictures = []
    for source in counted(sources, len(sources), "reading pictures"):
        (inputs,) = captioner.reader.read(source)
        context = captioner.encode(inputs)
        streams = {"vectors": Stream(context.values.astype(dtype))}
        if context.tokens is not None:  # tags
            streams["named"] = Stream(context.tokens)
        pictures.append(replace(inputs, streams=streams))
    return EncodedPictures(pictures)
