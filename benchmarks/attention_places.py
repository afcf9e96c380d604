"""Does the attention look at the right place? At boxes drawn by hand, and where halves are swapped.

    python -m benchmarks.attention_places [MODEL]

Boxes: each of the photos that ship is described by its own caption (forced decoding). For the words
of its boxes, the attention inside the box is set against the box's part of the picture, against
boxes of the same size anywhere in the picture, and against what the caption's other words leave
there.

Halves (where ../shared/data/flickr8k is): two test pictures A and B are put into one, side by side
or one above the other, and once more with their places exchanged. A word is A's if it names a thing
of A's references and nothing of its kind is in B's.
- written: when the model writes a word of A, is most of its attention on A's half?
- both named: in captions that name things of both, does A's half get more for A's words than for
  B's? Neither a place nor a picture that is looked at most can help here.
- given: with a reference of A as the text, is most of the attention for A's words on A's half,
  over both orders? The attention for a word knows the words before it, not the word; so this asks
  for more than looking where the next word is: the text has to lead the eye.
A model that looks at one place, or anywhere, gets 50 % of each.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

import sightline
from benchmarks.data import data_path
from benchmarks.encoded import encode_pictures
from benchmarks.things import own_words
from sightline.data.converters.published import flickr8k
from sightline.data.manifest import Example, normalise_caption
from sightline.data.vocabulary import SPECIALS, UNKNOWN
from sightline.figures.looks import looks_of
from sightline.media.focus import Region
from sightline.media.image import read_image
from sightline.runtime.describer import Describer
from sightline.samples import samples
from sightline.types import Box, Description
from sightline.zoo import names

SEED, PAIRS, DRAWS = 1, 200, 100_000
SIDE = 480  # pixels of a picture made of two
STEPS = 41  # places of a box along each side of a picture

Pixels = NDArray[np.uint8]


# ---- attention in a place ----------------------------------------------------------------------


def encoded(captioner: Describer, pictures: Sequence[Pixels]) -> Describer:
    """The same captioner with the numbers of these pictures as its sources."""
    return encode_pictures(captioner, pictures, np.float16).given_to(captioner)


def given(captioner: Describer, texts: Sequence[str]) -> list[Description]:
    """Given texts as descriptions of encoded pictures 0, 1, …; unknown words have no name."""
    known = captioner.codec.vocab.ids
    return [
        replace(forced, tokens=tuple(t if t in known else SPECIALS[UNKNOWN] for t in forced.tokens))
        for forced in captioner.force(range(len(texts)), texts)
    ]


def maps_of(description: Description) -> list[tuple[str, NDArray[np.float64]]]:
    """Each word with its attention (rows, columns), which sums to 1."""
    assert description.layout is not None
    maps = []
    for look in looks_of(description):
        cells = look.weights[: description.layout.cells].astype(np.float64)
        weights = cells.reshape(description.layout.shape)
        maps.append((look.word, weights / weights.sum()))
    return maps


def overlap(cells: int, start: NDArray[Any] | float, length: float) -> NDArray[np.float64]:
    """(…, cells): how much of each of the cells along a side lies in [start, start + length]."""
    low = np.asarray(start, np.float64)[..., None] * cells
    edge = np.arange(cells)
    inside = np.minimum(low + length * cells, edge + 1) - np.maximum(low, edge)
    return np.clip(inside, 0, 1)


def inside(weights: NDArray[np.float64], box: Region) -> float:
    """The attention (rows, columns) inside a box; a cell counts by the part that is inside."""
    x, y, width, height = box
    rows, columns = weights.shape
    return float(overlap(rows, y, height) @ weights @ overlap(columns, x, width))


def anywhere(weights: NDArray[np.float64], box: Region) -> NDArray[np.float64]:
    """The attention inside boxes of that size, in places spread evenly over the picture."""
    _, _, width, height = box
    rows, columns = weights.shape
    down = overlap(rows, np.linspace(0, 1 - height, STEPS), height)  # (STEPS, rows)
    across = overlap(columns, np.linspace(0, 1 - width, STEPS), width)
    return (down @ weights @ across.T).ravel()


def as_seen(region: Region, visible: Box) -> Region:
    """The region as fractions of the part of the picture that the encoder sees."""
    (x, y, width, height), (left, top, right, bottom) = region, visible
    x0, x1 = ((at - left) / (right - left) for at in (x, x + width))
    y0, y1 = ((at - top) / (bottom - top) for at in (y, y + height))
    (x0, x1), (y0, y1) = np.clip([[x0, x1], [y0, y1]], 0, 1).tolist()
    return x0, y0, x1 - x0, y1 - y0


# ---- boxes drawn by hand -----------------------------------------------------------------------


@dataclass(frozen=True)
class BoxResult:
    """One word and its box."""

    photo: str
    word: str
    part: float  # of the picture that the box covers: even attention's mass
    mass: float  # of the word's attention inside the box
    others: float  # mean mass of the caption's other words there
    chance: NDArray[np.float64]  # masses of the word's attention in boxes of that size anywhere


def look_at_boxes(captioner: Describer) -> list[BoxResult]:
    photos = samples()
    pictures = [read_image(photo.path) for photo in photos]
    descriptions = given(encoded(captioner, pictures), [photo.alt for photo in photos])
    results = []
    for photo, description in zip(photos, descriptions, strict=True):
        assert description.layout is not None
        maps = maps_of(description)
        for thing in photo.boxes:
            box = as_seen(thing.box, description.layout.box)
            own = [weights for word, weights in maps if word in thing.words]
            others = [inside(weights, box) for word, weights in maps if word not in thing.words]
            if not own:  # the model does not know the word
                continue
            weights = np.mean(own, axis=0)
            word = next(word for word, _ in maps if word in thing.words)
            part = box[2] * box[3]
            mass, chance = inside(weights, box), anywhere(weights, box)
            others_mean = float(np.mean(others))
            results.append(BoxResult(photo.name, word, part, mass, others_mean, chance))
    return results


def permutation_p(results: Sequence[BoxResult], draws: int = DRAWS) -> float:
    """How often boxes of these sizes at random places hold as much attention as the true ones."""
    rng = np.random.default_rng(SEED)
    totals = sum(rng.choice(result.chance, draws) for result in results)
    return float((1 + np.sum(totals >= sum(r.mass for r in results))) / (1 + draws))


def sign_p(wins: int, count: int) -> float:
    """The chance of at least so many heads among so many fair coins, exactly."""
    return sum(math.comb(count, k) for k in range(wins, count + 1)) / 2**count


# ---- two pictures in one -----------------------------------------------------------------------

# Where the first and the second picture are, by whether they are stacked
HALVES: dict[bool, tuple[Region, Region]] = {
    True: ((0, 0, 1, 0.5), (0, 0.5, 1, 0.5)),
    False: ((0, 0, 0.5, 1), (0.5, 0, 0.5, 1)),
}


def compose(first: Pixels, second: Pixels, stacked: bool) -> Pixels:
    """A square picture, the first whole in its left or upper half, the second in the other."""
    size = (SIDE, SIDE // 2) if stacked else (SIDE // 2, SIDE)
    halves = [np.asarray(Image.fromarray(p).resize(size)) for p in (first, second)]
    return np.concatenate(halves, axis=0 if stacked else 1)


@dataclass(frozen=True)
class Pair:
    """Two pictures of one shape, the words that are one's only, and a caption of each."""

    pictures: tuple[Pixels, Pixels]
    words: tuple[set[str], set[str]]
    captions: tuple[str, str]
    stacked: bool  # wide pictures are, so that their proportions change little


