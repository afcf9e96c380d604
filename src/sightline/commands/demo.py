"""`sightline demo`: what ships, shown: every model on the samples that its task names."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sightline.tasks.command_line import counted_nouns, echo

if TYPE_CHECKING:
    from sightline.types import Description

OUT = Path("demo")


def demo() -> None:
    """Show every model that ships on a few samples; the figures go to demo/."""
    from sightline import zoo
    from sightline.commands.models import task_of
    from sightline.errors import MissingPackageError
    from sightline.runtime.card import Card, read_card
    from sightline.tasks import spec_of, task_names

    order = task_names()
    for name in sorted(zoo.names(), key=lambda name: order.index(task_of(name))):
        spec = spec_of(task_of(name))
        card = read_card(zoo.FOLDER / name) or Card(name)
        echo(f"── {name}: {card.about}\n")
        try:
            if spec.demo is not None:
                spec.demo(name, OUT / name)
            elif spec.samples is not None:
                describe_samples(name)
        except MissingPackageError as error:  # the others can be shown
            echo(f"  Not shown: {error}")
        echo()
    echo(f"The figures are in {OUT}/. Next: `sightline --help`, README.md, docs/")


def describe_samples(model: Path | str) -> None:
    """What the model says of its task's samples; where it looked, a figure of each and a page."""
    import sightline
    from sightline.tasks import spec_of

    describer = sightline.load(model)
    spec = spec_of(describer.task)
    assert spec.samples is not None
    sources = list(spec.samples(describer.recipe))
    began = time.perf_counter()
    descriptions = describer.describe(sources)
    seconds = time.perf_counter() - began
    for source, description in zip(sources, descriptions, strict=True):
        echo(f"  {_shown(source)}\n    → {description.text}")
    echo(f"\n  {counted_nouns(len(sources), 'sample')} in {seconds:.1f} s")
    out = OUT / Path(model).name
    if not all(map(_can_be_drawn, descriptions)):
        return
    for number, (source, description) in enumerate(zip(sources, descriptions, strict=True), 1):
        stem = source.stem if isinstance(source, Path) else str(number)
        description.figure(out / f"{stem}.png", source)
        if number == 1 and isinstance(source, Path):
            description.figure(out / f"{stem}.gif", source)  # one that moves
    echo("  Where it looked for each word:")
    if all(d.layout and d.layout.kind in ("grid", "words") for d in descriptions):
        _page(out.with_suffix(".html"), sources, descriptions, out.name)
        echo(f"    {out}.html{' ' * 8}all of them; point at a word")
    echo(f"    {out}/")


def _shown(source: Any) -> str:
    if isinstance(source, Path):
        return source.name
    return str(source).replace("\n", " ") if isinstance(source, str) else f"{len(source)} points"


def _can_be_drawn(description: Description) -> bool:
    from sightline.figures.draw import FIGURES

    layout = description.layout
    return description.attention is not None and layout is not None and layout.kind in FIGURES


def _page(path: Path, sources: list[Any], descriptions: list[Description], name: str) -> None:
    """A page of all samples; photos with their credits."""
    from sightline.report import ReportItem, write_report
    from sightline.samples import samples

    photos = {photo.path: photo for photo in samples()}
    items = []
    for source, description in zip(sources, descriptions, strict=True):
        photo = photos.get(source) if isinstance(source, Path) else None
        about = f"{photo.name}: {photo.credit}" if photo else ""
        items.append(ReportItem(about, source, (photo.alt,) if photo else (), description, {}))
    write_report(path, items, title=f"{name}: its samples", metrics={"corpus": {}})
