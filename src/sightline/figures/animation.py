"""Attention over a picture as an animation: the caption grows, the light moves with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from sightline.errors import UserError
from sightline.figures.files import suffix_of, write
from sightline.figures.fonts import Lettering, clean
from sightline.figures.looks import PictureSource, lit_panels, read_picture, resized
from sightline.types import Description

SUFFIXES = (".gif", ".webp")
GROUND, BRIGHT, QUIET = (20, 20, 23), (255, 255, 255), (152, 153, 162)
SIZE, LINE, MARGIN = 22, 32, 20
LEAST_WIDTH = 300  # room for the caption under slim pictures
FIRST, HOLD, LAST, MOVE = 900, 420, 2200, 45  # milliseconds of a frame, by what it shows


def animate_attention(
    picture: PictureSource,
    description: Description,
    path: Path | str,
    *,
    side: int = 360,
    steps: int = 4,
) -> None:
    """Write an animation, .gif or .webp: word by word, `steps` frames from one to the next.

    The longer side of the picture is `side` pixels. The picture itself comes first and last.
    """
    suffix = suffix_of(path, SUFFIXES)
    if side < 16 or steps < 1:
        raise UserError("an animation needs a side of at least 16 pixels and at least 1 step")
    pixels = read_picture(picture)
    scale = side / max(pixels.shape[:2])
    height, width = (max(24, round(scale * length)) for length in pixels.shape[:2])
    small = resized(pixels, width, height)
    panels = lit_panels(small, description)
    words = [clean(look.word) for look, _ in panels]
    page = Page(words, width, height)
    frames, times = [page.frame(small, 0)], [FIRST]
    shown = small
    for number, (_, lit) in enumerate(panels, start=1):
        frames += [page.frame(view, number) for view in _between(shown, lit, steps)]
        times += [MOVE] * (steps - 1) + [HOLD]
        shown = lit
    if panels:  # back to the picture
        frames += [
            page.frame(view, len(words), done=True) for view in _between(shown, small, steps)
        ]
        times += [MOVE] * (steps - 1) + [LAST]
    save_frames(frames, times, path, suffix)


def _between(
    first: NDArray[np.uint8], second: NDArray[np.uint8], steps: int
) -> list[NDArray[np.uint8]]:
    """From the first panel (not shown again) to the second; slow at both ends.

    A panel is linear in its map, so that mixing panels is mixing maps.
    """
    mixed = []
    for step in range(1, steps + 1):
        part = 0.5 - 0.5 * math.cos(math.pi * step / steps)
        mixed.append(np.rint(first * (1 - part) + second * part).astype(np.uint8))
    return mixed


class Page:
    """A picture above its caption, of which the first words are shown."""

    def __init__(self, words: list[str], width: int, height: int) -> None:
        self.width = max(width, LEAST_WIDTH) + 2 * MARGIN
        self.left = (self.width - width) // 2
        self.top = MARGIN
        self.letters = Lettering(words)
        self.words, lines = _place(words, self.width - 2 * MARGIN, self.letters)
        self.caption_top = self.top + height + 14
        self.height = self.caption_top + lines * LINE + MARGIN - 8

    def frame(self, pixels: NDArray[np.uint8], count: int, done: bool = False) -> Image.Image:
        """The first `count` words, the last of them bright, or all of them when it is done."""
        bright = [done or number == count for number in range(1, count + 1)]
        return self.lit(pixels, [float(each) for each in bright])

    def lit(self, pixels: NDArray[np.uint8], light: Sequence[float]) -> Image.Image:
        """The first words, as many as there are lights, each from quiet (0) to bright (1)."""
        image = Image.new("RGB", (self.width, self.height), GROUND)
        image.paste(Image.fromarray(pixels), (self.left, self.top))
        draw = ImageDraw.Draw(image)
        for part, (x, line, word) in zip(light, self.words, strict=False):
            mixed = np.array(QUIET) * (1 - part) + np.array(BRIGHT) * part
            place = (MARGIN + x, self.caption_top + line * LINE + SIZE)
            colour = tuple(int(each) for each in mixed.round())
            draw.text(place, word, fill=colour, font=self.letters.font(word, SIZE), anchor="ls")
        return image


def _place(
    words: list[str], width: float, letters: Lettering
) -> tuple[list[tuple[float, int, str]], int]:
    """(x, line, word) of each word, and how many lines there are."""
    placed, x, line = [], 0.0, 0
    space = letters.width(" ", SIZE)
    for word in words:
        if not word:
            continue
        length = letters.width(word, SIZE)
        if x and x + length > width:
            x, line = 0.0, line + 1
        placed.append((x, line, word))
        x += length + space
    return placed, line + 1


def save_frames(frames: list[Image.Image], times: list[int], path: Path | str, suffix: str) -> None:
    """Write an animation, each frame for so many milliseconds."""
    options: dict[str, Any] = {"format": "WEBP", "quality": 80, "method": 4}
    if suffix == ".gif":
        # One palette for all frames and no dithering: colours do not flicker, the file is small.
        palette = _palette(frames)
        frames = [frame.quantize(palette=palette, dither=Image.Dither.NONE) for frame in frames]
        options = {"format": "GIF", "optimize": False, "disposal": 1}
    first, *others = frames
    options |= {"save_all": True, "append_images": others, "duration": times, "loop": 0}
    write(path, lambda file: first.save(file, **options))


def _palette(frames: list[Image.Image]) -> Image.Image:
    """256 colours for the whole animation, from a few of its frames one under the other."""
    chosen = frames[:: max(1, len(frames) // 12)]
    strip = Image.fromarray(np.concatenate([np.asarray(frame) for frame in chosen]))
    own = [*GROUND, *QUIET, *BRIGHT]  # the page's own colours stay as they are
    colours = strip.quantize(253, Image.Quantize.MEDIANCUT).getpalette() or []
    palette = Image.new("P", (1, 1))
    palette.putpalette([*own, *colours[: 253 * 3]])
    return palette
