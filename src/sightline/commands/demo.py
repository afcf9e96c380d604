"""`sightline demo`: what ships, shown.

The captioner describes the sample photos and shows where it looked for each word. A character
language model writes in the manner of the plays that it read; a picture shows how surprised it was
by each character of a verse that it had never seen.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from sightline.samples import Sample
    from sightline.types import Description

CAPTIONER, LANGUAGE_MODEL = "default", "shakespeare"
OUT = Path("demo")
# Sonnet 18: not in the plays that the model learnt from
VERSE = (
    "Shall I compare thee to a summer's day?\n"
    "Thou art more lovely and more temperate:\n"
    "Rough winds do shake the darling buds of May,\n"
    "And summer's lease hath all too short a date;\n"
)


def demo() -> None:
    """Describe the sample photos and write a few verses; the figures go to demo/."""
    describe_photos(CAPTIONER)
    write_verses()
    typer.echo("\nNext: `sightline --help`, README.md, docs/")


def describe_photos(model: Path | str) -> None:
    """Captions of the sample photos; a figure of each, one that moves, and a page of all."""
    import sightline
    from sightline.figures import animate_attention, draw_attention
    from sightline.media.image import read_image
    from sightline.samples import samples

    typer.echo(f"Loading the captioner `{model}` …\n")
    captioner = sightline.load(model)
    photos = samples()
    pictures = [read_image(photo.path) for photo in photos]
    began = time.perf_counter()
    descriptions = captioner.describe(pictures)
    seconds = time.perf_counter() - began
    for photo, description in zip(photos, descriptions, strict=True):
        typer.echo(f"  {photo.name:18} {description.text}")
    typer.echo(f"\n   ({len(photos) / seconds:,.1f} photos a second)")

    for photo, picture, description in zip(photos, pictures, descriptions, strict=True):
        path = OUT / "photos" / f"{photo.path.stem}.png"
        draw_attention(picture, description, path)
    moving = OUT / "photos" / f"{photos[0].path.stem}.gif"
    animate_attention(pictures[0], descriptions[0], moving)
    _write_page(photos, descriptions)
    typer.echo("\nWhere it looked for each word:")
    for path, what in (
        (OUT / "photos.html", "all of them; point at a word"),
        (OUT / "photos/*.png", "a figure per photo"),
        (moving, "one that moves"),
    ):
        typer.echo(f"  {path!s:22} {what}")
    typer.echo()


def _write_page(photos: list[Sample], descriptions: list[Description]) -> None:
    from sightline.report import ReportItem, write_report

    items = [
        ReportItem(f"{photo.name}: {photo.credit}", photo.path, (photo.alt,), description, {})
        for photo, description in zip(photos, descriptions, strict=True)
    ]
    title = "Photos that ship with Sightline"
    write_report(OUT / "photos.html", items, title=title, metrics={"corpus": {}})


def write_verses() -> None:
    """A language model's writing, and how surprised it was by it and by a sonnet."""
    import sightline
    from sightline.figures import draw_surprise
    from sightline.tasks.command_line import one_thread

    typer.echo(f"Loading the language model `{LANGUAGE_MODEL}` that ships with Sightline …")
    model = sightline.load(LANGUAGE_MODEL)
    one_thread()
    began, count = time.perf_counter(), 0
    for step in model.stream("ROMEO:\n", length=240, temperature=0.7, seed=1):
        typer.echo(step.text[count:], nl=False)
        count = len(step.text)
    typer.echo(f"\n   ({count / (time.perf_counter() - began):,.0f} characters a second)")

    drawn = model.describe("JULIET:\n", length=500, temperature=0.8, seed=3)
    draw_surprise(drawn, OUT / "written.png")
    draw_surprise(model.force([""], [VERSE])[0], OUT / "read.png")
    typer.echo("\nPictures, each character shaded by how much it surprised the model:")
    typer.echo(f"  {OUT / 'written.png'}  what it wrote")
    typer.echo(f"  {OUT / 'read.png'}     a sonnet that it had not read before")
