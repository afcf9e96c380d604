"""How long does a clip of 10 seconds take, and where does the time go? With the model that ships.

    python -m benchmarks.clip_speed [--threads 2]

Of films made on the spot, as small as MSR-VTT's and as a phone's. The processor's time besides the
clock's, which other programs on the machine lengthen.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

KINDS = {"192 x 144, 7 a second": (192, 144, 7), "1280 x 720, 30 a second": (1280, 720, 30)}
SECONDS = 10


def write_film(path: Path, width: int, height: int, rate: int) -> None:
    """The photos that ship, one second each, sliding."""
    import av
    import numpy as np
    from PIL import Image

    from sightline.samples import samples

    photos = [Image.open(each.path).convert("RGB") for each in samples()]
    with av.open(str(path), "w") as container:
        stream: Any = container.add_stream("libx264", rate=rate)
        stream.width, stream.height, stream.pix_fmt = width, height, "yuv420p"
        for second in range(SECONDS):
            wide = photos[second % len(photos)].resize((width + 2 * rate, height))
            for shift in range(rate):
                frame = wide.crop((2 * shift, 0, 2 * shift + width, height))
                picture = av.VideoFrame.from_ndarray(np.asarray(frame), format="rgb24")
                container.mux(stream.encode(picture))
        container.mux(stream.encode())


def timed(work: Callable[[], Any]) -> tuple[float, float, Any]:
    """The clock's and the processor's seconds, the least of three times, and what came of it."""
    clock, processor, result = [], [], None
    for _ in range(3):
        began, used = time.perf_counter(), time.process_time()
        result = work()
        clock.append(time.perf_counter() - began)
        processor.append(time.process_time() - used)
    return min(clock), min(processor), result


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--threads", type=int, default=2)
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(given.threads)  # before onnxruntime is there
    import sightline

    model = sightline.load("clips")
    for name, shape in KINDS.items():
        with tempfile.TemporaryDirectory() as folder:
            film = Path(folder) / "film.mp4"
            write_film(film, *shape)
            read, read_cpu, parts = timed(lambda film=film: model.reader.read(film))
            encode, encode_cpu, _ = timed(lambda parts=parts: model.encode(parts[0]))
            whole, whole_cpu, found = timed(lambda film=film: model.describe(film))
        print(
            f"{name}: read {read:.2f} s ({read_cpu:.2f} of the processor), encode {encode:.2f} "
            f"({encode_cpu:.2f}), all with the search {whole:.2f} ({whole_cpu:.2f}): {found.text}"
        )


if __name__ == "__main__":
    main()
