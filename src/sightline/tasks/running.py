"""A running description: a line for each stretch of a film, written as the film is read."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from sightline.errors import UserError
from sightline.tasks.command_line import echo, echo_json
from sightline.tasks.subtitles import VTT_HEAD, clock, srt_cue, vtt_cue
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
        echo(VTT_HEAD, nl=False)
    for number, passage in enumerate(found, start=1):
        start, end, text = passage.start, passage.end, passage.description.text
        if form == "json":
            times = {"start": round(start, 3), "end": round(end, 3)}
            echo_json({"file": name, **times, **passage.description.to_json()})
        elif form == "srt":
            echo(srt_cue(number, start, end, text), nl=False)
        elif form == "vtt":
            echo(vtt_cue(start, end, text), nl=False)
        else:
            echo(f"{clock(start)}  {text}")
        sys.stdout.flush()


def film_time(label: str) -> Callable[[float, float | None], None]:
    """Shows on a terminal how much of a film has been read, in its own time."""
    shown = -1

    def show(now: float, end: float | None) -> None:
        nonlocal shown
        if int(now) != shown and sys.stderr.isatty():
            shown = int(now)
            of = f" of {clock(end)[:8]}" if end else ""
            print(f"\r{label}: {clock(now)[:8]}{of}", end="", file=sys.stderr, flush=True)

    return show
