"""Made pictures of any size with small things in them: discs, some with a digit to read.

    picture, text = draw(np.random.default_rng(seed), 4096)

Two discs of different colours have a digit, two others are blank; the text names the former in the
alphabetical order of the colours: "blue 3 red 1". A disc is 64 pixels wide whatever the
picture's size, its digit about 30 pixels high: that is lost in a small copy of a large picture, but
that there is a disc, and its colour, can be seen.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from PIL import Image, ImageDraw, ImageFont

COLOURS = {
    "blue": (40, 70, 220), "green": (30, 160, 50), "orange": (245, 140, 20),
    "pink": (240, 90, 180), "red": (215, 30, 40),
}  # fmt: skip
DISC = 64
WITH_DIGIT, BLANK = 2, 2
WORDS = (*COLOURS, *map(str, range(10)))


@lru_cache(maxsize=1)
def _grain() -> np.ndarray:
    """A tile of noise, (512, 512, 1)."""
    return np.random.default_rng(0).integers(0, 40, (512, 512, 1), dtype=np.uint8)


def background(random: np.random.Generator, side: int) -> np.ndarray:
    """Dull hills of light with grain and grey stones, (side, side, 3)."""
    steps = np.arange(side) / side * 2 * np.pi
    waves = [20 * np.sin(random.integers(1, 5) * steps + random.uniform(0, 6)) for _ in range(2)]
    colour = random.integers(70, 140) + random.integers(-15, 16, 3)
    rows = (waves[0][:, None] + colour + 20).astype(np.uint8)  # (side, 3)
    columns = (waves[1] + 20).astype(np.uint8)
    times = -(-side // 512)
    picture = np.tile(_grain(), (times, times, 3))[:side, :side]
    picture += rows[:, None]
    picture += columns[None, :, None]
    for _ in range(max(4, side * side // 60_000)):
        height, width = random.integers(8, 90, 2)
        top, left = random.integers(0, max(1, side - 90), 2)
        grey = random.integers(20, 180) + random.integers(-12, 13, 3)
        picture[top : top + height, left : left + width] = grey.clip(0, 255)
    return picture


@lru_cache
def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size=size)


def _disc(random: np.random.Generator, colour: str, digit: str | None) -> Image.Image:
    """RGBA; the colour varies."""
    shade = tuple(int(c) for c in (np.array(COLOURS[colour]) + random.integers(-15, 16, 3)))
    disc = Image.new("RGBA", (DISC, DISC))
    pen = ImageDraw.Draw(disc)
    pen.ellipse((0, 0, DISC - 1, DISC - 1), fill=(*np.clip(shade, 0, 255).tolist(), 255))
    if digit is not None:
        font = _font(int(random.integers(38, 48)))
        glyph = Image.new("L", (DISC, DISC))
        middle = DISC / 2 + random.integers(-3, 4, 2)
        ImageDraw.Draw(glyph).text(tuple(middle), digit, 255, font, anchor="mm")
        glyph = glyph.rotate(random.uniform(-15, 15), Image.Resampling.BICUBIC)
        disc.paste((255, 255, 255, 255), mask=glyph)
    return disc


def _places(random: np.random.Generator, side: int, count: int) -> np.ndarray:
    """Corners of discs that do not touch, (count, 2)."""
    while True:
        places = random.integers(4, side - DISC - 4, (count, 2))
        apart = np.abs(places[:, None] - places).max(2) + side * np.eye(count)
        if apart.min() > DISC + 8:
            return places


def draw(
    random: np.random.Generator, side: int, digits: int = WITH_DIGIT, blank: int = BLANK
) -> tuple[np.ndarray, str]:
    """A picture (side, side, 3) and what is to be read in it."""
    picture = background(random, side)
    colours = random.permutation(list(COLOURS))
    read: dict[str, str] = {}
    places = _places(random, side, digits + blank)
    for number, colour in enumerate(map(str, colours[: digits + blank])):
        digit = str(random.integers(10)) if number < digits else None
        disc = _disc(random, colour, digit)
        top, left = places[number]
        under = Image.fromarray(picture[top : top + DISC, left : left + DISC])
        under.paste(disc, mask=disc)
        picture[top : top + DISC, left : left + DISC] = np.asarray(under)
        if digit is not None:
            read[colour] = digit
    return picture, " ".join(f"{colour} {read[colour]}" for colour in sorted(read))
