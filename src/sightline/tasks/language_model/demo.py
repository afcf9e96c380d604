"""A language model's part of the demo: its writing, and how each character surprised it."""

from __future__ import annotations

import time
from pathlib import Path

from sightline.tasks.command_line import echo


def demo(name: str, out: Path) -> None:
    import sightline
    from sightline.figures import draw_surprise
    from sightline.samples import FOLDER

    model = sightline.load(name)
    began, count = time.perf_counter(), 0
    for step in model.stream("ROMEO:\n", length=240, temperature=0.7, seed=1):
        echo(step.text[count:], nl=False)
        count = len(step.text)
    echo(f"\n\n  {count / (time.perf_counter() - began):,.0f} characters a second")

    drawn = model.describe("JULIET:\n", length=500, temperature=0.8, seed=3)
    draw_surprise(drawn, out / "written.png")
    verse = (FOLDER / "sonnet.txt").read_text(encoding="utf-8")  # not in the plays that it read
    draw_surprise(model.force([""], [verse])[0], out / "read.png")
    echo("  How much each character surprised it:")
    echo(f"    {out / 'written.png'}  in what it wrote")
    echo(f"    {out / 'read.png'}     in a sonnet that it had not read before")
