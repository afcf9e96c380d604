"""Attention that saves work: glimpses against a CNN on the whole picture, from 1 to 100 megapixels.

    python -m benchmarks.glimpses train FOLDER        # the models, some minutes each of one thread
    python -m benchmarks.glimpses measure FOLDER      # what they read, time and memory, by size
    python -m benchmarks.glimpses decoding FOLDER     # what reading a file takes
    python -m benchmarks.glimpses figure FOLDER OUT.png

The pictures are made (benchmarks/large_pictures.py). All models have the same network for pixels,
the same decoder and the same training pictures; `whole` reads every pixel, `reduced` a copy of the
coarse look's size. Decoding a file is measured apart from the models.
"""

from __future__ import annotations

import argparse
import io
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

from benchmarks import machine
from benchmarks.large_pictures import WORDS, draw
from sightline import search
from sightline.config import (
    AttentionConfig,
    DecoderConfig,
    GlimpseConfig,
    LossConfig,
    OptimiserConfig,
    ScheduleConfig,
    TrainingConfig,
)
from sightline.data.vocabulary import BEGIN, END, SPECIALS, Vocabulary
from sightline.nn.decoder import Decoder
from sightline.nn.encoders.glimpses import PIXELS, GlimpseEncoder, glimpse_network, look, planes
from sightline.nn.encoders.streams import positions
from sightline.nn.model import Batch, EncoderDecoder, pad
from sightline.nn.objectives import Likelihood
from sightline.nn.stepper import TorchEncoder, TorchStepper
from sightline.training.loop import train
from sightline.types import ContextSet, Hypothesis, Inputs, Stream

SIDES = (1024, 2048, 4096, 7168, 10_000)
KINDS = ("glimpses", "whole", "reduced")
# The first epochs' pictures: their side, discs with a digit and blank ones. Easy ones come first.
LESSONS = {**dict.fromkeys(range(5), (112, 1, 0)), 5: (200, 1, 1), 6: (240, 2, 1)}
TEST = 1_000_000  # seeds from here on are of test pictures


@dataclass(frozen=True)
class Recipe:
    kind: str = "glimpses"
    side: int = 320  # of the training pictures
    batch: int = 16
    encoder: GlimpseConfig = field(default_factory=GlimpseConfig)
    model: DecoderConfig = field(
        default_factory=lambda: DecoderConfig(
            embedding=32, hidden=128, gate=False, attention=AttentionConfig(size=64)
        )
    )
    loss: LossConfig = field(default_factory=LossConfig)
    training: TrainingConfig = field(
        default_factory=lambda: TrainingConfig(
            steps=2000,
            evaluate_every=250,
            select="exact",
            tensorboard=False,
            optimiser=OptimiserConfig(learning_rate=2e-3),
            schedule=ScheduleConfig(kind="cosine", warmup=50),
        )
    )


class WholePicture(nn.Module):
    """The glimpses' network over the whole picture, or over a copy of it at the coarse look's size:
    a vector for each 32 x 32 pixels, each with its place."""

    def __init__(self, config: GlimpseConfig, reduced: bool) -> None:
        super().__init__()
        self.dimension = config.dimension
        self.coarse = config.coarse if reduced else None
        self.read = glimpse_network(config.dimension)
        # a vector sees 60 pixels, a disc has 64: neighbours are put together, as a glimpse does
        size = config.dimension
        self.together = nn.Sequential(nn.Conv2d(size, size, 3, padding=1), nn.BatchNorm2d(size))
        self.place = nn.Linear(2, config.dimension)

    def forward(self, inputs: Inputs) -> ContextSet:
        pixels = inputs[PIXELS].values
        if self.coarse is not None:
            pixels = look(pixels, max(1.0, pixels.shape[1] / self.coarse))
        maps = torch.relu(self.together(self.read(planes(pixels))))  # (B, D, rows, columns)
        rows, columns = (torch.linspace(-0.5, 0.5, size) for size in maps.shape[2:])
        places = torch.stack(torch.meshgrid(rows, columns, indexing="ij"), dim=-1)
        values = maps.flatten(2).transpose(1, 2) + self.place(places.flatten(0, 1))
        return ContextSet(values, positions(values, None))


