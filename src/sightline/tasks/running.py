"""A running description: a line for each stretch of a film, written as the film is read."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sightline.errors import UserError
from sightline.tasks.command_line import echo, echo_json
from sightline.types import Description

if TYPE_CHECKING:
    from sightline.runtime.describer import Describer, Options

Form = Literal["text", "json", "srt", "vtt"]


@dataclass(frozen=True)
class Passage:
    """A stretch of a film, in seconds, and what happens in it."""

    start: float
    end: float
    description: Description


def passages(
    describer: Describer,
    source: Any,
    *,
    every: float = math.inf,
    shots: bool = False,
    ask: Options | None = None,
    progress: Callable[[float, float | None], None] = lambda now, end: None,
) -> Iterator[Passage]:
    """Stretches of `every` seconds, or the film's shots, each described on its own."""
    stretches = getattr(describer.reader, "stretches", None)
    if stretches is None:
        raise UserError("--every and --shots are for models that read clips; give one with --model")
    for start, end, inputs in stretches(source, every=every, shots=shots, progress=progress):
        yield Passage(start, end, describer.describe_inputs([inputs], ask)[0])


def write_passages(found: Iterator[Passage], name: str, form: Form) -> None:
    """Print each as soon as it is there."""
    if form == "vtt":
        echo("WEBVTT\n")
    for number, passage in enumerate(found, start=1):
        text = passage.description.text
        if form == "json":
            times = {"start": round(passage.start, 3), "end": round(passage.end, 3)}
            echo_json({"file": name, **times, **passage.description.to_json()})
        elif form == "text":
            echo(f"{clock(passage.start, '.')}  {text}")
        else:
            mark = "," if form == "srt" else "."
            cue = f"{clock(passage.start, mark)} --> {clock(passage.end, mark)}\n{text}\n"
            echo(f"{number}\n{cue}" if form == "srt" else cue)
        sys.stdout.flush()


def clock(seconds: float, mark: str) -> str:
    """Hours, minutes, seconds and thousandths, as subtitles write them."""
    thousandths = round(1000 * seconds)
    minutes, rest = divmod(thousandths, 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{rest // 1000:02}{mark}{rest % 1000:03}"


def film_time(label: str) -> Callable[[float, float | None], None]:
    """Shows on a terminal how much of a film has been read, in its own time."""
    shown = -1

    def show(now: float, end: float | None) -> None:
        nonlocal shown
        if int(now) != shown and sys.stderr.isatty():
            shown = int(now)
            of = f" of {clock(end, '.')[:8]}" if end else ""
            print(f"\r{label}: {clock(now, '.')[:8]}{of}", end="", file=sys.stderr, flush=True)

    return show
