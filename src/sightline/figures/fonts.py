"""Fonts that are there: for each figure the first that has all of its characters.

The base install has only Pillow's own font, which is plain ASCII. DejaVu comes with matplotlib;
what else a machine may have is tried by name, so that words in other scripts are shown where they
can be and are boxes, not a crash, where they cannot.
"""

from __future__ import annotations

import importlib.util
import unicodedata
from collections.abc import Iterable
from contextlib import suppress
from functools import lru_cache
from pathlib import Path

from PIL import ImageFont

_NOTO = ("NotoSans", "NotoSansCJK", "NotoSansArabic", "NotoSansHebrew", "NotoSansDevanagari")
_ON_SOME_MACHINES = (
    *(f"{name}-Regular.{'ttc' if 'CJK' in name else 'ttf'}" for name in _NOTO),
    *("Arial Unicode.ttf", "PingFang.ttc", "msyh.ttc", "arial.ttf", "seguisym.ttf"),
)
_NO_CHARACTER = "\U0010ffff"  # drawn as the box that stands for a missing glyph


def clean(text: str) -> str:
    """One line without control characters and lone surrogates, as XML and Pillow need it."""
    kept = (c for c in " ".join(text.split()) if unicodedata.category(c) not in ("Cc", "Cs"))
    return "".join(c for c in kept if c not in "\ufffe\uffff")


class Lettering:
    """One font for all texts of a figure, as far as there is one; measuring and cutting to fit."""

    def __init__(self, texts: Iterable[str]) -> None:
        self._file = _file_for("".join(texts))

    def font(self, text: str, size: int) -> ImageFont.FreeTypeFont:
        """The figure's font, or for a text that it cannot draw the best one for that text."""
        file = self._file if _missing(self._file, text) == 0 else _file_for(text)
        return _open(file, size)

    def width(self, text: str, size: int) -> float:
        return self.font(text, size).getlength(text)

    def fit(self, text: str, size: int, width: float, smallest: int) -> tuple[str, int]:
        """The text and a size at which it fits the width: smaller first, then cut short."""
        while size > smallest and self.width(text, size) > width:
            size -= 1
        if self.width(text, size) <= width:
            return text, size
        while len(text) > 1 and self.width(text + "…", size) > width:
            text = text[:-1]
        return text + "…", size

    def wrap(self, text: str, size: int, width: float) -> list[str]:
        """The text in lines of at most this width; only a word that is longer sticks out."""
        lines: list[str] = []
        for word in text.split():
            longer = f"{lines[-1]} {word}" if lines else word
            if lines and self.width(longer, size) <= width:
                lines[-1] = longer
            else:
                lines.append(word)
        return lines


def open_dejavu(name: str, size: int) -> ImageFont.FreeTypeFont:
    """A DejaVu font where matplotlib brings it, else Pillow's own font."""
    return _open(_dejavu(name), size)


def _dejavu(name: str) -> str | None:
    spec = importlib.util.find_spec("matplotlib")
    if spec is None or spec.origin is None:
        return None
    file = Path(spec.origin).parent / "mpl-data/fonts/ttf" / name
    return str(file) if file.exists() else None


def _file_for(text: str) -> str | None:
    """The first font that can draw every character, else the one that can draw the most."""
    return min((None, *_files()), key=lambda file: _missing(file, text))


def _missing(file: str | None, text: str) -> int:
    return sum(not _draws(file, c) for c in set(text) if not c.isspace())


@lru_cache(maxsize=256)
def _open(file: str | None, size: int) -> ImageFont.FreeTypeFont:
    if file is not None:
        return ImageFont.truetype(file, size)
    font = ImageFont.load_default(size)
    assert isinstance(font, ImageFont.FreeTypeFont)  # always so when a size is given
    return font


@lru_cache(maxsize=1)
def _files() -> tuple[str, ...]:
    files = [_dejavu("DejaVuSans.ttf")]
    for name in _ON_SOME_MACHINES:
        with suppress(OSError):
            files.append(str(ImageFont.truetype(name, 10).path))
    return tuple(file for file in files if file is not None)


@lru_cache(maxsize=50_000)
def _draws(file: str | None, character: str) -> bool:
    font = _open(file, 16)
    mask, missing = font.getmask(character), font.getmask(_NO_CHARACTER)
    return mask.size != missing.size or bytes(mask) != bytes(missing)
