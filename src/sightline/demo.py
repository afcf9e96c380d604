"""`make demo`: the best thing that works so far, shown with what ships.

A character language model writes in the manner of the plays that it read, at three temperatures;
a picture shows how surprised it was by each character of a verse that it had never seen.
"""

from __future__ import annotations

import time
from pathlib import Path

import typer

MODEL = "shakespeare"
OUT = Path("demo")
# Sonnet 18: not in the plays that the model learnt from
VERSE = (
    "Shall I compare thee to a summer's day?\n"
    "Thou art more lovely and more temperate:\n"
    "Rough winds do shake the darling buds of May,\n"
    "And summer's lease hath all too short a date;\n"
)


def main() -> None:
    import sightline
    from sightline.commands import one_thread
    from sightline.figures import draw_surprise

    typer.echo(f"Loading the language model `{MODEL}` that ships with Sightline …")
    model = sightline.load(MODEL)
    one_thread()
    for temperature in (0.3, 0.7, 1.1):
        typer.echo(f"\n── temperature {temperature} " + "─" * 50)
        began, count = time.perf_counter(), 0
        for piece in model.stream("ROMEO:\n", length=240, temperature=temperature, seed=1):
            typer.echo(piece, nl=False)
            count += len(piece)
        typer.echo(f"\n   ({count / (time.perf_counter() - began):,.0f} characters a second)")

    drawn = model.sample("JULIET:\n", length=500, temperature=0.8, seed=3)[0]
    draw_surprise(drawn, OUT / "written.png")
    draw_surprise(model.read(VERSE), OUT / "read.png")
    typer.echo("\nPictures, each character shaded by how much it surprised the model:")
    typer.echo(f"  {OUT / 'written.png'}  what it wrote")
    typer.echo(f"  {OUT / 'read.png'}     a sonnet that it had not read before")
    typer.echo("\nNext: `sightline --help`, README.md, docs/")


if __name__ == "__main__":
    main()
