"""Reading films: are cuts found, and does memory stay the same for an hour?

    python -m benchmarks.film_reading MANIFEST [--joins 100] [--minutes 5 60]

Clips of the manifest's test split are joined in memory, frame by frame, and the detector of cuts
is asked about each join. Then films of these clips in turn are written, and read in stretches.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from sightline.data.manifest import read_split
from sightline.media.shots import CutDetector
from sightline.media.video import read_clip, read_clips

FRAMES, RATE = 21, 7  # of each clip on either side of a join


def found_joins(films: list[Path], count: int) -> tuple[int, int]:
    """Of `count` joins those that are called a cut, and cuts elsewhere, of which some are real."""
    rng = np.random.default_rng(1)
    thumbs = [_thumbs(film) for film in films]
    found = others = 0
    for _ in range(count):
        a, b = rng.choice(len(films), 2, replace=False)
        detector = CutDetector()
        frames = [*thumbs[a][-FRAMES:], *thumbs[b][:FRAMES]]
        cuts = [i for i, f in enumerate(frames) if detector.is_cut(i / RATE, f)]
        join = len(thumbs[a][-FRAMES:])
        found += join in cuts
        others += len(set(cuts) - {join})
    return found, others


def _thumbs(film: Path) -> list[Any]:
    size = (CutDetector.WIDTH, CutDetector.HEIGHT)
    frames = read_clip(film, 500, 144).frames
    return [np.asarray(Image.fromarray(f).resize(size, Image.Resampling.BOX)) for f in frames]


def write_long(films: list[Path], path: Path, minutes: int) -> None:
    """The films' frames in turn, 192 x 144, at 7 frames a second."""
    import av

    some = [f for film in films[:10] for f in read_clip(film, 70, 144).frames]
    small = [np.asarray(Image.fromarray(f).resize((192, 144))) for f in some]
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=RATE, options={"preset": "ultrafast"})
        stream.width, stream.height = 192, 144
        for number in range(minutes * 60 * RATE):
            frame = av.VideoFrame.from_ndarray(small[number % len(small)], format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())


def read_long(path: str) -> None:
    """In a process of its own: its greatest memory, by the end."""
    began = time.process_time()
    count = sum(1 for _ in read_clips(path, 16, 297, every=10))
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{count} stretches of 10 s, {most:.0f} MB, {time.process_time() - began:.1f} s of CPU")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("manifest")
    parser.add_argument("--joins", type=int, default=100)
    parser.add_argument("--minutes", type=int, nargs="*", default=[5, 60])
    parser.add_argument("--read", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.read:
        read_long(given.manifest)
        return
    films = [e.media for e in read_split(given.manifest, "test", "video") if e.media]
    found, others = found_joins(films, given.joins)
    print(f"{found} of {given.joins} joins are found, {others} cuts elsewhere", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for minutes in given.minutes:
            path = Path(folder) / f"{minutes}.mp4"
            write_long(films, path, minutes)
            print(f"{minutes} minutes: ", end="", flush=True)
            command = [sys.executable, "-m", "benchmarks.film_reading", str(path), "--read"]
            subprocess.run(command, check=True)


if __name__ == "__main__":
    main()
