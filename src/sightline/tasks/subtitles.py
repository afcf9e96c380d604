"""Cues of subtitles: a text from one time to another, as SRT and WebVTT write it."""

from __future__ import annotations

VTT_HEAD = "WEBVTT\n\n"


def srt_cue(number: int, start: float, end: float, text: str) -> str:
    return f"{number}\n{clock(start, ',')} --> {clock(end, ',')}\n{text}\n\n"


def vtt_cue(start: float, end: float, text: str) -> str:
    escaped = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return f"{clock(start)} --> {clock(end)}\n{escaped}\n\n"


def clock(seconds: float, mark: str = ".") -> str:
    """Hours, minutes, seconds and thousandths."""
    minutes, rest = divmod(round(1000 * seconds), 60_000)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{rest // 1000:02}{mark}{rest % 1000:03}"
