"""The nouns that travel through Sightline: Inputs, Layout, ContextSet, Hypothesis, Description.

    file ─media─▶ Inputs ─encoder─▶ ContextSet ─attention + decoder─▶ Stepper ─search─▶ Hypothesis
         ─task─▶ Description

Arrays are torch tensors while a model is in training and NumPy arrays everywhere else; nothing in
this file imports torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from sightline.errors import UserError

Array = Any  # a torch.Tensor or a numpy.ndarray, of the shape that the comment beside it gives
LayoutKind = Literal["grid", "frames", "words", "points", "facts", "vector"]
Box = tuple[float, float, float, float]  # left, top, right, bottom, as fractions of a picture
WHOLE: Box = (0.0, 0.0, 1.0, 1.0)


@dataclass(frozen=True)
class Layout:
    """What position i of a context set is, so that one figure function can draw any modality.

    grid:   cell i of `shape` (rows, columns) over the part `box` of a picture, row by row; behind
            the cells the words `labels` that the picture may be about
    frames: the frame at `times[i]` seconds of a clip or a recording
    words:  the token `labels[i]` of a text
    points: the point `coordinates[i]`, called `labels[i]`; what is written is one outline, or
            several of shape[0] points each
    facts:  the sentence `labels[i]` of a story; attention has a row for each hop, not each token
    vector: one vector for the whole input (no attention)
    """

    kind: LayoutKind
    shape: tuple[int, ...] = ()
    times: tuple[float, ...] = ()
    labels: tuple[str, ...] = ()
    coordinates: tuple[tuple[float, ...], ...] = ()
    box: Box = WHOLE  # grid: the part of the picture that the encoder saw
    size: tuple[int, int] = (0, 0)  # grid: width and height of the picture in pixels, where known

    @staticmethod
    def grid(rows: int, columns: int, box: Box = WHOLE, size: tuple[int, int] = (0, 0)) -> Layout:
        return Layout("grid", shape=(rows, columns), box=box, size=size)

    @staticmethod
    def frames(times: Sequence[float]) -> Layout:
        return Layout("frames", times=tuple(times))

    @staticmethod
    def words(labels: Sequence[str]) -> Layout:
        return Layout("words", labels=tuple(labels))

    @property
    def cells(self) -> int:
        """Of a grid."""
        return self.shape[0] * self.shape[1]

    def __len__(self) -> int:
        """The number of positions."""
        if self.kind == "grid":
            return self.cells + len(self.labels)
        return len(self.times or self.labels or self.coordinates) or 1

    def to_json(self) -> dict[str, Any]:
        """Only the fields that this kind uses."""
        fields = {name: getattr(self, name) for name in ("shape", "times", "labels", "coordinates")}
        return {"kind": self.kind} | {k: list(v) for k, v in fields.items() if v}


@dataclass(frozen=True)
class Stream:
    """One named input of a batch.

    Examples of different lengths are padded along the second axis, and `mask` says which positions
    exist. A stream whose examples all have one shape, such as a picture's pixels, has no mask.
    """

    values: Array  # (B, L, …)
    mask: Array | None = None  # (B, L) bool

    @staticmethod
    def ragged(examples: Sequence[NDArray[Any]]) -> Stream:
        """Arrays of different lengths (L_b, …) as one padded stream."""
        longest = max(len(example) for example in examples)
        first = examples[0]
        values = np.zeros((len(examples), longest, *first.shape[1:]), first.dtype)
        mask = np.zeros((len(examples), longest), dtype=bool)
        for row, example in enumerate(examples):
            values[row, : len(example)] = example
            mask[row, : len(example)] = True
        return Stream(values, mask)


@dataclass(frozen=True)
class Inputs:
    """What a media reader made of one example, or of a batch of them: named, padded streams.

    A model that reads nothing, a language model, has a count and no streams.
    """

    count: int  # B
    streams: Mapping[str, Stream] = field(default_factory=dict)
    layouts: tuple[Layout | None, ...] = ()  # what each example's positions are, where known

    def __len__(self) -> int:
        return self.count

    def __getitem__(self, name: str) -> Stream:
        return self.streams[name]

    def __contains__(self, name: object) -> bool:
        return name in self.streams

    @staticmethod
    def batch(examples: Sequence[Inputs]) -> Inputs:
        """Several as one, each example's own lengths kept by the masks (NumPy arrays)."""
        if len(examples) == 1:
            return examples[0]
        return Inputs(
            count=sum(len(example) for example in examples),
            streams={name: _joined([e[name] for e in examples]) for name in examples[0].streams},
            layouts=tuple(layout for example in examples for layout in example.layouts),
        )

    @property
    def size(self) -> int:
        """Positions of the longest stream; 0 where all examples have one shape."""
        masks = [s.mask for s in self.streams.values() if s.mask is not None]
        return max((int(mask.sum(1).max()) for mask in masks), default=0)

    def map(self, change: Callable[[Array], Array]) -> Inputs:
        """The same with every array changed, such as moved to a device."""
        streams = {
            name: Stream(change(s.values), None if s.mask is None else change(s.mask))
            for name, s in self.streams.items()
        }
        return replace(self, streams=streams)


