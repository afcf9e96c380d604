"""How likely a model finds given texts: what perplexity is computed from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from sightline import search
from sightline.data.progress import counted
from sightline.types import Inputs

if TYPE_CHECKING:
    from sightline.runtime.describer import Describer

ROWS = 256  # texts scored at a time


def likelihoods(
    describer: Describer,
    sources: Sequence[Any],
    texts: Sequence[Sequence[str]],
    progress: bool = False,
) -> list[list[float]]:
    """The log-probabilities of the tokens of all texts of each source, end tokens included.

    A source is read and encoded once. Words that the model lacks are scored as unknown. A source
    in which there is nothing to read has an empty list.
    """
    each = _each(describer, sources, texts)
    return list(counted(each, len(sources), "scoring references") if progress else each)


def _each(
    describer: Describer, sources: Sequence[Any], texts: Sequence[Sequence[str]]
) -> Iterator[list[float]]:
    codec, size = describer.codec, describer.reader.batch
    end = [] if codec.end is None else [codec.end]
    for at in range(0, len(sources), size):
        read = [describer.reader.read(source, whole=True) for source in sources[at : at + size]]
        parts = [several[0] for several in read if several]
        ids = [
            [[*codec.ids(codec.split(text)), *end] for text in some] if several else []
            for several, some in zip(read, texts[at : at + size], strict=True)
        ]
        found = iter(_scored(describer, parts, [some for some in ids if some]))
        yield from ([value for _ in some for value in next(found)] for some in ids)


def _scored(
    describer: Describer, parts: Sequence[Inputs], ids: Sequence[list[list[int]]]
) -> Iterator[list[float]]:
    """The log-probabilities of each sequence, those of one example after another."""
    if not parts:
        return
    context = describer.encode(Inputs.batch(parts))
    owners = np.repeat(np.arange(len(ids)), [len(some) for some in ids])
    flat = [sequence for some in ids for sequence in some]
    for at in range(0, len(flat), ROWS):
        some = context.select(owners[at : at + ROWS])
        for hypothesis in search.rescore(describer.stepper, some, flat[at : at + ROWS]):
            yield hypothesis.log_probs.tolist()
