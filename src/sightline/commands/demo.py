"""`sightline demo`: what ships, shown.

The captioner describes the sample photos and shows where it looked for each word. A character
language model writes in the manner of the plays that it read; a picture shows how surprised it was
by each character of a verse that it had never seen.
"""

from __future__ import annotations

import time
from pathlib import Path

from sightline.tasks.command_line import echo

CAPTIONER, LANGUAGE_MODEL = "default", "shakespeare"
OUT = Path("demo")


def demo() -> None:
    """Describe the sample photos and write a few verses; the figures go to demo/."""
    describe_photos(CAPTIONER)
    write_verses()
    echo("\nNext: `sightline --help`, README.md, docs/")


def describe_photos(model: Path | str) -> None:
    """Captions of the sample photos; a figure of each, an animation, and a page of all."""
    import sightline
    from sightline.report import ReportItem, write_report
    from sightline.samples import samples

    echo(f"Loading the captioner `{model}` …\n")
    captioner = sightline.load(model)
    photos = samples()
    began = time.perf_counter()
    descriptions = captioner.describe([photo.path for photo in photos])
    seconds = time.perf_counter() - began
    items = []
    for photo, description in zip(photos, descriptions, strict=True):
        echo(f"  {photo.name:18} {description.text}")
        description.figure(OUT / "photos" / f"{photo.path.stem}.png", photo.path)
        name = f"{photo.name}: {photo.credit}"
        items.append(ReportItem(name, photo.path, (photo.alt,), description, {}))
    echo(f"\n   ({len(photos) / seconds:,.1f} photos a second)")
    moving = OUT / "photos" / f"{photos[0].path.stem}.gif"
    descriptions[0].figure(moving, photos[0].path)
    title = "Photos that ship with Sightline"
    write_report(OUT / "photos.html", items, title=title, metrics={"corpus": {}})
    echo("\nWhere it looked for each word:")
    echo(f"  {OUT / 'photos.html'!s:22} all of them; point at a word")
    echo(f"  {OUT / 'photos/*.png'!s:22} a figure per photo")
    echo(f"  {moving!s:22} one that moves\n")


def write_verses() -> None:
    """A language model's writing, and how surprised it was by it and by a sonnet."""
    import sightline
    from sightline.figures import draw_surprise
    from sightline.samples import FOLDER

    echo(f"Loading the language model `{LANGUAGE_MODEL}` that ships with Sightline …")
    model = sightline.load(LANGUAGE_MODEL)
    began, count = time.perf_counter(), 0
    for step in model.stream("ROMEO:\n", length=240, temperature=0.7, seed=1):
        echo(step.text[count:], nl=False)
        count = len(step.text)
    echo(f"\n   ({count / (time.perf_counter() - began):,.0f} characters a second)")

    drawn = model.describe("JULIET:\n", length=500, temperature=0.8, seed=3)
    draw_surprise(drawn, OUT / "written.png")
    verse = (FOLDER / "sonnet.txt").read_text()  # not in the plays that the model learned from
    draw_surprise(model.force([""], [verse])[0], OUT / "read.png")
    echo("\nPictures, each character shaded by how much it surprised the model:")
    echo(f"  {OUT / 'written.png'}  what it wrote")
    echo(f"  {OUT / 'read.png'}     a sonnet that it had not read before")
