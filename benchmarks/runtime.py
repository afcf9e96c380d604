"""The light runtime: describing, translating and writing with exported models, as ratios.

python -m benchmarks.runtime [--captioner default] [--translator RUN] [--torch RUN] [--pictures N]
    [--watched N]

Every row says what it is a ratio of. Compare ratios only within one run: they are taken on the
same machine within minutes. A translator and a torch run are measured only where they are named.
"""

from __future__ import annotations

import argparse
import io
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np
from PIL import Image

from benchmarks import machine
from sightline import search, zoo
from sightline.runtime import model_folder
from sightline.runtime.describer import Describer
from sightline.search.constraints import Banned
from sightline.tasks import load_model
from sightline.types import ContextSet

PHOTOS = Path(__file__).parents[1] / "src" / "sightline" / "samples"
THREADS = int(os.environ.get("OMP_NUM_THREADS", os.cpu_count() or 1))


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
    parser.add_argument("--watched", type=int, default=300, help="photos, for the memory held")
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
        memory(options.captioner, files, options.watched)


def photos(folder: Path, count: int) -> list[Path]:
    """The samples that ship, over and over; noise of a photo's size where there are none."""
    files = sorted(PHOTOS.glob("*.jpg"))
    if not files:
        rng = np.random.default_rng(0)
        for number in range(8):
            small = Image.fromarray(rng.integers(0, 256, (30, 40, 3), dtype=np.uint8))
            small.resize((500, 375), Image.Resampling.BICUBIC).save(folder / f"{number}.jpg")
        files = sorted(folder.glob("*.jpg"))
    return [files[i % len(files)] for i in range(count)]


def parts(model: Describer, files: list[Path]) -> float:
    """One photo at a time, beam 5, and what it consists of; gives the seconds of the encoder.

    Means over the samples, whose captions are of several lengths.
    """
    some, size, settings = files[: len(set(files))], 5, model.codec.search
    pictures = [model.reader.read(file)[0] for file in some]
    contexts = [model.encode(picture) for picture in pictures]
    stepper = search.constrain(model.stepper, Banned(model.codec.banned))
    options = search.BeamOptions(
        max_length=settings.max_length, size=size, length_penalty=settings.length_penalty
    )
    steps = [sum(1 for _ in search.beam(stepper, each, options)) for each in contexts]
    state = stepper.select(stepper.start(contexts[0]), np.zeros(size, np.int64))
    tokens, leading = np.full(size, stepper.begin), cast(Any, stepper).leading

    def searched(each: ContextSet) -> Any:
        return search.finish(search.beam(stepper, each, options))

    encoder, whole = mean(model.encode, pictures), mean(searched, contexts)
    step = best(lambda: leading(state, tokens, 2 * size), 50)
    rows = {
        "the encoder alone": encoder,
        "reading and preprocessing": mean(model.reader.read, some),
        "start (keys, first state)": mean(stepper.start, contexts),
        f"{np.mean(steps):.1f} steps of the decoder": float(np.mean(steps)) * step,
        "the whole search": whole,
        "encoder and search": encoder + whole,
        "describe, beam 5": mean(lambda file: model.describe(file, beam=size), some),
    }
    title(f"One photo at a time, {THREADS} threads", "× the encoder")
    for name, seconds in rows.items():
        line(name, f"{1000 * seconds:.1f} ms", seconds / encoder)
    return encoder


def batches(model: Describer, files: list[Path], encoder: float) -> None:
    title("Photos per second in batches", "× the encoder's own")
    for count in (1, 4, 16, 64):
        for beam in (1, 5, 10):
            some = files[:count]
            seconds = best(lambda s=some, b=beam: model.describe(s, beam=b), 3) / len(some)
            line(f"batch of {count}, beam {beam}", f"{1 / seconds:.1f} /s", encoder / seconds)


def settings(captioner: str, files: list[Path]) -> None:
    """What can be set of onnxruntime: why `model_folder.session_options` is as it is."""
    (picture,) = load_model(captioner).reader.read(files[0])
    baseline = 0.0
    title("Session options: encoder, then describe (beam 5)", "× the first")
    for name, choice in CHOICES.items():
        with chosen(**choice):
            model = load_model(captioner)
            encoder = best(lambda m=model: m.encode(picture))
            whole = best(lambda m=model: m.describe(files[0], beam=5))
            baseline = baseline or whole
            line(name, f"{1000 * encoder:.1f}, {1000 * whole:.1f} ms", whole / baseline)


