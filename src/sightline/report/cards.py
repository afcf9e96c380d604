"""One picture of a report: small, with its caption, references, scores and attention as data."""

from __future__ import annotations

import base64
import html
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sightline.errors import DataError, UserError
from sightline.figures.looks import looks_of, words_of
from sightline.figures.sheet import data_uri
from sightline.media.image import ImageSpec, read_image, visible_box
from sightline.report.names import label_of, shown
from sightline.types import Description

SIDE, QUALITY = 320, 70  # of the JPEG inside the page
# Seen on every card; the others when the page is sorted by them.
_MAIN = ("bleu_4", "meteor", "rouge_l", "cider", "cider_d", "wer", "per", "sacrebleu", "chrf")
_SURE = 0.7  # a word more probable than this is not marked


@dataclass(frozen=True)
class ReportItem:
    """A described picture with its references and its own scores by key."""

    id: str
    image_path: Path | str
    references: tuple[str, ...]
    description: Description
    scores: Mapping[str, float]


def card(
    number: int,
    item: ReportItem,
    group: str,
    keys: Sequence[str],
    sort: str,
    spec: ImageSpec | None,
) -> str:
    numbers = [item.scores.get(key, math.nan) for key in keys]
    data = " ".join(f"{value:.6g}" for value in numbers)
    marks = "".join(
        f'<li data-key="{html.escape(key)}" class="{_class(key, sort)}">'
        f"{html.escape(label_of(key))} <b>{shown(key, value)}</b></li>"
        for key, value in zip(keys, numbers, strict=True)
    )
    references = "".join(f'<li dir="auto">{html.escape(text)}</li>' for text in item.references)
    picture, box = _picture(item, spec)
    return (
        f'<article class="card" data-group="{group}" data-scores="{data}" '
        f'aria-labelledby="c{number}">'
        f'{picture}<div class="text">{_caption(number, item, box)}'
        f'<ul class="marks" aria-label="Scores">{marks}</ul>'
        f'<ul class="refs" aria-label="References">{references}</ul>'
        f'<p class="id">{html.escape(str(item.id))}</p></div></article>'
    )


def _class(key: str, sort: str) -> str:
    return " ".join(["main"] * (key in _MAIN) + ["on"] * (key == sort))


def _picture(item: ReportItem, spec: ImageSpec | None) -> tuple[str, str]:
    """The picture's element, and the part that the encoder saw as four parts of its sides."""
    try:
        pixels = read_image(item.image_path)
    except DataError as error:
        return f'<div class="pic"><p class="lost">{html.escape(str(error))}</p></div>', "0 0 1 1"
    height, width = pixels.shape[:2]
    left, top, right, bottom = visible_box(height, width, spec) if spec else (0, 0, width, height)
    box = f"{left / width:.4f} {top / height:.4f} {right / width:.4f} {bottom / height:.4f}"
    small = _thumbnail(pixels)
    sizes = f'width="{small.shape[1]}" height="{small.shape[0]}"'
    across, down = min(1.0, 0.75 * width / height), min(1.0, height / width / 0.75)
    place = f"width:{100 * across:.2f}%;height:{100 * down:.2f}%"  # whole, in a well of 4 : 3
    return (
        f'<div class="pic"><div class="frame" style="{place}">'
        f'<img alt="Picture {html.escape(str(item.id))}" {sizes} loading="lazy" decoding="async" '
        f'src="{data_uri(small, quality=QUALITY)}"></div></div>'
    ), box


def _thumbnail(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    image = Image.fromarray(pixels)
    image.thumbnail((SIDE, SIDE), Image.Resampling.LANCZOS, reducing_gap=3.0)
    return np.asarray(image)


def _caption(number: int, item: ReportItem, box: str) -> str:
    """The caption by words; where there is attention, each is a button that shows it."""
    description = item.description
    layout = description.layout
    if description.attention is None or layout is None or layout.kind != "grid":
        words = " ".join(
            f"<span{_surprise(description, a, b)}>{html.escape(word)}</span>"
            for word, a, b in words_of(description.tokens)
        )
        return f'<p class="cap" id="c{number}" dir="auto">{words}</p>'
    try:
        looks = looks_of(description)
    except UserError as error:
        raise UserError(f"item {item.id}: {error}") from None
    peaks = [float(look.weights.max()) for look in looks]
    # Each row in 255 parts of its peak: one byte per weight.
    rows = [
        np.rint(look.weights / (peak or 1) * 255) for look, peak in zip(looks, peaks, strict=True)
    ]
    packed = base64.b64encode(np.clip(np.array(rows), 0, 255).astype(np.uint8).tobytes()).decode()
    words = " ".join(
        f'<button type="button" class="w" tabindex="{0 if i == 0 else -1}" data-i="{i}"'
        f"{_surprise(description, look.start, look.stop)}>{html.escape(look.word)}</button>"
        for i, look in enumerate(looks)
    )
    return (
        f'<p class="cap" id="c{number}" role="group" dir="auto" '
        f'data-grid="{layout.shape[0]} {layout.shape[1]}" data-box="{box}" '
        f'data-peaks="{" ".join(f"{peak:.4g}" for peak in peaks)}" data-weights="{packed}">'
        f"{words}</p>"
    )


def _surprise(description: Description, start: int, stop: int) -> str:
    """How sure the model was of a word: told, and shown as a line under doubtful ones."""
    log_prob = sum(description.log_probs[start:stop])
    if start >= len(description.log_probs) or not math.isfinite(log_prob):
        return ""
    p = math.exp(min(0.0, log_prob))
    doubt = "" if p > _SURE else f' style="--doubt:{1 - p / _SURE:.2f}"'
    return f' title="{_percent(p)}"{doubt}'


def _percent(p: float) -> str:
    return f"p = {p:.2f}" if p >= 0.01 else f"p = {p:.1g}"
