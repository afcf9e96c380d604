"""The photos that ship: free to use, with what is seen in them and where, drawn by hand."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Thing:
    """Something visible: words that name it, and its box as fractions of the picture."""

    words: tuple[str, ...]
    box: tuple[float, float, float, float]  # x, y, width, height


@dataclass(frozen=True)
class Source:
    """Where the photo was taken from, and where there its licence is stated."""

    package: str
    path: str
    stated_in: str


@dataclass(frozen=True)
class Sample:
    """A photo with its alternative text, which is also a caption of it."""

    name: str  # of its file
    alt: str
    credit: str
    licence: str
    licence_url: str
    source: Source
    boxes: tuple[Thing, ...]

    @property
    def path(self) -> Path:
        return FOLDER / self.name


def samples() -> list[Sample]:
    """Every photo that ships."""
    listed = json.loads((FOLDER / "samples.json").read_text(encoding="utf-8"))
    for row in listed:
        row["source"] = Source(**row["source"])
        row["boxes"] = tuple(
            Thing(tuple(each["words"]), tuple(each["box"])) for each in row["boxes"]
        )
    return [Sample(**row) for row in listed]