CHOICES: dict[str, dict[str, Any]] = {
    "as it is": {},
    "one thread": {"threads": 1},
    "all threads for a step, too": {"threads": THREADS},
    "threads that spin": {"spinning": True},
    "no memory arena": {"arena": False},
}


@contextmanager
def chosen(**choice: Any) -> Iterator[None]:
    """For a while, other session options."""
    usual = model_folder.session_options
    model_folder.session_options = lambda threads=None: usual(**{"threads": threads, **choice})
    try:
        yield
    finally:
        model_folder.session_options = usual


def against_torch(model: Describer, files: list[Path], encoder: float) -> None:
    (picture,) = model.reader.read(files[0])
    title("The same model in PyTorch", "× the exported encoder")
    for name, work in {
        "the encoder alone": lambda: model.encode(picture),
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
            "import onnxruntime, sightline.cli, sightline.tasks.exported",
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


def memory(captioner: str, files: list[Path], count: int) -> None:
    """What `sightline describe` holds, in a process of its own, and whether it grows."""
    title(f"Memory of `sightline describe`, {count} photos", "MB more than the row above")
    some = sorted({str(file) for file in files})
    child = f"from benchmarks.runtime import watched; watched({captioner!r}, {some!r}, {count})"
    done = subprocess.run([sys.executable, "-c", child], check=True, capture_output=True, text=True)
    before = 0.0
    for row in done.stdout.splitlines():
        name, _, now = row.rpartition(" ")
        line(name, f"{float(now):.0f} MB", float(now) - before)
        before = float(now)


def watched(captioner: str, some: list[str], count: int) -> None:
    """Describe files as the command line does; print the most memory held after each third."""
    from sightline.cli import app

    files = [some[i % len(some)] for i in range(count)]
    marks = {len(files) // 3: "a third of them", 2 * len(files) // 3: "two thirds"}
    marks[len(files)] = "all of them"
    printed = Printed(marks)
    with redirect_stdout(cast(TextIO, printed)):
        app(["describe", *files, "--model", captioner, "--json"], standalone_mode=False)
    for name in marks.values():
        print(f"{name} {printed.held[name]:.1f}")


class Printed(io.StringIO):
    """Output that is discarded, and the most memory held when so many lines had been written."""

    def __init__(self, marks: dict[int, str]) -> None:
        super().__init__()
        self.marks, self.lines, self.held = marks, 0, dict[str, float]()

    def write(self, text: str) -> int:
        for _ in range(text.count("\n")):
            self.lines += 1
            if self.lines in self.marks:
                self.held[self.marks[self.lines]] = most_held()
        return len(text)


def most_held() -> float:
    """MB. Linux counts what the parent held before this program was begun into `getrusage`."""
    status = Path("/proc/self/status")
    if status.exists():
        (peak,) = [row for row in status.read_text().splitlines() if row.startswith("VmHWM")]
        return int(peak.split()[1]) / 1024
    unit = 1 << 20 if sys.platform == "darwin" else 1 << 10
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit


# ---------------------------------------------------------------------------------- text


def translating(model: Describer) -> None:
    """Sentences of about ten words."""
    words = ["a", "young", "man", "in", "red", "is", "standing", "of", "the", "house"]
    rng = np.random.default_rng(0)
    sentences = [" ".join(rng.choice(words, rng.integers(6, 15))) for _ in range(128)]
    title("Translation, sentences per second", "× one at a time, beam 5")
    alone = best(lambda: model.describe(sentences[0], beam=5))
    line("one at a time, beam 5", f"{1 / alone:.1f} /s", 1.0)
    for beam in (1, 5, 10):
        seconds = best(lambda b=beam: model.describe(sentences, beam=b), 2) / len(sentences)
        line(f"128 together, beam {beam}", f"{1 / seconds:.1f} /s", alone / seconds)


def writing(model: Describer) -> None:
    title("A language model, characters per second", "× one text")
    alone = best(lambda: model.describe("A", length=200), 3) / 200
    line("one text", f"{1 / alone:.0f} /s", 1.0)
    for count in (8, 64):
        seconds = best(lambda n=count: model.describe("A", length=50, n_best=n), 3) / (50 * count)
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


def mean(work: Callable[[Any], Any], inputs: Sequence[Any]) -> float:
    """The mean over inputs of the least seconds that each takes."""
    return sum(best(partial(work, each), 5) for each in inputs) / len(inputs)


def title(text: str, ratio: str) -> None:
    print(f"\n{text:<56}{ratio:>30}", flush=True)


def line(name: str, value: str, ratio: float) -> None:
    print(f"  {name:<44}{value:>20}{ratio:>20.2f}", flush=True)


if __name__ == "__main__":
    main()
