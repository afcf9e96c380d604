"""The light runtime: describing, translating and writing with exported models, beside the encoder.

python -m benchmarks.runtime [--captioner default] [--translator RUN] [--torch RUN] [--pictures N]

Every row says what it is a ratio of. Compare ratios only within one run: they are taken on the
same machine within minutes. A translator and a torch run are measured only where they are named.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from benchmarks import machine
from sightline import exported, search, zoo
from sightline.media.image import preprocess, read_image
from sightline.tasks import load_model

PHOTOS = Path(__file__).parents[1] / "src" / "sightline" / "samples"
THREADS = os.cpu_count() or 1


def main() -> None:
    options = _options()
    print(machine.describe())
    if options.captioner in zoo.names() or Path(options.captioner).exists():
        captioning(options)
    else:
        print(f"no captioner {options.captioner!r}: export one and name it with --captioner")
    if options.translator:
        translating(load_model(options.translator))
    if "shakespeare" in zoo.names():
        writing(load_model("shakespeare"))


def _options() -> Any:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--captioner", default="default")
    parser.add_argument("--translator", default="")
    parser.add_argument("--torch", default="", help="the run that the captioner was exported from")
    parser.add_argument("--pictures", type=int, default=64)
    known, _ = parser.parse_known_args()
    return known


# ---------------------------------------------------------------------------------- captioning


def captioning(options: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = photos(Path(folder), options.pictures)
        model = load_model(options.captioner)
        encoder = parts(model, files)
        batches(model, files, encoder)
        settings(options.captioner, files)
        if options.torch:
            against_torch(load_model(options.torch), files, encoder)
        start_up(options.captioner, files[0])
        memory(model, files)


def photos(folder: Path, count: int) -> list[Path]:
    """The samples that ship, over and over; noise of a photo's size where there are none."""
    found = sorted(PHOTOS.glob("*.jpg"))
    if not found:
        rng = np.random.default_rng(0)
        for number in range(8):
            small = Image.fromarray(rng.integers(0, 256, (30, 40, 3), dtype=np.uint8))
            small.resize((500, 375), Image.Resampling.BICUBIC).save(folder / f"{number}.jpg")
        found = sorted(folder.glob("*.jpg"))
    return [found[i % len(found)] for i in range(count)]


def parts(model: Any, files: list[Path]) -> float:
    """One photo at a time, beam 5, and what it consists of; gives the encoder's own seconds."""
    spec, size = model.encoder.spec, 5
    picture = preprocess(read_image(files[0]), spec)[None]
    vectors = model.encoder.encode(picture)
    options = search.BeamOptions(max_length=model.recipe.search.max_length, size=size)
    steps = sum(1 for _ in search.beam(model.stepper, vectors, options))
    state = model.stepper.select(model.stepper.start(vectors), np.zeros(size, np.int64))
    tokens = np.full(size, model.stepper.begin)
    encoder = best(lambda: model.encoder.encode(picture))
    rows = {
        "the encoder alone": encoder,
        "reading and preprocessing": best(lambda: preprocess(read_image(files[0]), spec)),
        "start (keys, first state)": best(lambda: model.stepper.start(vectors)),
        f"{steps} steps of the decoder": steps
        * best(lambda: model.stepper.step(state, tokens), 50),
        "the whole search": best(
            lambda: search.finish(search.beam(model.stepper, vectors, options))
        ),
        "describe, beam 5": best(lambda: model.describe(files[0], beam=size)),
    }
    title(f"One photo at a time, {THREADS} threads", "× the encoder")
    for name, seconds in rows.items():
        line(name, f"{1000 * seconds:.1f} ms", seconds / encoder)
    return encoder


def batches(model: Any, files: list[Path], encoder: float) -> None:
    title("Photos per second in batches", "× the encoder's own")
    for count in (1, 4, 16, 64):
        for beam in (1, 5, 10):
            some = files[:count]
            seconds = best(lambda s=some, b=beam: model.describe(s, beam=b), 3) / len(some)
            line(f"batch of {count}, beam {beam}", f"{1 / seconds:.1f} /s", encoder / seconds)


