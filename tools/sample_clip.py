"""Makes the clip that ships, out of photos that ship: the camera moves over one after the other.

python tools/sample_clip.py src/sightline/tasks/clip/panel/sample.mp4 astronaut bird
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import av
import numpy as np
from PIL import Image

from sightline.samples import samples

WIDTH, HEIGHT, RATE = 320, 240, 12
SECONDS = 4  # of each photo


def shot(photo: Image.Image) -> list[np.ndarray]:
    """From the left to the right, and a little nearer."""
    frames = []
    for share in np.linspace(0, 1, SECONDS * RATE):
        height = photo.height * (1 - 0.2 * share)
        width = min(height * WIDTH / HEIGHT, 0.92 * photo.width)
        height = width * HEIGHT / WIDTH
        left, top = share * (photo.width - width), (photo.height - height) / 2
        box = (left, top, left + width, top + height)
        size = (WIDTH, HEIGHT)
        frames.append(np.asarray(photo.resize(size, Image.Resampling.LANCZOS, box=box)))
    return frames


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("out", type=Path)
    parser.add_argument("photos", nargs="+", help="names of samples, without .jpg")
    given = parser.parse_args()
    photos = {sample.path.stem: sample for sample in samples()}
    with av.open(str(given.out), "w", options={"movflags": "faststart"}) as container:
        container.metadata["comment"] = "; ".join(photos[name].credit for name in given.photos)
        stream: Any = container.add_stream("libx264", rate=RATE, options={"crf": "27"})
        stream.width, stream.height, stream.pix_fmt = WIDTH, HEIGHT, "yuv420p"
        for name in given.photos:
            for pixels in shot(Image.open(photos[name].path).convert("RGB")):
                container.mux(stream.encode(av.VideoFrame.from_ndarray(pixels, format="rgb24")))
        container.mux(stream.encode())


if __name__ == "__main__":
    main()
