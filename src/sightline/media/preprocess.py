"""An RGB array to the float array that an encoder was trained on; for training and serving.

`preprocess` does it as an `ImageSpec` states; `read_picture` reads the file as well and gives the
Inputs of one example.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sightline.errors import DataError
from sightline.media.files import Source, name_of
from sightline.media.image import MAX_PIXELS, Pixels, pixels_of, read_reduced
from sightline.types import Inputs, Layout, Stream

_RESAMPLING = {"bilinear": Image.Resampling.BILINEAR, "bicubic": Image.Resampling.BICUBIC}
_CROP = 224 / 256  # Xu et al. §5.4: short side to 256, centre crop of 224


@dataclass(frozen=True)
class ImageSpec:
    """How a picture becomes a network's input: (x · scale − mean) / std over a square of it.

    mode "crop":    the short side to 256/224 · size, then the centre square (the paper's way)
    mode "squeeze": the whole picture to the square, whatever its proportions
    """

    size: int
    mode: Literal["crop", "squeeze"] = "crop"
    scale: float = 1.0
    mean: tuple[float, float, float] = (0.0, 0.0, 0.0)
    std: tuple[float, float, float] = (1.0, 1.0, 1.0)
    resample: Literal["bilinear", "bicubic"] = "bilinear"  # both with Pillow's anti-aliasing
    mirror: bool = False  # flipped left to right, for training

    def __post_init__(self) -> None:
        if not (isinstance(self.size, int) and self.size > 0):
            raise DataError(f"image size must be a whole number above 0, not {self.size!r}")
        if self.mode not in ("crop", "squeeze"):
            raise DataError(f'image mode must be "crop" or "squeeze", not {self.mode!r}')
        if self.resample not in _RESAMPLING:
            raise DataError(f"image resample must be one of {list(_RESAMPLING)}: {self.resample!r}")
        numbers = [self.scale, *_three(self.mean, "mean"), *_three(self.std, "std")]
        if not all(isinstance(n, int | float) and math.isfinite(n) for n in numbers):
            raise DataError(f"image scale, mean and std must be numbers, not {str(numbers)[:99]!r}")
        if 0 in self.std:
            raise DataError("image std must not be 0")

    def to_json(self) -> dict[str, Any]:
        values = asdict(self)
        if not self.mirror:
            del values["mirror"]
        return {key: list(v) if isinstance(v, tuple) else v for key, v in values.items()}

    @staticmethod
    def from_json(values: dict[str, Any]) -> ImageSpec:
        known = {field.name for field in fields(ImageSpec)}
        if unknown := sorted(set(values) - known):
            raise DataError(f"image spec: unknown keys {unknown}; known are {sorted(known)}")
        plain: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in values.items()
        }
        return ImageSpec(**plain)


def _three(values: Any, name: str) -> Sequence[Any]:
    """One for each colour."""
    if not isinstance(values, tuple) or len(values) != 3:
        raise DataError(f"image {name} must have three numbers, not {str(values)[:99]!r}")
    return values


def visible_box(height: float, width: float, spec: ImageSpec) -> tuple[float, float, float, float]:
    """The (left, top, right, bottom) of the picture, in its pixels, that the network sees."""
    if spec.mode == "squeeze":
        return 0.0, 0.0, float(width), float(height)
    side = min(height, width) * _CROP
    left, top = (width - side) / 2, (height - side) / 2
    return left, top, left + side, top + side


def preprocess(
    image: NDArray[np.uint8], spec: ImageSpec, extent: tuple[float, float] | None = None
) -> NDArray[np.float32]:
    """An RGB picture (H, W, 3) as the network's input (3, S, S).

    A reduced picture's `extent` is its height and width without rounding up.
    """
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
        raise DataError(f"a picture must be (H, W, 3) of uint8, not {image.shape} {image.dtype}")
    height, width = extent or image.shape[:2]
    # Resizing straight from the box does not build the full resized picture, which for a strip of
    # 1 x 100,000 pixels would be gigabytes.
    square = Image.fromarray(image).resize(
        (spec.size, spec.size), _RESAMPLING[spec.resample], box=visible_box(height, width, spec)
    )
    factor = np.asarray(spec.scale / np.asarray(spec.std), np.float32)[:, None, None]
    shift = np.asarray(np.asarray(spec.mean) / np.asarray(spec.std), np.float32)[:, None, None]
    planes = np.array([np.asarray(band) for band in square.split()])  # (3, S, S)
    pixels = planes * factor
    pixels -= shift
    return np.ascontiguousarray(pixels[..., ::-1]) if spec.mirror else pixels


def read_picture(
    source: Source | Pixels,
    spec: ImageSpec,
    grid: tuple[int, int],
    *,
    name: str | None = None,
    max_pixels: int = MAX_PIXELS,
) -> Inputs:
    """A file, bytes, pixels or a Pillow image as the Inputs of one example: stream "pictures".

    The layout is the encoder's grid (rows, columns) over the part of the picture that it sees.
    """
    if isinstance(source, np.ndarray | Image.Image):
        image, extent = pixels_of(source), None
        height, width = image.shape[:2]
    else:
        # four times the input's size: resizing then gives what it gives from the full picture
        least = max(256, 4 * spec.size)
        called = name or name_of(source, "picture")
        image, (height, width) = read_reduced(source, called, max_pixels, least)
        factor = -(-height // image.shape[0])
        extent = height / factor, width / factor
    pixels = preprocess(image, spec, extent)  # (3, S, S)
    left, top, right, bottom = visible_box(height, width, spec)
    box = (left / width, top / height, right / width, bottom / height)
    layout = Layout.grid(*grid, box=box, size=(width, height))
    return Inputs(1, {"pictures": Stream(pixels[None])}, (layout,))