class Pictures:
    """What the training loop asks of a task: pictures drawn by seed, each seen once."""

    carries_state = False
    metrics = ("loss", "exact")

    def __init__(self, recipe: Recipe) -> None:
        self.recipe = recipe
        self.vocab = Vocabulary("word", (*SPECIALS, *WORDS))
        self.files = {"vocab.json": self.vocab.to_json()}
        self.fingerprint = f"made {recipe.side}"

    def prepare(self) -> None:
        pass

    def build_model(self) -> EncoderDecoder:
        recipe = self.recipe
        if recipe.kind == "glimpses":
            encoder: nn.Module = GlimpseEncoder(recipe.encoder)
        else:
            encoder = WholePicture(recipe.encoder, recipe.kind == "reduced")
        decoder = Decoder(recipe.model, len(self.vocab), recipe.encoder.dimension)
        return EncoderDecoder(encoder, decoder, Likelihood(recipe.loss, 0.0))

    def batch(self, seeds: Sequence[int], *lesson: int) -> tuple[Batch, list[str]]:
        how = lesson or (self.recipe.side,)
        drawn = [draw(np.random.default_rng(seed), *how) for seed in seeds]
        texts = [text for _, text in drawn]
        pixels = torch.from_numpy(np.stack([picture for picture, _ in drawn]))
        targets = pad([[BEGIN, *self.vocab.encode(text), END] for text in texts])
        return Batch(targets, Inputs(len(drawn), {PIXELS: Stream(pixels)})), texts

    def __len__(self) -> int:
        return 100  # steps of an epoch

    def epoch(self, number: int) -> Epoch:
        return Epoch(self, number)

    def evaluate(self, model: EncoderDecoder) -> dict[str, float]:
        batch, texts = self.batch(range(TEST - 64, TEST))
        loss, _ = model.loss(batch)
        written = [self.vocab.decode(h.tokens) for h in described(model, batch.inputs)]
        right = np.mean([w == t for w, t in zip(written, texts, strict=True)])
        return {"loss": loss.nats / loss.tokens, "exact": float(right)}

    def samples(self, model: EncoderDecoder) -> list[str]:
        return []


@dataclass(frozen=True)
class Epoch:
    task: Pictures
    number: int

    def __len__(self) -> int:
        return len(self.task)

    def __getitem__(self, position: int) -> Batch:
        size = self.task.recipe.batch
        first = (self.number * len(self) + position) * size
        lesson = LESSONS.get(self.number, ())
        return self.task.batch(range(first, first + size), *lesson)[0]


def described(model: EncoderDecoder, inputs: Inputs) -> list[Hypothesis]:
    context = TorchEncoder(model).encode(inputs)
    options = search.BeamOptions(size=1, max_length=10)
    found = search.finish(search.beam(TorchStepper(model), context, options))
    return [hypotheses[0] for hypotheses in found]


# ---------------------------------------------------------------- training


def train_all(folder: Path, kinds: Sequence[str], minutes_like: dict[str, int]) -> None:
    for kind in kinds:
        recipe = Recipe(kind=kind)
        steps = minutes_like.get(kind, recipe.training.steps)
        recipe = replace(recipe, training=replace(recipe.training, steps=steps))
        out = folder / kind
        began = time.process_time()
        outcome = train(Pictures(recipe), out, resume=(out / "checkpoints").is_dir())
        spent = (time.process_time() - began) / 60
        print(f"{kind}: {outcome.progress.best_step} steps, {spent:.1f} minutes of the processor")


def load(folder: Path, kind: str) -> tuple[Pictures, EncoderDecoder]:
    from sightline.runtime.model_folder import find_model
    from sightline.training import checkpoint

    task = Pictures(Recipe(kind=kind))
    model = task.build_model()
    checkpoint.load_weights(model, find_model(folder / kind))
    return task, model.eval()


# ---------------------------------------------------------------- measuring


