"""Captioner: a trained captioning model, pictures in and descriptions out; nothing here is torch's.

What computes is given to it: an encoder (pixels to annotation vectors) and a Stepper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sightline import search
from sightline.data.manifest import Example, normalise_caption
from sightline.data.progress import counted
from sightline.data.vocabulary import UNKNOWN, Vocabulary
from sightline.errors import UserError
from sightline.media.focus import Region, focus_bias
from sightline.media.image import ImageSource, ImageSpec, preprocess, read_image, visible_box
from sightline.runtime.onnx import side_by_side, workers
from sightline.runtime.partial import Partial, partial_result
from sightline.search import Snapshot
from sightline.search.steppers import Prefixed, Steered, Stepper
from sightline.types import Description, Hypothesis, Layout

if TYPE_CHECKING:
    from sightline.tasks.caption import CaptionRecipe

Picture = ImageSource | NDArray[np.uint8]  # a file, its bytes, or pixels (H, W, 3)

SEARCH_BATCH = 16  # pictures searched at a time: of more, a step no longer fits the caches


class PictureEncoder(Protocol):
    """Preprocessed pictures to annotation vectors."""

    @property
    def spec(self) -> ImageSpec: ...

    def grid(self) -> tuple[int, int]:
        """Rows and columns of the map."""
        ...

    def encode(self, images: NDArray[np.float32]) -> NDArray[np.float32]:
        """(B, 3, S, S) → (B, M, D)."""
        ...


@dataclass(frozen=True)
class ReadPicture:
    """A picture as the encoder takes it; its pixels are let go."""

    image: NDArray[np.float32]  # (3, S, S)
    width: int
    height: int
    visible_box: tuple[float, float, float, float]  # left, top, right, bottom, as fractions


class Captioner:
    """A trained captioner: pictures in, descriptions out."""

    def __init__(
        self,
        recipe: CaptionRecipe,
        vocab: Vocabulary,
        stepper: Stepper,  # started with annotation vectors (B, M, D); never writes <unknown>
        encoder: PictureEncoder | None = None,
    ) -> None:
        self.recipe = recipe
        self.vocab = vocab
        self.stepper = stepper
        self._encoder = encoder

    @property
    def encoder(self) -> PictureEncoder:
        """The picture encoder; a captioner in training has none, for it reads cached vectors."""
        if self._encoder is None:
            raise UserError("this captioner has no picture encoder; load it with sightline.load")
        return self._encoder

    def describe(
        self,
        pictures: Picture | Sequence[Picture],
        *,
        beam: int | None = None,
        n_best: int = 1,
        prefix: str = "",
        focus: Region | None = None,
    ) -> Any:
        """A Description of each picture (a file, bytes or pixels); of one, if one was given.

        `prefix` are words to begin with; `focus` is the part of the picture to look at, x, y,
        width and height as fractions of it: attention outside is lowered.
        """
        many = isinstance(pictures, Sequence) and not isinstance(pictures, str | bytes)
        sources: Sequence[Any] = pictures if many else [pictures]  # type: ignore[assignment]
        options = {"beam": beam, "n_best": n_best, "prefix": prefix}
        found = [each for some in self._several(sources, focus, **options) for each in some]
        return found if many else found[0]

    def _several(
        self, sources: Sequence[Any], focus: Region | None = None, **options: Any
    ) -> Iterator[list[Description]]:
        """The descriptions of pictures, some at a time."""

        def described(some: Sequence[Any]) -> list[Description]:
            read = [self.read(source) for source in some]
            steps = self.search(read, focus=[focus] * len(read), **options)
            return self.descriptions(search.finish(steps))

        return side_by_side(described, self._parts(sources), workers(self.stepper))

    def _parts(self, sources: Sequence[Any]) -> list[Sequence[Any]]:
        """Such that no more than SEARCH_BATCH are searched at once."""
        return list(_batches(sources, max(1, SEARCH_BATCH // workers(self.stepper))))

    def stream(
        self,
        picture: Picture,
        *,
        beam: int | None = None,
        n_best: int = 1,
        prefix: str = "",
        focus: Region | None = None,
    ) -> Iterator[Partial | Description]:
        """What `describe` gives of one picture, after a Partial for each step of the search."""
        read = [self.read(picture)]
        steps = self.search(
            read, beam=beam, n_best=n_best, prefix=prefix, focus=[focus], keep_tree=True
        )
        for snapshot in steps:
            yield self.partial(snapshot)
        yield self.descriptions(snapshot.hypotheses)[0]

    # ------------------------------------------------------------- the same in parts, for servers

    def read(self, picture: Picture) -> ReadPicture:
        """What a search needs of a picture: a few hundred kilobytes, however large it is."""
        pixels = _pixels(picture)
        height, width, _ = pixels.shape
        left, top, right, bottom = self.visible_box(pixels)
        box = (left / width, top / height, right / width, bottom / height)
        return ReadPicture(preprocess(pixels, self.encoder.spec), width, height, box)

    def search(
        self,
        pictures: Sequence[ReadPicture],
        *,
        beam: int | None = None,
        n_best: int = 1,
        prefix: str = "",
        focus: Sequence[Region | None] = (),  # none, or one for each picture
        keep_tree: bool = False,
    ) -> Iterator[Snapshot]:
        """Describe pictures together, step by step."""
        words = self.prefix_tokens(prefix)
        grid = self.encoder.grid()
        # before the costly part: a bad box is found at once
        biases = [
            None if box is None else focus_bias(box, picture.visible_box, grid)
            for picture, box in zip(pictures, focus or [None] * len(pictures), strict=True)
        ]
        inputs: Any = self.encoder.encode(np.stack([picture.image for picture in pictures]))
        if any(bias is not None for bias in biases):
            level = np.zeros(grid[0] * grid[1], np.float32)
            inputs = Steered(inputs, np.stack([level if b is None else b for b in biases]))
        return self._search(inputs, len(pictures), beam, n_best, words, keep_tree)

    def descriptions(self, found: Sequence[list[Hypothesis]]) -> list[Description]:
        """The hypotheses of each picture as its description."""
        layout = Layout.grid(*self.encoder.grid())
        return [self._describe(hypotheses, layout) for hypotheses in found]

    def partial(self, snapshot: Snapshot, example: int = 0) -> Partial:
        """How the search for one picture stood after a step; needs the tree to be kept."""
        layout = Layout.grid(*self.encoder.grid())
        best = self._description(snapshot.hypotheses[example][0], layout)
        return partial_result(snapshot, example, best, self.vocab.tokens)

    def prefix_tokens(self, prefix: str) -> list[int]:
        """The words to begin with, as tokens; a word that the model does not know is an error."""
        words = self.vocab.encode(normalise_caption(prefix))
        if UNKNOWN in words:
            unknown = normalise_caption(prefix).split()[words.index(UNKNOWN)]
            raise UserError(f"the prefix has {unknown!r}, which is not in the model's vocabulary")
        return words

    def describe_vectors(
        self,
        read: Callable[[Sequence[str]], NDArray[Any]],  # ids → (B, M, D)
        ids: Sequence[str],
        layout: Layout,
        beam: int | None = None,
    ) -> list[Description]:
        """Descriptions of pictures whose vectors can be read by id."""
        found: list[Description] = []
        for some in _batches(ids):
            steps = self._search(read(some), len(some), beam, 1, [])
            found += [self._describe(best, layout) for best in search.finish(steps)]
        return found

    def describe_examples(
        self, examples: Sequence[Example], beam: int | None = None
    ) -> list[Description]:
        """Descriptions of a manifest's pictures."""
        files = [example.media for example in examples if example.media is not None]
        several = counted(self._several(files, beam=beam), len(self._parts(files)), "describing")
        return [found for some in several for found in some]

    def visible_box(self, picture: NDArray[np.uint8]) -> tuple[float, float, float, float]:
        """The part of a picture (H, W, 3) that the encoder sees, for figures."""
        height, width, _ = picture.shape
        return visible_box(height, width, self.encoder.spec)

    def _search(
        self,
        inputs: NDArray[Any] | Steered,  # of vectors (B, M, D)
        count: int,  # B
        beam: int | None,
        n_best: int,
        words: list[int],
        keep_tree: bool = False,
    ) -> Iterator[Snapshot]:
        settings = self.recipe.search
        options = search.BeamOptions(
            max_length=settings.max_length + len(words),
            size=max(beam or settings.beam, n_best),
            min_length=settings.min_length,
            length_penalty=settings.length_penalty,
            n_best=n_best,
            keep_tree=keep_tree,
        )
        stepper = Prefixed(self.stepper, [words] * count) if words else self.stepper
        return search.beam(stepper, inputs, options)

    def _describe(self, hypotheses: list[Hypothesis], layout: Layout) -> Description:
        best, *others = (self._description(h, layout) for h in hypotheses)
        return replace(best, alternatives=tuple(others))

    def _description(self, hypothesis: Hypothesis, layout: Layout) -> Description:
        kept = len(hypothesis.tokens) - hypothesis.finished  # the end token is not a word
        words = hypothesis.tokens[:kept]
        looked = hypothesis.attention
        return Description(
            text=self.vocab.decode(words),
            tokens=tuple(self.vocab.tokens[token] for token in words),
            score=hypothesis.score,
            log_probs=tuple(float(value) for value in hypothesis.log_probs[:kept]),
            attention=None if looked is None else looked[:kept],
            layout=None if looked is None else layout,
        )


def _pixels(picture: Picture) -> NDArray[np.uint8]:
    return picture if isinstance(picture, np.ndarray) else read_image(picture)


def _batches(items: Sequence[Any], size: int = SEARCH_BATCH) -> Iterator[Sequence[Any]]:
    for at in range(0, len(items), size):
        yield items[at : at + size]