def draw_pairs(examples: Sequence[Example], count: int) -> Iterator[Pair]:
    """Pairs of pictures, each with words of its own, drawn by the seed."""
    rng = np.random.default_rng(SEED)
    drawn = 0
    while drawn < count:
        a, b = (examples[i] for i in rng.choice(len(examples), 2, replace=False))
        words = own_words(a.targets, b.targets), own_words(b.targets, a.targets)
        usable = [_with_one_of(words[0], a.targets), _with_one_of(words[1], b.targets)]
        if not all(usable) or a.media is None or b.media is None:
            continue
        first, second = read_image(a.media), read_image(b.media)
        stacked = [picture.shape[1] > picture.shape[0] for picture in (first, second)]
        if stacked[0] == stacked[1]:
            drawn += 1
            captions = [texts[int(rng.integers(len(texts)))] for texts in usable]
            yield Pair((first, second), words, (captions[0], captions[1]), stacked[0])


def _with_one_of(words: set[str], captions: Sequence[str]) -> list[str]:
    """The captions with one of the words."""
    return [text for text in captions if words & set(normalise_caption(text).split())]


@dataclass(frozen=True)
class HalfResult:
    """A word of one picture of a pair, and how much of its attention was on that picture."""

    pair: int
    row: int  # of the caption in which it stands
    mine: int  # 0 or 1: whose word it is
    word: str
    share: float


def both_orders(pairs: Sequence[Pair]) -> list[Pixels]:
    """Each pair as one picture, then with its places exchanged: rows 2 n and 2 n + 1 are pair n."""
    return [
        compose(first, second, pair.stacked)
        for pair in pairs
        for first, second in (pair.pictures, pair.pictures[::-1])
    ]


