"""A description as HTML for notebooks: its words, and under each where the model looked.

It holds no picture: over a picture the attention is drawn alone, as a small map per word. Nothing
is fetched, and no script runs.
"""

from __future__ import annotations

import base64
import html
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sightline.figures.looks import words_of
from sightline.types import Description, Layout

MAP = 72  # pixels of a map's longer side
SHOWN = 3  # positions named for a word, of those that have no picture
LONGEST = 60  # words shown with their attention

_CELL = "display:inline-block;margin:0 10px 8px 0;text-align:center;vertical-align:top"


def as_html(description: Description) -> str:
    """The text, how sure the model is, the words with their attention, and the alternatives."""
    sure = "" if description.confidence is None else f" · confidence {description.confidence:.0%}"
    head = (
        f'<div style="font-size:120%">{html.escape(description.text)}</div>'
        f'<div style="opacity:.65">score {description.score:.2f}{sure}</div>'
    )
    words = "".join(_words(description))
    others = "".join(
        f"<li>{html.escape(other.text)} ({other.score:.2f})</li>"
        for other in description.alternatives
    )
    return f"<div>{head}<div>{words}</div>{f'<ul>{others}</ul>' if others else ''}</div>"


def _words(description: Description) -> list[str]:
    weights, layout = description.attention, description.layout
    if weights is None or layout is None or len(weights) != len(description.tokens):
        return []
    shown = []
    for word, start, stop in words_of(description.tokens)[:LONGEST]:
        mean = weights[start:stop].mean(axis=0)
        if layout.kind == "grid":
            looked = _map(mean[: layout.cells].reshape(layout.shape))
        else:
            looked = _names(*_by_word(mean, layout))
        shown.append(f'<div style="{_CELL}">{html.escape(word)}<br>{looked}</div>')
    return shown


def _map(weights: NDArray[np.float32]) -> str:
    """White where it looked most."""
    light = weights / max(float(weights.max()), 1e-9)
    file = io.BytesIO()
    Image.fromarray(np.rint(255 * light).astype(np.uint8)).save(file, "PNG")
    data = base64.b64encode(file.getvalue()).decode()
    rows, columns = weights.shape
    unit = MAP / max(rows, columns)
    size = f"width:{columns * unit:.0f}px;height:{rows * unit:.0f}px"
    return f'<img alt="" style="{size}" src="data:image/png;base64,{data}">'


def _by_word(weights: NDArray[np.float32], layout: Layout) -> tuple[NDArray[Any], list[str]]:
    """Attention over the pieces of a text as attention over its words."""
    if layout.kind != "words" or len(layout.labels) != len(weights):
        return weights, list(layout.labels)
    spans = words_of(layout.labels)
    return np.array([weights[a:b].sum() for _, a, b in spans]), [word for word, _, _ in spans]


def _names(weights: NDArray[Any], labels: list[str]) -> str:
    if len(labels) != len(weights):
        return ""
    most = np.argsort(-weights, kind="stable")[:SHOWN]
    rows = (f"{html.escape(labels[i])} {weights[i]:.0%}" for i in most if weights[i] >= 0.05)
    return f'<small style="opacity:.65">{"<br>".join(rows)}</small>'
