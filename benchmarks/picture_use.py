"""How much of what captioners write do they take from the picture?

    python -m benchmarks.picture_use MANIFEST [NAME=]MODEL … [--split dev]

Each caption is told to the model word by word, once with its own picture and once with the next
one's: what the likelihood loses is what the picture had told. By a word's place in its caption,
for a decoder that saw the picture once may have forgotten it later. Models may be runs or in the
zoo.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import sightline
from sightline import search
from sightline.data.manifest import Example, normalise_caption, read_split
from sightline.data.vocabulary import END
from sightline.tasks.captioner import Captioner

BATCH = 50  # pictures at a time
PLACES = ((0, 1), (1, 2), (2, 3), (3, 6), (6, 10), (10, None))  # of words, from 0
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PictureUse:
    """Nats of each told word (N, T), NaN where there is none, with its own picture and another."""

    own: Floats
    other: Floats

    def mean(self, first: int = 0, last: int | None = None) -> tuple[float, float]:
        """Nats a word of those places, with the own picture and with another."""
        own, other = (each[:, first:last] for each in (self.own, self.other))
        return float(np.nanmean(own)), float(np.nanmean(other))


def picture_use(model: Captioner, examples: Sequence[Example]) -> PictureUse:
    """Of the first caption of every picture; words that the model does not know are left out."""
    if len(examples) < 2:
        raise SystemExit(
            "picture_use needs two pictures or more: one is shown in the other's place"
        )
    texts = [normalise_caption(example.targets[0]) for example in examples]
    captions = [[*model.vocab.encode(text), END] for text in texts]
    width = max(map(len, captions))
    found: list[list[Floats]] = [[], []]
    for at in range(0, len(examples), BATCH):
        told = captions[at : at + BATCH]
        shown = [examples[(at + i) % len(examples)] for i in range(len(told) + 1)]
        images = np.stack([model.read(str(example.media)).image for example in shown])
        vectors = model.encoder.encode(images)  # (B + 1, M, D): each with the next one's
        for which, nats in zip((vectors[:-1], vectors[1:]), found, strict=True):
            nats.append(_nats(model, which, told, width))
    return PictureUse(*(np.concatenate(nats) for nats in found))


def _nats(
    model: Captioner, vectors: NDArray[np.float32], told: Sequence[Sequence[int]], width: int
) -> Floats:
    """−log p of each told token, (N, width)."""
    nats = np.full((len(told), width), np.nan)
    for row, forced in enumerate(search.rescore(model.stepper, vectors, told)):
        nats[row, : len(forced.tokens)] = -forced.log_probs
    nats[np.isinf(nats)] = np.nan  # <unknown> is never written
    return nats


def report(name: str, use: PictureUse) -> None:
    own, other = use.mean()
    print(f"\n{name}: {own:.3f} nats a word, {other:.3f} with another picture: ", end="")
    print(f"the picture tells {other - own:.3f}")
    for first, last in PLACES:
        if np.isnan(use.own[:, first:last]).all():  # no caption is that long
            continue
        own, other = use.mean(first, last)
        place = (
            f"word {first + 1}" if last == first + 1 else f"words {first + 1} to {last or 'end'}"
        )
        print(f"  {place:<14} {own:6.3f} {other:6.3f}   {other - own:+.3f}")


def main() -> None:
    asked = argparse.ArgumentParser(prog="python -m benchmarks.picture_use")
    asked.add_argument("manifest", type=Path)
    asked.add_argument("models", nargs="+", metavar="[NAME=]MODEL")
    asked.add_argument("--split", default="dev")
    given = asked.parse_args()
    examples = [e for e in read_split(given.manifest, given.split, "caption") if e.targets]
    print(f"{len(examples)} captions, the {given.split} split of {given.manifest}")
    for model in given.models:
        name, _, path = model.rpartition("=")
        report(name or path, picture_use(sightline.load(path), examples))


if __name__ == "__main__":
    main()
