"""A picture file to an RGB array, and that array to a network's input; for training and serving.

`read_image` turns any picture file into (H, W, 3) bytes or says why it cannot; `preprocess` turns
those into the float array that an encoder was trained on, as its `ImageSpec` states; `read_picture`
does both and gives the Inputs of one example.
"""

from __future__ import annotations

import io
import json
import logging
import os
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, fields
from importlib.resources import files
from typing import Any, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from sightline.errors import DataError, PictureKindError, PictureSizeError
from sightline.types import Inputs, Layout, Stream

ImageSource = str | os.PathLike[str] | bytes | BinaryIO

# 120 megapixels take 360 MB as RGB; the largest cameras in use make 102.
MAX_PIXELS = 120_000_000

# Pillow's logger would otherwise print on stderr through logging's last resort.
logging.getLogger("PIL").addHandler(logging.NullHandler())

# ---------------------------------------------------------------- what a file is, by its content

# First bytes (Latin-1) → the one Pillow decoder that may read the file, and kinds that people try,
# with what to do about them. A name's ending is never believed.
_SIGNATURES = json.loads(files("sightline.media").joinpath("signatures.json").read_text("utf-8"))
_READABLE = "JPEG, PNG, WebP, GIF, BMP, TIFF, PPM or AVIF"


def _decoder_for(head: bytes, name: str) -> str:
    """The Pillow format that the first bytes call for; a DataError for anything else."""
    if not head:
        raise DataError(f"{name}: the file is empty")
    if head[:4] == b"RIFF" and head[8:12] == b"WEBP":
        return "WEBP"
    if head[4:8] == b"ftyp":  # the ISO container: AVIF, HEIC or a film
        return _iso_decoder(head, name)
    start = head[:16].decode("latin-1")
    for magic, decoder in _SIGNATURES["decoders"].items():
        if start.startswith(magic):
            return str(decoder)
    for magic, reason in _SIGNATURES["refused"].items():
        if start.startswith(magic):
            raise _unknown(name, reason)
    raise _unknown(name, _text_kind(head))


def _unknown(name: str, reason: str) -> PictureKindError:
    return PictureKindError(f"{name}: not a picture that Sightline reads: {reason}")


def _iso_decoder(head: bytes, name: str) -> str:
    brands = head[8:64]
    if b"avif" in brands or b"avis" in brands:
        return "AVIF"
    if any(brand in brands for brand in (b"heic", b"heix", b"mif1", b"hevc")):
        raise _unknown(name, "it is HEIC; convert it to JPEG or PNG")
    raise _unknown(name, "it is an MP4 or MOV video")


def _text_kind(head: bytes) -> str:
    """What an unknown file looks like, in words."""
    start = head.lstrip(b"\xef\xbb\xbf \t\r\n").lower()
    if b"<svg" in start:
        return "it is an SVG drawing; export it as PNG"
    if start.startswith((b"<!doctype html", b"<html")):
        return "it is an HTML page (a download that went wrong?)"
    if start.startswith(b"<?xml"):
        return "it is an XML file"
    if b"\x00" not in head and all(byte >= 32 or byte in b"\t\r\n\f\x1b" for byte in head):
        return "it is a text file"
    return f"its content is none of {_READABLE}"


# ---------------------------------------------------------------- file → array


def read_image(
    source: ImageSource, *, name: str | None = None, max_pixels: int = MAX_PIXELS
) -> NDArray[np.uint8]:
    """A picture as (H, W, 3) RGB bytes, upright, on white; a DataError names the file and why not.

    The EXIF orientation is applied; greyscale, palette, CMYK and 16-bit pictures become RGB;
    transparency is laid on white; of an animation the first frame is taken. The size is checked
    against `max_pixels` before any pixel is decoded. `name` is what errors call the source.
    """
    name = name or _name_of(source)
    with _opened(source, name) as file:
        decoder = _decoder_for(file.read(1024), name)
        file.seek(0)
        with _quiet_pillow():
            return _decode(file, decoder, name, max_pixels)


def _name_of(source: ImageSource) -> str:
    if isinstance(source, (str, os.PathLike)):
        return os.fspath(source)
    if isinstance(source, bytes):
        return "picture (bytes)"
    return str(getattr(source, "name", "picture (stream)"))


@contextmanager
def _opened(source: ImageSource, name: str) -> Iterator[BinaryIO]:
    if isinstance(source, bytes):
        yield io.BytesIO(source)
        return
    try:
        if not isinstance(source, (str, os.PathLike)):
            yield io.BytesIO(source.read())  # pipes and uploads cannot all seek
            return
        with open(source, "rb") as file:
            yield file
    except FileNotFoundError:
        raise DataError(f"{name}: no such file") from None
    except IsADirectoryError:
        raise DataError(f"{name}: it is a folder, not a picture") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise DataError(f"{name}: cannot be read: {reason}") from None