def look_while_writing(captioner: Describer, pairs: Sequence[Pair]) -> list[HalfResult]:
    """Of the words that the model writes by itself about the encoded pictures of `both_orders`."""
    return [
        HalfResult(row // 2, row, mine, word, inside(weights, halves[mine ^ (row % 2)]))
        for row, description in enumerate(captioner.describe(range(2 * len(pairs))))
        for halves in (HALVES[pairs[row // 2].stacked],)
        for word, weights in maps_of(description)
        for mine in (0, 1)
        if word in pairs[row // 2].words[mine]
    ]


def look_while_given(captioner: Describer, pairs: Sequence[Pair]) -> list[HalfResult]:
    """Of the words of a given caption; the mean over both orders, so that only following counts."""
    results = []
    for mine in (0, 1):
        forced = given(captioner, [pair.captions[mine] for pair in pairs for _ in (0, 1)])
        for number, pair in enumerate(pairs):
            halves = HALVES[pair.stacked]
            first, second = (maps_of(forced[2 * number + order]) for order in (0, 1))
            for (word, one), (_, other) in zip(first, second, strict=True):
                if word in pair.words[mine]:
                    share = (inside(one, halves[mine]) + inside(other, halves[1 - mine])) / 2
                    results.append(HalfResult(number, 2 * number, mine, word, share))
    return results


def right_side(results: Sequence[HalfResult]) -> tuple[float, float, float]:
    """The part of the words with most of their attention on the right half; its 95 % interval.

    The interval resamples pairs, not words, for the words of a pair are not independent.
    """
    pairs = sorted({result.pair for result in results})
    right, count = np.zeros(len(pairs)), np.zeros(len(pairs))
    for result in results:
        place = pairs.index(result.pair)
        right[place] += 1.0 if result.share > 0.5 else 0.5 if result.share == 0.5 else 0.0
        count[place] += 1
    drawn = np.random.default_rng(SEED).integers(len(pairs), size=(2_000, len(pairs)))
    resampled = right[drawn].sum(axis=1) / count[drawn].sum(axis=1)
    low, high = np.percentile(resampled, [2.5, 97.5])
    return float(right.sum() / count.sum()), float(low), float(high)


def both_named(results: Sequence[HalfResult]) -> list[float]:
    """Per caption with words of both: how much more the first's half gets for its own words."""
    captions: dict[int, tuple[list[float], list[float]]] = {}
    for result in results:
        captions.setdefault(result.row, ([], []))[result.mine].append(result.share)
    # the share of the first's half, for a word of the second, is what its own half leaves
    return [float(np.mean(a) - (1 - np.mean(b))) for a, b in captions.values() if a and b]


# ---- the report --------------------------------------------------------------------------------


def report_boxes(captioner: Describer) -> None:
    results = look_at_boxes(captioner)
    print(f"{'photo':18} {'word':10} {'in box':>7} {'even':>7} {'anywhere':>9} {'others':>7}")
    for r in results:
        print(
            f"{r.photo:18} {r.word:10} {r.mass:7.1%} {r.part:7.1%} {r.chance.mean():9.1%} "
            f"{r.others:7.1%}"
        )
    mean = {name: np.mean([getattr(r, name) for r in results]) for name in ("mass", "part")}
    wins = sum(r.mass > r.part for r in results)
    above = sum(r.mass > r.others for r in results)
    print(
        f"attention in its box {mean['mass']:.1%}, the box's part of the picture {mean['part']:.1%}"
    )
    print(
        f"more than even attention: {wins} of {len(results)} (sign test p = "
        f"{sign_p(wins, len(results)):.2g}); against boxes of the same size anywhere: "
        f"p = {permutation_p(results):.2g} (permutation test, {DRAWS:,} draws)"
    )
    print(f"more than the caption's other words: {above} of {len(results)}")


def report_halves(captioner: Describer, folder: Path) -> None:
    examples = [example for example in flickr8k(folder).examples if example.split == "test"]
    pairs = list(draw_pairs(examples, PAIRS))
    captioner = encoded(captioner, both_orders(pairs))
    written = look_while_writing(captioner, pairs)
    for name, results in (("written", written), ("given", look_while_given(captioner, pairs))):
        share, low, high = right_side(results)
        mass = np.mean([result.share for result in results])
        print(
            f"{name + ':':11} {share:.1%} of {len(results)} words look at the right half "
            f"(95 % interval {low:.1%} to {high:.1%}; mean attention there {mass:.1%})"
        )
    differences = both_named(written)
    wins, count = sum(value > 0 for value in differences), len(differences)
    print(
        f"both named: {wins} of {count} captions look at each when they name it "
        f"(sign test p = {sign_p(wins, count):.2g})"
    )


def main() -> None:
    model = sys.argv[1] if len(sys.argv) > 1 else "default"
    if model not in names() and not Path(model).exists():
        print(f"no model {model!r}: give a run's folder")
        return
    captioner = sightline.load(model)
    print(f"model {model}, grid {captioner.reader.grid}\n")
    report_boxes(captioner)
    folder = data_path("flickr8k")
    if folder.is_dir():
        print(
            f"\n{PAIRS} pairs of Flickr8k test pictures, two in one, and exchanged; chance is 50 %"
        )
        report_halves(captioner, folder)
    else:
        print(f"\nno pictures at {folder} (set SIGHTLINE_DATA): the halves are left out")


if __name__ == "__main__":
    main()
