"""`sightline describe`: captions for pictures, and where the model looked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sightline.commands import Device

if TYPE_CHECKING:
    from sightline.tasks.captioner import Captioner
    from sightline.types import Description

BATCH = 16  # pictures read and described together


def describe(
    sources: Annotated[
        list[str], typer.Argument(help="Pictures, folders of them, patterns; - is standard input.")
    ],
    model: Annotated[str, typer.Option(help="A run, a checkpoint, or a zoo name.")] = "default",
    beam: Annotated[
        int | None, typer.Option(min=1, help="Hypotheses searched side by side.")
    ] = None,
    n_best: Annotated[int, typer.Option(min=1, help="Captions per picture.")] = 1,
    prefix: Annotated[str, typer.Option(help="Words that the caption has to begin with.")] = "",
    focus: Annotated[
        str | None,
        typer.Option(metavar="X,Y,W,H", help="Look here: a box, as fractions of the picture."),
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(help="Draw where it looked, one file per picture, in this folder."),
    ] = None,
    figure_format: Annotated[
        str, typer.Option(help="png, jpg or svg: a panel per word; gif or webp: it moves.")
    ] = "png",
    as_json: Annotated[
        bool, typer.Option("--json", help="One JSON object per picture and line.")
    ] = False,
    device: Device = "auto",
) -> None:
    """Describe pictures in words; one bad file does not stop the rest."""
    import sys

    from sightline.data.progress import counted
    from sightline.media.focus import parse_focus
    from sightline.tasks import load_for

    box = None if focus is None else parse_focus(focus)
    captioner: Captioner = load_for(model, "caption", device=device)
    files = list(_expand(sources))
    batches = [files[at : at + BATCH] for at in range(0, len(files), BATCH)]
    options = {"beam": beam, "n_best": n_best, "prefix": prefix, "focus": box}
    outcomes = (outcome for batch in batches for outcome in _outcomes(captioner, batch, **options))
    if len(files) > BATCH and sys.stderr.isatty():
        outcomes = counted(outcomes, len(files), "describing")  # type: ignore[assignment]
    failed = 0
    for name, picture, result in outcomes:
        failed += isinstance(result, str)
        _show(name, result, as_json=as_json, alone=len(files) == 1)
        if figure is not None and not isinstance(result, str):
            _draw(figure, figure_format, name, picture, result)
    if failed:
        raise typer.Exit(2)


def _expand(sources: list[str]) -> Iterator[str]:
    """The files that are meant: folders give the pictures in them, patterns what they match."""
    import glob

    from sightline.data.features import pictures_in
    from sightline.errors import DataError

    for source in sources:
        path = Path(source)
        if path.is_dir():
            yield from (str(file) for file in pictures_in(path).values())
        elif glob.has_magic(source) and not path.exists():
            found = sorted(glob.glob(source, recursive=True))
            if not found:
                raise DataError(f"no file matches {source}")
            yield from found
        else:
            yield source  # if it is not there, its own line says so


def _outcomes(
    captioner: Captioner, names: list[str], **options: Any
) -> Iterator[tuple[str, Any, Description | str]]:
    """For each file in order: its name, its pixels, and its description or what was wrong."""
    import sys

    from sightline.errors import DataError
    from sightline.media.image import read_image

    pictures: dict[int, Any] = {}
    errors: dict[int, str] = {}
    for number, name in enumerate(names):
        try:
            source: Any = sys.stdin.buffer.read() if name == "-" else name
            pictures[number] = read_image(source, name="standard input" if name == "-" else name)
        except DataError as error:
            errors[number] = str(error)
    found = captioner.describe(list(pictures.values()), **options) if pictures else []
    described = dict(zip(pictures, found, strict=True))
    for number, name in enumerate(names):
        yield name, pictures.get(number), described.get(number) or errors[number]


def _show(name: str, result: Description | str, *, as_json: bool, alone: bool) -> None:
    import json

    if as_json:
        content = {"error": result} if isinstance(result, str) else result.to_json()
        typer.echo(json.dumps({"file": name, **content}, ensure_ascii=False))
    elif isinstance(result, str):
        typer.echo(f"sightline: {result}", err=True)
    else:
        start = "" if alone else f"{name}: "
        typer.echo(start + result.text)
        for other in result.alternatives:
            typer.echo(" " * len(start) + f"{other.text}  ({other.score:.2f})")


def _draw(folder: Path, suffix: str, name: str, picture: Any, result: Description) -> None:
    path = folder / f"{'stdin' if name == '-' else Path(name).stem}.{suffix}"
    result.figure(path, picture)
    typer.echo(f"wrote {path}", err=True)