def _decode(file: BinaryIO, decoder: str, name: str, max_pixels: int) -> NDArray[np.uint8]:
    # For damaged files Pillow's decoders raise exceptions of every kind (struct.error, IndexError,
    # SyntaxError, zlib.error, …), so all are caught here, where the file is the cause.
    try:
        with Image.open(file, formats=[decoder]) as image:
            _check_pixels(image.size, name, max_pixels)
            image.load()
            with suppress(Exception):  # unreadable EXIF is common, and no reason to refuse it
                ImageOps.exif_transpose(image, in_place=True)
            return _to_rgb(image, name)
    except DataError:
        raise
    except Image.DecompressionBombError:
        raise PictureSizeError(
            f"{name}: too large: more than twice Pillow's limit of pixels; scale it down first"
        ) from None
    except UnidentifiedImageError:
        raise DataError(f"{name}: damaged: begins like {decoder} but its header is bad") from None
    except MemoryError:
        raise DataError(f"{name}: not enough memory to decode it") from None
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        raise DataError(f"{name}: damaged or cut short ({decoder}): {reason}") from None


def _check_pixels(size: tuple[int, int], name: str, max_pixels: int) -> None:
    width, height = size
    if width < 1 or height < 1:
        raise DataError(f"{name}: the picture is empty ({width} x {height} pixels)")
    if width * height > max_pixels:
        raise PictureSizeError(
            f"{name}: too large: {width} x {height} pixels, and the limit is {max_pixels:,}; "
            "scale it down first"
        )


def _to_rgb(image: Image.Image, name: str) -> NDArray[np.uint8]:
    if image.mode in ("I", "F") or image.mode.startswith("I;16"):
        image = Image.fromarray(_deep_grey_to_bytes(np.asarray(image), name))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        paper = Image.new("RGBA", image.size, (255, 255, 255, 255))
        image = Image.alpha_composite(paper, image)
    if image.mode != "RGB":
        image = image.convert("RGB")
    return np.array(image)  # (H, W, 3), a copy that outlives the file


def _deep_grey_to_bytes(values: NDArray[Any], name: str) -> NDArray[np.uint8]:
    """16-bit by its full range, [0, 1] floats by 255; any other range is stretched to fit."""
    numbers = values.astype(np.float64)
    if not np.isfinite(numbers).all():
        raise DataError(f"{name}: it has pixels that are not numbers (NaN or infinity)")
    low, high = float(numbers.min()), float(numbers.max())
    if values.dtype.kind == "f" and low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    elif values.dtype.kind != "f" and low >= 0 and high <= 65535:
        low, high = 0.0, 65535.0
    scaled = (numbers - low) * (255.0 / max(high - low, 1e-12))
    return np.rint(scaled).astype(np.uint8)


_quiet_lock = threading.Lock()
_quiet_depth = 0
_quiet_saved: Any = None


@contextmanager
def _quiet_pillow() -> Iterator[None]:
    """No warning from Pillow reaches the user: what matters is raised, the rest is noise.

    `warnings.catch_warnings` alone is not safe when threads overlap (one restores the other's
    filters), so the first reader in sets it and the last one out restores it.
    """
    global _quiet_depth, _quiet_saved
    with _quiet_lock:
        if _quiet_depth == 0:
            _quiet_saved = warnings.catch_warnings()
            _quiet_saved.__enter__()
            warnings.filterwarnings("ignore", module=r"PIL\b|sightline\.media\b")
        _quiet_depth += 1
    try:
        yield
    finally:
        with _quiet_lock:
            _quiet_depth -= 1
            if _quiet_depth == 0:
                _quiet_saved.__exit__(None, None, None)


# ---------------------------------------------------------------- array → network input

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


def visible_box(height: int, width: int, spec: ImageSpec) -> tuple[float, float, float, float]:
    """The (left, top, right, bottom) of the picture, in its pixels, that the network sees."""
    if spec.mode == "squeeze":
        return 0.0, 0.0, float(width), float(height)
    side = min(height, width) * _CROP
    left, top = (width - side) / 2, (height - side) / 2
    return left, top, left + side, top + side


def preprocess(image: NDArray[np.uint8], spec: ImageSpec) -> NDArray[np.float32]:
    """An RGB picture (H, W, 3) as the network's input (3, S, S)."""
    if image.ndim != 3 or image.shape[2] != 3 or image.dtype != np.uint8:
        raise DataError(f"a picture must be (H, W, 3) of uint8, not {image.shape} {image.dtype}")
    height, width = image.shape[:2]
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
    source: ImageSource | NDArray[np.uint8],
    spec: ImageSpec,
    grid: tuple[int, int],
    *,
    name: str | None = None,
    max_pixels: int = MAX_PIXELS,
) -> Inputs:
    """A file, bytes or pixels (H, W, 3) as the Inputs of one example: stream "pictures".

    The layout is the encoder's grid (rows, columns) over the part of the picture that it sees.
    """
    if isinstance(source, np.ndarray):
        image = source
    else:
        image = read_image(source, name=name, max_pixels=max_pixels)
    pixels = preprocess(image, spec)  # (3, S, S)
    height, width = image.shape[:2]
    left, top, right, bottom = visible_box(height, width, spec)
    box = (left / width, top / height, right / width, bottom / height)
    layout = Layout.grid(*grid, box=box, size=(width, height))
    return Inputs(1, {"pictures": Stream(pixels[None])}, (layout,))
