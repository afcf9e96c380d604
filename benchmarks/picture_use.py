"""How much of what captioners write do they take from the picture?

    python -m benchmarks.picture_use MANIFEST [NAME=]MODEL … [--split dev]

Each caption is given to the model word by word (teacher forcing), once with its own picture and
once with the next one's: what the likelihood loses is what came from the picture. By a word's place
in its caption, for a decoder that saw the picture once may have forgotten it later. Models may be
runs or in the zoo.
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
from sightline.data.manifest import Example, read_split
from sightline.data.vocabulary import END
from sightline.runtime.describer import Describer
from sightline.search.constraints import Banned
from sightline.search.steppers import Stepper
from sightline.types import ContextSet, Inputs

BATCH = 50  # pictures at a time
PLACES = ((0, 1), (1, 2), (2, 3), (3, 6), (6, 10), (10, None))  # of words, from 0
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class PictureUse:
    """Nats of each given word (N, T), NaN where there is none, with its own picture and another."""

    own: Floats
    other: Floats

    def mean(self, first: int = 0, last: int | None = None) -> tuple[float, float]:
        """Nats a word of those places, with the own picture and with another."""
        own, other = (each[:, first:last] for each in (self.own, self.other))
        return float(np.nanmean(own)), float(np.nanmean(other))


def picture_use(model: Describer, examples: Sequence[Example]) -> PictureUse:
    """Of the first caption of every picture; words that the model does not know are left out."""
    if len(examples) < 2:
        raise SystemExit(
            "picture_use needs two pictures or more: one is shown in the other's place"
        )
    codec = model.codec
    captions = [[*codec.ids(codec.split(example.targets[0])), END] for example in examples]
    width = max(map(len, captions))
    stepper = search.constrain(model.stepper, Banned(codec.banned))
    parts: list[list[Floats]] = [[], []]
    for at in range(0, len(examples), BATCH):
        given = captions[at : at + BATCH]
        shown = [examples[(at + i) % len(examples)] for i in range(len(given) + 1)]
        inputs = [each for example in shown for each in model.reader.read(example.media)]
        context = model.encode(Inputs.batch(inputs))  # B + 1: each with the next one's
        for first, nats in enumerate(parts):
            rows = np.arange(first, first + len(given))
            nats.append(_nats(stepper, context.select(rows), given, width))
    return PictureUse(*(np.concatenate(nats) for nats in parts))


def _nats(
    stepper: Stepper, context: ContextSet, given: Sequence[Sequence[int]], width: int
) -> Floats:
    """−log p of each given token, (N, width)."""
    nats = np.full((len(given), width), np.nan)
    for row, forced in enumerate(search.rescore(stepper, context, given)):
        nats[row, : len(forced.tokens)] = -forced.log_probs
    nats[np.isinf(nats)] = np.nan  # <unknown> is never written
    return nats


def report(name: str, use: PictureUse) -> None:
    own, other = use.mean()
    print(f"\n{name}: {own:.3f} nats a word, {other:.3f} with another picture: ", end="")
    print(f"the picture gives {other - own:.3f}")
    for first, last in PLACES:
        if np.isnan(use.own[:, first:last]).all():  # no caption is that long
            continue
        own, other = use.mean(first, last)
        place = (
            f"word {first + 1}" if last == first + 1 else f"words {first + 1} to {last or 'end'}"
        )
        print(f"  {place:<14} {own:6.3f} {other:6.3f}   {other - own:+.3f}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.picture_use")
    parser.add_argument("manifest", type=Path)
    parser.add_argument("models", nargs="+", metavar="[NAME=]MODEL")
    parser.add_argument("--split", default="dev")
    options = parser.parse_args()
    examples = [e for e in read_split(options.manifest, options.split, "image") if e.targets]
    print(f"{len(examples)} captions, the {options.split} split of {options.manifest}")
    for model in options.models:
        name, _, path = model.rpartition("=")
        report(name or path, picture_use(sightline.load(path), examples))


if __name__ == "__main__":
    main()
