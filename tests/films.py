"""Small films, written on the spot: moving squares, shots that differ, odd files."""

from fractions import Fraction
from pathlib import Path

import numpy as np

COLOURS = {"red": (220, 30, 30), "green": (30, 200, 30), "blue": (30, 60, 220)}


def write_film(path, frames, *, rate=8, times=None, rotation=0, aspect=1, codec="libx264", sound=0):
    """Frames (H, W, 3) at `rate`, or at `times` in seconds; `aspect` is a pixel's width/height."""
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream(codec, rate=rate)
        stream.width, stream.height = frames[0].shape[1], frames[0].shape[0]
        stream.pix_fmt = "yuv420p"
        stream.codec_context.sample_aspect_ratio = Fraction(aspect)
        if times is not None:
            stream.codec_context.time_base = Fraction(1, 1000)
        if rotation:
            stream.set_display_rotation(rotation)
        for number, pixels in enumerate(frames):
            frame = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format="rgb24")
            if times is not None:
                frame.pts, frame.time_base = round(1000 * times[number]), Fraction(1, 1000)
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return Path(path)


def write_sound(path):
    """A second of silence, no pictures."""
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("pcm_s16le", rate=8000, layout="mono")
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 8000), np.int16), "s16", "mono")
        frame.sample_rate = 8000
        container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return Path(path)


def plain(colour, count, height=48, width=64):
    """`count` frames of one colour."""
    return [np.full((height, width, 3), colour, np.uint8)] * count


def moving(colour, count, direction, height=64, width=64):
    """A square of a colour on grey, that moves right (1, 0), down (0, 1) …"""
    frames = []
    for i in range(count):
        pixels = np.full((height, width, 3), 128, np.uint8)
        share = i / max(1, count - 1)
        x = 8 + round(32 * (share if direction[0] > 0 else 1 - share if direction[0] else 0.5))
        y = 8 + round(32 * (share if direction[1] > 0 else 1 - share if direction[1] else 0.5))
        pixels[y : y + 16, x : x + 16] = colour
        frames.append(pixels)
    return frames


def textured(seed, count, height=72, width=96, drift=2):
    """A shot: a coarse pattern of its own that drifts a little."""
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, 256, (height // 12, width // 8 + count, 3), dtype=np.uint8)
    wide = blocks.repeat(12, 0).repeat(8, 1)
    return [wide[:, drift * i : drift * i + width] for i in range(count)]
