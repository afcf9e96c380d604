"""Captioner: a trained captioning model, pictures in and descriptions out; nothing here is torch's.

What computes is given to it: an encoder (pixels to annotation vectors) and a Stepper.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from sightline import search
from sightline.data.manifest import Example, normalise_caption
from sightline.data.progress import counted
from sightline.errors import UserError
from sightline.media.image import ImageSource, ImageSpec, preprocess, read_image, visible_box
from sightline.steppers import Prefixed, Stepper
from sightline.types import Description, Hypothesis, Layout
from sightline.vocab import UNKNOWN, Vocabulary

if TYPE_CHECKING:
    from sightline.tasks.caption import CaptionRecipe

Picture = ImageSource | NDArray[np.uint8]  # a file, its bytes, or pixels (H, W, 3)

SEARCH_BATCH = 64  # pictures searched at a time


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
    ) -> Any:
        """A Description of each picture (a file, bytes or pixels); of one, if one was given."""
        many = isinstance(pictures, Sequence) and not isinstance(pictures, str | bytes)
        sources: Sequence[Any] = pictures if many else [pictures]  # type: ignore[assignment]
        layout = Layout.grid(*self.encoder.grid())
        found: list[Description] = []
        for some in _batches(sources):
            images = [preprocess(_pixels(source), self.encoder.spec) for source in some]
            vectors = self.encoder.encode(np.stack(images))
            found += self._search(vectors, layout, beam, n_best, prefix)
        return found if many else found[0]

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
            found += self._search(read(some), layout, beam, 1, "")
        return found

    def describe_examples(
        self, examples: Sequence[Example], beam: int | None = None
    ) -> list[Description]:
        """Descriptions of a manifest's pictures."""
        files = [example.media for example in examples if example.media is not None]
        batches = counted(_batches(files), -(-len(files) // SEARCH_BATCH), "describing")
        return [found for some in batches for found in self.describe(some, beam=beam)]

    def visible_box(self, picture: NDArray[np.uint8]) -> tuple[float, float, float, float]:
        """The part of a picture (H, W, 3) that the encoder sees, for figures."""
        height, width, _ = picture.shape
        return visible_box(height, width, self.encoder.spec)

    def _search(
        self,
        vectors: NDArray[Any],  # (B, M, D)
        layout: Layout,
        beam: int | None,
        n_best: int,
        prefix: str,
    ) -> list[Description]:
        settings = self.recipe.search
        words = self.vocab.encode(normalise_caption(prefix))
        if UNKNOWN in words:
            unknown = normalise_caption(prefix).split()[words.index(UNKNOWN)]
            raise UserError(f"the prefix has {unknown!r}, which is not in the model's vocabulary")
        size = beam or settings.beam
        options = search.BeamOptions(
            max_length=settings.max_length + len(words),
            size=max(size, n_best),
            min_length=settings.min_length,
            length_penalty=settings.length_penalty,
            n_best=n_best,
        )
        stepper = self.stepper
        if words:
            stepper = Prefixed(stepper, [words] * len(vectors))
        found = search.finish(search.beam(stepper, vectors, options))
        return [self._describe(hypotheses, layout) for hypotheses in found]

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


def _batches(items: Sequence[Any]) -> Iterator[Sequence[Any]]:
    for at in range(0, len(items), SEARCH_BATCH):
        yield items[at : at + SEARCH_BATCH]
