"""A sheet of paper with pictures, lines and texts at their places: PNG, JPEG, SVG or PDF."""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal
from xml.sax.saxutils import escape, quoteattr

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from sightline.figures.files import suffix_of, write
from sightline.figures.fonts import Lettering, clean

Colour = tuple[int, int, int]
INK, FAINT, RULE, PAPER = (27, 28, 33), (110, 112, 122), (214, 215, 221), (255, 255, 255)
SUFFIXES = (".png", ".svg", ".jpg", ".jpeg", ".pdf")
FINE = 4  # curves are drawn this much larger, then reduced, so that their edges are smooth
FAMILY = "'Helvetica Neue', Helvetica, Arial, 'Noto Sans', 'Noto Sans CJK SC', sans-serif"


@dataclass(frozen=True)
class Picture:
    """Pixels (h, w, 3) with their left top corner; `exact` ones are never stored as JPEG."""

    x: int
    y: int
    pixels: NDArray[np.uint8]
    exact: bool = False


@dataclass(frozen=True)
class Text:
    """A line of text, (x, y) on its base line; `angle` turns it about that point, upwards."""

    x: float
    y: float
    text: str
    size: int
    colour: Colour = INK
    anchor: Literal["start", "middle", "end"] = "start"
    angle: int = 0


@dataclass(frozen=True)
class Line:
    x0: float
    y0: float
    x1: float
    y1: float
    colour: Colour = RULE


@dataclass(frozen=True)
class Polyline:
    points: tuple[tuple[float, float], ...]
    colour: Colour = INK
    width: float = 2.0


@dataclass(frozen=True)
class Dot:
    x: float
    y: float
    radius: float
    colour: Colour = INK


@dataclass(frozen=True)
class Sheet:
    """What is drawn, in order: pictures, then lines, curves and dots, then texts."""

    width: int
    height: int
    title: str
    pictures: tuple[Picture, ...] = ()
    lines: tuple[Line, ...] = ()
    polylines: tuple[Polyline, ...] = ()
    dots: tuple[Dot, ...] = ()
    texts: tuple[Text, ...] = ()

    def save(self, path: Path | str) -> None:
        suffix = suffix_of(path, SUFFIXES)
        if suffix == ".svg":
            write(path, lambda file: file.write_text(to_svg(self), encoding="utf-8"))
        elif suffix in (".png", ".pdf"):
            write(path, lambda file: to_image(self).save(file, suffix[1:].upper()))
        else:
            write(path, lambda file: to_image(self).save(file, "JPEG", quality=92, subsampling=0))


# ---------------------------------------------------------------- pixels


def to_image(sheet: Sheet) -> Image.Image:
    image = Image.new("RGB", (sheet.width, sheet.height), PAPER)
    for picture in sheet.pictures:
        image.paste(Image.fromarray(picture.pixels), (picture.x, picture.y))
    draw = ImageDraw.Draw(image)
    for line in sheet.lines:
        draw.line((line.x0, line.y0, line.x1, line.y1), fill=line.colour, width=1)
    if sheet.polylines or sheet.dots:
        image = _with_curves(image, sheet)
        draw = ImageDraw.Draw(image)
    letters = Lettering(clean(text.text) for text in sheet.texts)
    for text in sheet.texts:
        _draw_text(image, draw, text, letters)
    return image


def _with_curves(image: Image.Image, sheet: Sheet) -> Image.Image:
    large = image.resize((FINE * image.width, FINE * image.height), Image.Resampling.NEAREST)
    draw = ImageDraw.Draw(large)
    for curve in sheet.polylines:
        points = [(FINE * x, FINE * y) for x, y in curve.points]
        draw.line(points, fill=curve.colour, width=round(FINE * curve.width), joint="curve")
    for dot in sheet.dots:
        draw.circle((FINE * dot.x, FINE * dot.y), FINE * dot.radius, fill=dot.colour)
    return large.reduce(FINE)


