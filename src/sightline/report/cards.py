"""One item of a report: what was described, the text, its references, scores and attention."""

from __future__ import annotations

import base64
import html
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sightline.errors import DataError, UserError
from sightline.figures.looks import Look, looks_of, smooth, words_of
from sightline.figures.sheet import data_uri
from sightline.media.image import read_image
from sightline.metrics import info
from sightline.types import Description, Layout

SIDE, QUALITY = 320, 70  # of the JPEG inside the page
_SURE = 0.7  # a word more probable than this is not marked
_MINOR = re.compile(r"bleu_[123]|.*_nobp|.*_plain")  # scores shown only when sorted by


@dataclass(frozen=True)
class ReportItem:
    """A described picture or text with its references and its scores by key."""

    id: str
    source: Path | str  # a picture's file; for a layout of words the text itself
    references: tuple[str, ...]
    description: Description
    scores: Mapping[str, float]


def card(number: int, item: ReportItem, group: str, keys: Sequence[str], sort: str) -> str:
    numbers = [item.scores.get(key, math.nan) for key in keys]
    data = " ".join(f"{value:.6g}" for value in numbers)
    marks = "".join(
        f'<li data-key="{html.escape(key)}" class="{_class(key, sort)}">'
        f"{html.escape(info(key).label)} <b>{info(key).show(value)}</b></li>"
        for key, value in zip(keys, numbers, strict=True)
    )
    references = "".join(f'<li dir="auto">{html.escape(text)}</li>' for text in item.references)
    return (
        f'<article class="card" data-group="{group}" data-scores="{data}" '
        f'aria-labelledby="c{number}">'
        f'{_source(item)}<div class="text">{_caption(number, item)}'
        f'<ul class="marks" aria-label="Scores">{marks}</ul>'
        f'<ul class="refs" aria-label="References">{references}</ul>'
        f'<p class="id">{html.escape(str(item.id))}</p></div></article>'
    )


def _class(key: str, sort: str) -> str:
    return " ".join(["main"] * (not _MINOR.fullmatch(key)) + ["on"] * (key == sort))


# ---------------------------------------------------------------- what was described


def _source(item: ReportItem) -> str:
    layout = item.description.layout
    if layout is not None and layout.kind == "words":
        words = (html.escape(word) for word, _, _ in words_of(layout.labels))
        return (
            f'<p class="source" dir="auto">{" ".join(f"<span>{word}</span>" for word in words)}</p>'
        )
    if (layout is None or layout.kind != "grid") and isinstance(item.source, str):
        return f'<p class="source" dir="auto">{html.escape(item.source)}</p>'
    return _picture(item)


def _picture(item: ReportItem) -> str:
    try:
        pixels = read_image(item.source)
    except DataError as error:
        return f'<div class="pic"><p class="lost">{html.escape(str(error))}</p></div>'
    height, width = pixels.shape[:2]
    small = _thumbnail(pixels)
    sizes = f'width="{small.shape[1]}" height="{small.shape[0]}"'
    across, down = min(1.0, 0.75 * width / height), min(1.0, height / width / 0.75)
    place = f"width:{100 * across:.2f}%;height:{100 * down:.2f}%"  # whole, in a well of 4 : 3
    return (
        f'<div class="pic"><div class="frame" style="{place}">'
        f'<img alt="Picture {html.escape(str(item.id))}" {sizes} loading="lazy" decoding="async" '
        f'src="{data_uri(small, quality=QUALITY)}"></div></div>'
    )


def _thumbnail(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    image = Image.fromarray(pixels)
    image.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS, reducing_gap=3.0)
    return np.asarray(image)


# ---------------------------------------------------------------- the text, and where it looked


def _caption(number: int, item: ReportItem) -> str:
    """The text by words; where there is attention, each is a button that shows it."""
    description = item.description
    layout = description.layout
    if description.attention is None or layout is None or layout.kind not in ("grid", "words"):
        words = " ".join(
            f"<span{_doubt(description, a, b)}>{html.escape(word)}</span>"
            for word, a, b in words_of(description.tokens)
        )
        return f'<p class="cap" id="c{number}" dir="auto">{words}</p>'
    try:
        looks = looks_of(description)
    except UserError as error:
        raise UserError(f"item {item.id}: {error}") from None
    words = " ".join(
        f'<button type="button" class="w" tabindex="{0 if i == 0 else -1}" data-i="{i}"'
        f"{_doubt(description, look.start, look.stop)}>{html.escape(look.word)}</button>"
        for i, look in enumerate(looks)
    )
    data = " ".join(f'data-{key}="{value}"' for key, value in _attention(looks, layout).items())
    return f'<p class="cap" id="c{number}" role="group" dir="auto" {data}>{words}</p>'


def _attention(looks: Sequence[Look], layout: Layout) -> dict[str, str]:
    """The weights in 255 parts of each word's greatest, one byte each, and how to show them."""
    if not looks:
        return {}
    weights = np.stack([look.weights for look in looks])  # (T, M)
    shape: dict[str, str] = {}
    if layout.kind == "grid":
        _, low, high = smooth(weights, layout)
        weights = weights[:, : layout.cells]
        shape = {
            "grid": _numbers(layout.shape),
            "box": _numbers(layout.box),
            "low": _numbers(low.ravel()),
            "high": _numbers(high.ravel()),
        }
    else:  # pieces of a word of the source are one word
        spans = words_of(layout.labels)
        weights = np.stack([weights[:, a:b].sum(axis=1) for _, a, b in spans], axis=1)
    peaks = weights.max(axis=1)
    parts = weights / np.where(peaks > 0, peaks, 1)[:, None]
    stored = np.clip(np.rint(255 * parts), 0, 255).astype(np.uint8)
    packed = base64.b64encode(stored.tobytes()).decode()
    return {**shape, "peaks": _numbers(peaks), "weights": packed}


def _numbers(values: Any) -> str:
    return " ".join(f"{value:.4g}" for value in values)


def _doubt(description: Description, start: int, stop: int) -> str:
    """How sure the model was of a word: its probability, and a line under doubtful ones."""
    log_prob = sum(description.log_probs[start:stop])
    if start >= len(description.log_probs) or not math.isfinite(log_prob):
        return ""
    p = math.exp(min(0.0, log_prob))
    doubt = "" if p > _SURE else f' style="--doubt:{1 - p / _SURE:.2f}"'
    return f' title="p = {p:{".2f" if p >= 0.01 else ".1g"}}"{doubt}'
