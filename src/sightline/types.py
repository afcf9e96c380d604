"""The nouns that travel through Sightline: ContextSet, Layout, Hypothesis, Description.

    file ─media─▶ array ─encoder─▶ ContextSet ─attention + decoder─▶ Stepper ─search─▶ Description

Arrays are torch tensors while a model is in training and NumPy arrays everywhere else; nothing in
this file imports torch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Array = Any  # a torch.Tensor or a numpy.ndarray, of the shape that the comment beside it gives
LayoutKind = Literal["grid", "frames", "words", "points", "vector"]


@dataclass(frozen=True)
class Layout:
    """What position i of a context set is, so that one figure function can draw any modality.

    grid:   cell i of `shape` (rows, columns) over a picture, row by row
    frames: the frame at `times[i]` seconds of a clip or a recording
    words:  the token `labels[i]` of a text
    points: the point `coordinates[i]`
    vector: one vector for the whole input (no attention)
    """

    kind: LayoutKind
    shape: tuple[int, ...] = ()
    times: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()
    coordinates: tuple[tuple[float, ...], ...] = ()

    @staticmethod
    def grid(rows: int, columns: int) -> Layout:
        return Layout("grid", shape=(rows, columns))

    @staticmethod
    def frames(times: Sequence[float]) -> Layout:
        return Layout("frames", times=tuple(times))

    @staticmethod
    def words(labels: Sequence[str]) -> Layout:
        return Layout("words", labels=tuple(labels))

    def to_json(self) -> dict[str, Any]:
        """Only the fields that this kind uses."""
        fields = {name: getattr(self, name) for name in ("shape", "times", "labels", "coordinates")}
        return {"kind": self.kind} | {k: list(v) for k, v in fields.items() if v}


@dataclass(frozen=True)
class ContextSet:
    """What an encoder read: the annotation vectors {c_1 … c_M} of every example of a batch.

    What position i is, its Layout, goes from the reader straight to the Description: figures need
    it, the decoder never does.
    """

    values: Array  # (B, M, D)
    mask: Array  # (B, M) bool, true where a position exists
    keys: Array | None = None  # (B, M, A): the attention's projection of values, computed once
    bias: Array | None = None  # (B, M): added to every step's scores, to steer where it looks

    def __len__(self) -> int:
        return int(self.values.shape[0])

    def with_keys(self, keys: Array) -> ContextSet:
        return replace(self, keys=keys)

    def select(self, examples: Array) -> ContextSet:
        """The context sets of the given examples (an index array), in that order."""
        return ContextSet(
            values=self.values[examples],
            mask=self.mask[examples],
            keys=None if self.keys is None else self.keys[examples],
            bias=None if self.bias is None else self.bias[examples],
        )


@dataclass(frozen=True)
class Hypothesis:
    """One candidate output, with everything that the search knows of it."""

    tokens: tuple[int, ...]  # without the begin token; ends with the end token if `finished`
    log_probs: NDArray[np.float64]  # (T,): log p of each token given those before it
    score: float  # what the search ranked by (length-normalised where asked)
    finished: bool  # false where the length ran out before an end token came
    attention: NDArray[np.float32] | None = None  # (T, M): row t is where token t looked

    @property
    def log_prob(self) -> float:
        return float(self.log_probs.sum())


@dataclass(frozen=True)
class Description:
    """What is given to the user: the text, how sure each word is, and where each word looked."""

    text: str
    tokens: tuple[str, ...]
    score: float
    log_probs: tuple[float, ...]
    attention: NDArray[np.float32] | None = None  # (T, M)
    layout: Layout | None = None
    alternatives: tuple[Description, ...] = field(default=())

    def figure(
        self,
        path: Path | str,
        picture: Array | Path | str | None = None,
        *,
        visible_box: tuple[float, float, float, float] | None = None,
    ) -> None:
        """Draw where each word looked: over the picture, the words or the time that it describes.

        `picture` (a file or (H, W, 3) bytes) is needed for attention over one; `visible_box` is
        the part of it that the encoder saw, if not the whole. PNG, JPEG and SVG; over pictures
        also GIF and WebP, which move.
        """
        from sightline.figures import draw

        draw(self, path, picture, visible_box=visible_box)

    def to_json(self) -> dict[str, Any]:
        """A dictionary that `json.dumps` takes as it is."""
        return {
            "text": self.text,
            "score": self.score,
            "tokens": list(self.tokens),
            "log_probs": list(self.log_probs),
            "attention": None
            if self.attention is None
            else [[round(float(weight), 6) for weight in row] for row in self.attention],
            "layout": None if self.layout is None else self.layout.to_json(),
            "alternatives": [other.to_json() for other in self.alternatives],
        }