def measure(folder: Path, kind: str, side: int, count: int) -> dict[str, float]:
    """Of one model and one size, in its own process for the memory to be its own."""
    task, model = load(folder, kind)
    exact, words, seconds = [], [], []
    for seed in range(TEST, TEST + count):
        picture, text = draw(np.random.default_rng([seed, side]), side)
        inputs = Inputs(1, {PIXELS: Stream(torch.from_numpy(picture)[None])})
        began = time.process_time()
        hypothesis = described(model, inputs)[0]
        seconds.append(time.process_time() - began)
        written = task.vocab.decode(hypothesis.tokens)
        exact.append(written == text)
        pairs = lambda line: set(zip(line.split()[::2], line.split()[1::2], strict=False))  # noqa: E731
        words.append(len(pairs(written) & pairs(text)) / len(pairs(text)))
    return {
        "exact": float(np.mean(exact)),
        "read": float(np.mean(words)),
        "seconds": float(np.median(seconds)),
        "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000,
        "picture": side * side * 3 / 1e6,
    }


def measure_all(folder: Path, kinds: Sequence[str], sides: Sequence[int], count: int) -> None:
    print(machine.describe())
    table = folder / "measured.jsonl"
    lines = table.read_text().splitlines() if table.exists() else []
    known = {(row["kind"], row["side"]) for row in map(json.loads, lines)}
    for side in sides:
        for kind in kinds:
            if (kind, side) in known or (kind == "whole" and side > 4096):
                continue
            command = [sys.executable, "-m", "benchmarks.glimpses", "one", str(folder)]
            options = ["--kinds", kind, "--sides", str(side), "--count", str(count)]
            done = subprocess.run([*command, *options], capture_output=True, text=True, check=True)
            row = {"kind": kind, "side": side, "count": count, **json.loads(done.stdout)}
            with table.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(json.dumps(row), flush=True)


def untrained(kinds: Sequence[str], sides: Sequence[int]) -> None:
    """Seconds of the processor for a picture, the last of three: weights make no difference."""
    for side in sides:
        picture = torch.from_numpy(draw(np.random.default_rng(1), side)[0])
        for kind in kinds:
            model = Pictures(Recipe(kind=kind)).build_model().eval()
            inputs = Inputs(1, {PIXELS: Stream(picture[None])})
            times = [_seconds(lambda m=model, given=inputs: described(m, given)) for _ in range(3)]
            print(f"{side} x {side}, {kind}: {times[-1]:.3f} s", flush=True)


def decoding(sides: Sequence[int]) -> None:
    """Seconds that a file takes to become pixels, which every model has to wait for."""
    for side in sides:
        picture = Image.fromarray(draw(np.random.default_rng(TEST), side)[0])
        times = {}
        for name, options in {"PNG": {"compress_level": 1}, "JPEG": {"quality": 90}}.items():
            file = io.BytesIO()
            picture.save(file, name, **options)
            times[name] = _seconds(lambda file=file: np.asarray(Image.open(file)))
            if name == "JPEG":
                times["JPEG, an eighth"] = _seconds(lambda file=file: _draft(file))
        shown = ", ".join(f"{name} {seconds:.2f} s" for name, seconds in times.items())
        print(f"{side} x {side}: {shown}", flush=True)


def _draft(file: io.BytesIO) -> np.ndarray:
    image = Image.open(file)
    image.draft("RGB", (image.width // 8, image.height // 8))
    return np.asarray(image)


def _seconds(call: object) -> float:
    Image.MAX_IMAGE_PIXELS = None
    began = time.process_time()
    call()  # type: ignore[operator]
    return time.process_time() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("action", choices=("train", "measure", "one", "time", "decoding", "figure"))
    parser.add_argument("folder", type=Path)
    parser.add_argument("out", type=Path, nargs="?")
    parser.add_argument("--kinds", nargs="+", default=list(KINDS))
    parser.add_argument("--sides", nargs="+", type=int, default=list(SIDES))
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--steps", type=int, default=2000)
    given = parser.parse_args()
    torch.set_num_threads(1)
    if given.action == "train":
        train_all(given.folder, given.kinds, dict.fromkeys(given.kinds, given.steps))
    elif given.action == "measure":
        measure_all(given.folder, given.kinds, given.sides, given.count)
    elif given.action == "one":
        found = measure(given.folder, given.kinds[0], given.sides[0], given.count)
        print(json.dumps(found))
    elif given.action == "time":
        untrained(given.kinds, given.sides)
    elif given.action == "decoding":
        decoding(given.sides)
    else:
        from benchmarks.glimpses_figure import draw_looks

        draw_looks(given.folder, given.out)


if __name__ == "__main__":
    main()