def _draw_text(
    image: Image.Image, draw: ImageDraw.ImageDraw, text: Text, letters: Lettering
) -> None:
    words = clean(text.text)
    if not words:
        return
    font = letters.font(words, text.size)
    anchor = {"start": "ls", "middle": "ms", "end": "rs"}[text.anchor]
    if not text.angle:
        draw.text((text.x, text.y), words, fill=text.colour, font=font, anchor=anchor)
        return
    # Turned text: drawn with its base point at the middle of a mask, which is then turned.
    reach = int(font.getlength(words)) + 2 * text.size
    mask = Image.new("L", (2 * reach, 2 * reach))
    ImageDraw.Draw(mask).text((reach, reach), words, fill=255, font=font, anchor=anchor)
    mask = mask.rotate(text.angle, Image.Resampling.BICUBIC)
    image.paste(text.colour, (round(text.x) - reach, round(text.y) - reach), mask)


# ---------------------------------------------------------------- SVG


def to_svg(sheet: Sheet) -> str:
    """One self-contained file: pictures as data, words as text."""
    title = clean(sheet.title)
    parts = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{sheet.width}" height="{sheet.height}" '
        f'viewBox="0 0 {sheet.width} {sheet.height}" role="img" aria-label={quoteattr(title)} '
        f"font-family={quoteattr(FAMILY)}>",
        f"<title>{escape(title)}</title>",
        f'<rect width="100%" height="100%" fill="{_hex(PAPER)}"/>',
    ]
    return "\n".join([*parts, *svg_parts(sheet), "</svg>", ""])


def svg_parts(sheet: Sheet, colours: Mapping[Colour, str] | None = None) -> list[str]:
    """The elements inside the <svg>; `colours` names some otherwise, as a page's style does."""

    def name(colour: Colour) -> str:
        return (colours or {}).get(colour) or _hex(colour)

    pictures = (
        f'<image x="{p.x}" y="{p.y}" width="{p.pixels.shape[1]}" height="{p.pixels.shape[0]}" '
        f'href="{data_uri(p.pixels, exact=p.exact)}"/>'
        for p in sheet.pictures
    )
    lines = (
        f'<line x1="{line.x0:g}" y1="{line.y0:g}" x2="{line.x1:g}" y2="{line.y1:g}" '
        f'stroke="{name(line.colour)}"/>'
        for line in sheet.lines
    )
    curves = (
        f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in curve.points)}" fill="none" '
        f'stroke="{name(curve.colour)}" stroke-width="{curve.width:.3g}" stroke-linejoin="round"/>'
        for curve in sheet.polylines
    )
    dots = (
        f'<circle cx="{d.x:.1f}" cy="{d.y:.1f}" r="{d.radius:.3g}" fill="{name(d.colour)}"/>'
        for d in sheet.dots
    )
    texts = (_svg_text(text, name(text.colour)) for text in sheet.texts)
    return [*pictures, *lines, *curves, *dots, *texts]


def _svg_text(text: Text, colour: str) -> str:
    turn = f' transform="rotate({-text.angle} {text.x:g} {text.y:g})"' if text.angle else ""
    return (
        f'<text x="{text.x:g}" y="{text.y:g}" font-size="{text.size}" fill="{colour}" '
        f'text-anchor="{text.anchor}"{turn}>{escape(clean(text.text))}</text>'
    )


def _hex(colour: Colour) -> str:
    return "#{:02x}{:02x}{:02x}".format(*colour)


def data_uri(pixels: NDArray[np.uint8], *, quality: int = 88, exact: bool = False) -> str:
    """Pixels as a JPEG (or, if they must be exact, a PNG) inside an address."""
    store = io.BytesIO()
    image = Image.fromarray(pixels)
    if exact:
        image.save(store, "PNG", optimize=True)
    else:
        image.save(store, "JPEG", quality=quality, optimize=True)
    kind = "png" if exact else "jpeg"
    return f"data:image/{kind};base64,{base64.b64encode(store.getvalue()).decode('ascii')}"
