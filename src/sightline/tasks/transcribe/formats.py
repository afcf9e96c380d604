"""Transcripts as files: txt, srt, vtt, tsv, json (as whisper writes them), TextGrid and CTM."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from sightline.tasks.subtitles import VTT_HEAD, srt_cue, vtt_cue
from sightline.tasks.transcribe.timing import Span


@dataclass(frozen=True)
class Cue:
    """What was said without a longer pause: a line of a transcript."""

    text: str
    start: float
    end: float
    spans: tuple[Span, ...]


def cues_of(lines: Sequence[tuple[str, Sequence[Span]]]) -> list[Cue]:
    """In order, each ending before the next begins; those in which nothing was heard left out."""
    said = [(text, spans) for text, spans in lines if text and spans]
    starts = [spans[0].start for _, spans in said]
    return [
        Cue(text, spans[0].start, min(spans[-1].end, after), tuple(spans))
        for (text, spans), after in zip(said, [*starts[1:], float("inf")], strict=False)
    ]


def as_txt(cues: Sequence[Cue], name: str) -> str:
    return "".join(f"{cue.text}\n" for cue in cues)


def as_srt(cues: Sequence[Cue], name: str) -> str:
    return "".join(srt_cue(i, cue.start, cue.end, cue.text) for i, cue in enumerate(cues, start=1))


def as_vtt(cues: Sequence[Cue], name: str) -> str:
    return VTT_HEAD + "".join(vtt_cue(cue.start, cue.end, cue.text) for cue in cues)


def as_tsv(cues: Sequence[Cue], name: str) -> str:
    rows = [f"{round(1000 * c.start)}\t{round(1000 * c.end)}\t{c.text}" for c in cues]
    return "\n".join(["start\tend\ttext", *rows]) + "\n"


def as_json(cues: Sequence[Cue], name: str) -> str:
    segments = [
        {
            "id": number,
            "start": round(cue.start, 3),
            "end": round(cue.end, 3),
            "text": cue.text,
            "words": [span.to_json() for span in cue.spans],
        }
        for number, cue in enumerate(cues)
    ]
    content = {"file": name, "text": " ".join(cue.text for cue in cues), "segments": segments}
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def as_textgrid(cues: Sequence[Cue], name: str) -> str:
    """Praat's long text format: a tier of lines and one of phones or words, with their gaps."""
    end = max((cue.end for cue in cues), default=0.0)
    lines = [(cue.start, cue.end, cue.text) for cue in cues]
    parts = [(span.start, span.end, span.text) for cue in cues for span in cue.spans]
    tiers = [_tier(1, "lines", lines, end), _tier(2, "tokens", parts, end)]
    head = f'File type = "ooTextFile"\nObject class = "TextGrid"\n\nxmin = 0\nxmax = {end:.3f}\n'
    return head + "tiers? <exists>\nsize = 2\nitem []:\n" + "".join(tiers)


def as_ctm(cues: Sequence[Cue], name: str) -> str:
    return "".join(
        f"{name.replace(' ', '_')} 1 {s.start:.3f} {s.end - s.start:.3f} {s.text} "
        f"{s.probability:.4f}\n"
        for cue in cues
        for s in cue.spans
    )


FORMATS: dict[str, Callable[[Sequence[Cue], str], str]] = {
    "txt": as_txt,
    "srt": as_srt,
    "vtt": as_vtt,
    "tsv": as_tsv,
    "json": as_json,
    "textgrid": as_textgrid,
    "ctm": as_ctm,
}
SUFFIXES = {"textgrid": ".TextGrid"}  # where it is not the format's name


def _tier(number: int, name: str, marks: Sequence[tuple[float, float, str]], end: float) -> str:
    """An interval tier without gaps: what is between the marks is empty."""
    intervals: list[tuple[float, float, str]] = []
    at = 0.0
    for start, stop, text in marks:
        start, stop = round(max(start, at), 3), round(stop, 3)
        if stop <= start:
            continue
        if start > at:
            intervals.append((at, start, ""))
        intervals.append((start, stop, text.replace('"', '""')))
        at = stop
    if at < round(end, 3) or not intervals:
        intervals.append((at, round(end, 3), ""))
    rows = "".join(
        f"        intervals [{i}]:\n            xmin = {start:.3f}\n            xmax = {stop:.3f}\n"
        f'            text = "{text}"\n'
        for i, (start, stop, text) in enumerate(intervals, start=1)
    )
    return (
        f'    item [{number}]:\n        class = "IntervalTier"\n        name = "{name}"\n'
        f"        xmin = 0\n        xmax = {end:.3f}\n        intervals: size = {len(intervals)}\n"
        + rows
    )