def settings(captioner: str, files: list[Path]) -> None:
    """What onnxruntime can be told: why `exported.session_options` is as it is."""
    picture = preprocess(read_image(files[0]), load_model(captioner).encoder.spec)[None]
    baseline = 0.0
    title("Session options: encoder, then describe (beam 5)", "× the first")
    for name, choice in CHOICES.items():
        with chosen(**choice):
            model = load_model(captioner)
            encoder = best(lambda m=model: m.encoder.encode(picture))
            whole = best(lambda m=model: m.describe(files[0], beam=5))
            baseline = baseline or whole
            line(name, f"{1000 * encoder:.1f}, {1000 * whole:.1f} ms", whole / baseline)


CHOICES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "one thread": {"threads": 1},
    "threads that spin": {"spinning": True},
    "a memory arena": {"arena": True},
    "both": {"spinning": True, "arena": True},
}


@contextmanager
def chosen(**choice: Any) -> Iterator[None]:
    """For a while, other session options."""
    usual = exported.session_options
    exported.session_options = partial(usual, **choice)
    try:
        yield
    finally:
        exported.session_options = usual


def against_torch(model: Any, files: list[Path], encoder: float) -> None:
    picture = preprocess(read_image(files[0]), model.encoder.spec)[None]
    title("The same model in PyTorch", "× the exported encoder")
    for name, work in {
        "the encoder alone": lambda: model.encoder.encode(picture),
        "describe, beam 5": lambda: model.describe(files[0], beam=5),
    }.items():
        seconds = best(work)
        line(name, f"{1000 * seconds:.1f} ms", seconds / encoder)


def start_up(captioner: str, photo: Path) -> None:
    """From the start of the process to the printed caption."""
    commands = {
        "python": ["-c", "pass"],
        "python and all imports": [
            "-c",
            "import onnxruntime, sightline.cli, sightline.tasks.caption, sightline.tasks.exported",
        ],
        "sightline describe PHOTO": [
            "-m", "sightline.cli", "describe", str(photo), "--model", captioner,
        ],
    }  # fmt: skip
    title("From the start of the process", "× python")
    first = 0.0
    for name, arguments in commands.items():
        command = [sys.executable, *arguments]
        seconds = best(lambda c=command: subprocess.run(c, check=True, capture_output=True), 5)
        first = first or seconds
        line(name, f"{seconds:.2f} s", seconds / first)


def memory(model: Any, files: list[Path]) -> None:
    """Whether it grows with the number of photos."""
    title("Memory after so many photos", "MB more than before")
    before = _resident()
    for count in (64, 256, 1024):
        for at in range(0, count, 16):
            model.describe([files[(at + i) % len(files)] for i in range(16)])
        now = _resident()
        line(f"{count} more photos", f"{now:.0f} MB", now - before)
        before = now


def _resident() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


# ---------------------------------------------------------------------------------- text


def translating(model: Any) -> None:
    """Sentences of about ten words."""
    words = ["a", "young", "man", "in", "red", "is", "standing", "of", "the", "house"]
    rng = np.random.default_rng(0)
    sentences = [" ".join(rng.choice(words, rng.integers(6, 15))) for _ in range(128)]
    title("Translation, sentences per second", "× one at a time, beam 5")
    alone = best(lambda: model.translate(sentences[0], beam=5))
    line("one at a time, beam 5", f"{1 / alone:.1f} /s", 1.0)
    for beam in (1, 5, 10):
        seconds = best(lambda b=beam: model.translate(sentences, beam=b), 2) / len(sentences)
        line(f"128 together, beam {beam}", f"{1 / seconds:.1f} /s", alone / seconds)


def writing(model: Any) -> None:
    title("A language model, characters per second", "× one text")
    alone = best(lambda: model.sample("A", length=200), 3) / 200
    line("one text", f"{1 / alone:.0f} /s", 1.0)
    for count in (8, 64):
        seconds = best(lambda n=count: model.sample("A", length=50, samples=n), 3) / (50 * count)
        line(f"{count} texts at once", f"{1 / seconds:.0f} /s", alone / seconds)


# ---------------------------------------------------------------------------------- printing


def best(work: Callable[[], Any], repeats: int = 9) -> float:
    """The least seconds: what the machine can do when nothing else wants it."""
    work()
    times = []
    for _ in range(repeats):
        began = time.perf_counter()
        work()
        times.append(time.perf_counter() - began)
    return min(times)


def title(text: str, ratio: str) -> None:
    print(f"\n{text:<56}{ratio:>30}", flush=True)


def line(name: str, value: str, ratio: float) -> None:
    print(f"  {name:<44}{value:>20}{ratio:>20.2f}", flush=True)


if __name__ == "__main__":
    main()