def _joined(streams: Sequence[Stream]) -> Stream:
    rows: list[NDArray[Any]] = []
    for stream in streams:
        if stream.mask is None:
            return Stream(np.concatenate([each.values for each in streams]))
        # padding is at the end of a row: what the mask keeps is the example itself
        rows += [values[mask] for values, mask in zip(stream.values, stream.mask, strict=True)]
    return Stream.ragged(rows)


@dataclass(frozen=True)
class ContextSet:
    """What an encoder read: the annotation vectors {c_1 … c_M} of every example of a batch."""

    values: Array  # (B, M, D)
    mask: Array  # (B, M) bool, true where a position exists
    keys: Array | None = None  # (B, M, A): the attention's projection of values, computed once
    bias: Array | None = None  # (B, M): added to every step's scores, to steer where it looks
    # (B, M): the token that a position stands for, a tag's word; 0 for those that stand for none
    tokens: Array | None = None
    sure: Array | None = None  # (B, M): how sure a classifier is of that word; 0 where none is
    members: tuple[ContextSet, ...] = ()  # of an ensemble: what each model's own encoder read

    def __len__(self) -> int:
        return int(self.values.shape[0])

    @staticmethod
    def empty(count: int) -> ContextSet:
        """For a model that reads nothing: `count` examples with no positions (NumPy arrays)."""
        return ContextSet(np.zeros((count, 0, 0), np.float32), np.zeros((count, 0), dtype=bool))

    def untagged(self, unknown: int) -> ContextSet:
        """The same without positions that stand for tokens: unseen, and standing for `unknown`."""
        if self.tokens is None:
            return self
        cells = self.tokens == 0
        members = tuple(member.untagged(unknown) for member in self.members)
        tokens = np.where(cells, 0, unknown)
        return replace(self, mask=self.mask & cells, tokens=tokens, sure=None, members=members)

    def select(self, examples: Array) -> ContextSet:
        """The context sets of the given examples (an index array), in that order."""
        return ContextSet(
            values=self.values[examples],
            mask=self.mask[examples],
            keys=None if self.keys is None else self.keys[examples],
            bias=None if self.bias is None else self.bias[examples],
            tokens=None if self.tokens is None else self.tokens[examples],
            sure=None if self.sure is None else self.sure[examples],
        )


@dataclass(frozen=True)
class Hypothesis:
    """One candidate output, with everything that the search knows of it."""

    tokens: tuple[int, ...]  # without the begin token; ends with the end token if `finished`
    log_probs: NDArray[np.float64]  # (T,): log p of each token given those before it
    score: float  # what the search ranked by (length-normalised where asked)
    finished: bool  # false where the length ran out before an end token came
    attention: NDArray[np.float32] | None = None  # (T, M): row t is where token t looked
    named: tuple[int, ...] = ()  # the tokens that the last of the M positions stand for

    @property
    def log_prob(self) -> float:
        return float(self.log_probs.sum())


@dataclass(frozen=True, eq=False)
class Description:
    """What is given to the user: the text, how sure each word is, and where each word looked."""

    text: str
    tokens: tuple[str, ...]
    score: float
    log_probs: tuple[float, ...]
    attention: NDArray[np.float32] | None = None  # (T, M)
    layout: Layout | None = None
    alternatives: tuple[Description, ...] = field(default=())
    confidence: float | None = None  # p(it is right); None of models that were not calibrated

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Description):
            return NotImplemented
        return all(
            np.array_equal(mine, theirs) if field.name == "attention" else mine == theirs
            for field in fields(self)
            for mine, theirs in [(getattr(self, field.name), getattr(other, field.name))]
        )

    def __hash__(self) -> int:
        return hash((self.text, self.tokens, self.score, self.log_probs))

    @property
    def attention_maps(self) -> NDArray[np.float32]:
        """Attention over a picture as (words, rows, columns)."""
        layout, weights = self.layout, self.attention
        if layout is None or layout.kind != "grid" or weights is None:
            raise UserError("only attention over a picture has rows and columns")
        return weights[:, : layout.cells].reshape(-1, *layout.shape)

    def _repr_html_(self) -> str:
        """What notebooks show: the text, and where each word looked."""
        from sightline.figures.notebook import as_html

        return as_html(self)

    def figure(self, path: Path | str, picture: Array | Path | str | None = None) -> None:
        """Draw where each word looked: over the picture, the words or the time that it describes.

        Attention over a picture needs the `picture`, a file or (H, W, 3) bytes. PNG, JPEG, SVG and
        PDF; over pictures also GIF and WebP, which move.
        """
        from sightline.figures import draw

        draw(self, path, picture)

    def to_json(self, attention: bool = True) -> dict[str, Any]:
        """A dictionary that `json.dumps` takes as it is; without attention it is small."""
        looked: dict[str, Any] = {
            "attention": None
            if self.attention is None
            else [[round(float(weight), 6) for weight in row] for row in self.attention],
            "layout": None if self.layout is None else self.layout.to_json(),
        }
        return {
            "text": self.text,
            "score": self.score,
            "confidence": self.confidence,
            "tokens": list(self.tokens),
            "log_probs": list(self.log_probs),
            **(looked if attention else {}),
            "alternatives": [other.to_json(attention) for other in self.alternatives],
        }
