"""Does attention look at the right time? Made films of two events, joined in random order.

    python -m benchmarks.clip_times FOLDER

A film shows a coloured shape and then another; its caption names both in the order of the alphabet,
whichever came first. Measured on films of pairs that training did not have: how much of the
attention of each colour's and shape's word lies in the half in which it is seen.
"""

from __future__ import annotations

import argparse
import itertools
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from sightline.config import (
    AttentionConfig,
    BatchingConfig,
    DecoderConfig,
    ImageEncoderConfig,
    OptimiserConfig,
    SearchConfig,
    TrainingConfig,
)
from sightline.data.manifest import Example, read_split, write_manifest
from sightline.tasks import build_task, load_model
from sightline.tasks.clip.recipe import ClipConfig, ClipRecipe
from sightline.training.loop import train

COLOURS = {
    "blue": (40, 70, 230), "green": (40, 190, 60), "red": (220, 40, 40), "yellow": (240, 220, 40),
}  # fmt: skip
SHAPES = ("bar", "circle", "cross", "ring", "square", "triangle")
SIDE, FRAMES, RATE = 96, 12, 8  # of an event


def event(colour: str, shape: str, rng: np.random.Generator) -> list[NDArray[np.uint8]]:
    """The shape drifts from one place to another."""
    start, stop = rng.uniform(30, 66, (2, 2))
    frames = []
    for share in np.linspace(0, 1, FRAMES):
        x, y = start + share * (stop - start)
        image = Image.new("RGB", (SIDE, SIDE), (170, 170, 170))
        draw, fill = ImageDraw.Draw(image), COLOURS[colour]
        if shape == "circle":
            draw.ellipse((x - 22, y - 22, x + 22, y + 22), fill)
        elif shape == "ring":
            draw.ellipse((x - 24, y - 24, x + 24, y + 24), outline=fill, width=8)
        elif shape == "triangle":
            draw.polygon([(x, y - 24), (x - 26, y + 20), (x + 26, y + 20)], fill)
        elif shape == "square":
            draw.rectangle((x - 20, y - 20, x + 20, y + 20), fill)
        else:
            draw.rectangle((x - 28, y - 7, x + 28, y + 7), fill)
            if shape == "cross":
                draw.rectangle((x - 7, y - 28, x + 7, y + 28), fill)
        frames.append(np.asarray(image))
    return frames


def write_film(path: Path, frames: list[NDArray[np.uint8]]) -> None:
    import av

    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=RATE)
        stream.width = stream.height = SIDE
        for pixels in frames:
            container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())


def make(folder: Path) -> None:
    """A film for each two events of different colours and shapes, in both orders."""
    rng = np.random.default_rng(1)
    events = list(itertools.product(COLOURS, SHAPES))
    pairs = [(a, b) for a, b in itertools.combinations(events, 2) if a[0] != b[0] and a[1] != b[1]]
    order = rng.permutation(len(pairs))
    examples = []
    for place, number in enumerate(order):
        a, b = pairs[number]
        split: Any = "test" if place % 5 == 0 else "dev" if place % 5 == 1 else "train"
        for first, second in ((a, b), (b, a)):
            name = f"{'-'.join(first)}-then-{'-'.join(second)}.mp4"
            write_film(folder / name, event(*first, rng) + event(*second, rng))
            text = f"a {a[0]} {a[1]} and a {b[0]} {b[1]}"
            examples.append(Example(name, split, (text,), "video", folder / name))
    write_manifest(folder / "films.jsonl", examples)


def recipe(folder: Path, steps: int) -> ClipRecipe:
    return ClipRecipe(
        manifest=str(folder / "films.jsonl"),
        features=str(folder / "features"),
        encoder=ImageEncoderConfig(size=SIDE),
        clip=ClipConfig(frames=16),
        batching=BatchingConfig(size=16),
        model=DecoderConfig(
            embedding=32, hidden=64, dropout=0.2, attention=AttentionConfig(size=64)
        ),
        search=SearchConfig(beam=3, max_length=12),
        training=TrainingConfig(
            steps=steps, evaluate_every=steps, tensorboard=False,
            optimiser=OptimiserConfig(learning_rate=0.003),
        ),
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--steps", type=int, default=1500)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    make(given.folder)
    run = given.folder / "run"
    if not run.exists():
        train(build_task(recipe(given.folder, given.steps)), run)
    for kept in (0, 3):  # all frames; only the best ones, of a model trained with all
        measure(given.folder, load_model(run, [f"model.attention.top_k={kept}"]), kept)


def measure(folder: Path, model: Any, kept: int) -> None:
    chosen = [e.media for e in read_split(folder / "films.jsonl", "test", "video") if e.media]
    shares, right = [], 0
    for film, found in zip(chosen, model.describe(chosen), strict=True):
        first, second = (set(part.split("-")) for part in film.stem.split("-then-"))
        right += {w for w in found.tokens if w in first | second} == first | second
        early = np.array(found.layout.times) < FRAMES / RATE
        for word, weights in zip(found.tokens, found.attention, strict=True):
            if word in first | second:
                shares.append(float(weights[early if word in first else ~early].sum()))
    shares_of = np.array(shares)
    print(
        f"{len(chosen)} films, {f'the {kept} best' if kept else 'all'} frames, {right} with both "
        f"events named; {len(shares)} content words: {shares_of.mean():.1%} of attention in the "
        f"right half, {(shares_of >= 0.9).mean():.1%} of words with at least 90 %"
    )


if __name__ == "__main__":
    main()
