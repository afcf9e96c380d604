"""Any picture file to an RGB array, (H, W, 3) bytes, or an error that says why it cannot be."""

from __future__ import annotations

import json
import logging
import threading
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib.resources import files
from importlib.util import find_spec
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray
from PIL import Image, UnidentifiedImageError

from sightline.errors import PictureError, PictureKindError, PictureSizeError, install
from sightline.media.files import Source, name_of, opened
from sightline.media.structure import bytes_each, check_size, check_structure, webp_size

Pixels = NDArray[np.uint8] | Image.Image  # (H, W, 3), or greyscale (H, W)

# Of four bytes each, as Pillow holds them; fewer where a decoder needs more for a pixel.
# The largest cameras in use make 102 megapixels.
MAX_PIXELS = 120_000_000
_LARGE = 4_000_000  # pixels; a network's input is made from a reduced copy of larger pictures
_BAND = 1_000_000  # pixels converted at a time, so that only one full-size copy is in memory

# Pillow's logger would otherwise print on stderr through logging's last resort.
logging.getLogger("PIL").addHandler(logging.NullHandler())

# ---------------------------------------------------------------- what a file is, by its content

# First bytes (Latin-1) → the one Pillow decoder that may read the file, and kinds that people try,
# with what to do about them. A name's ending is never believed.
_SIGNATURES = json.loads(files("sightline.media").joinpath("signatures.json").read_text("utf-8"))
_READABLE = "JPEG, PNG, WebP, GIF, BMP, TIFF, PPM or AVIF"


def _decoder_for(head: bytes, name: str) -> str:
    """The Pillow format that the first bytes call for; a PictureError for anything else."""
    if not head:
        raise PictureError(f"{name}: the file is empty")
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
        if _heif_decoder():
            return "HEIF"
        raise _unknown(name, f"it is HEIC; {install('heic')}, or convert it to JPEG or PNG")
    raise _unknown(name, "it is an MP4 or MOV video, which models of clips read")


def _heif_decoder() -> bool:
    """Pillow's plugin for HEIC is registered, if it is installed: the extra `heic`."""
    if find_spec("pillow_heif") is None:
        return False
    import pillow_heif

    pillow_heif.register_heif_opener(thumbnails=False)
    return True


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
    source: Source, *, name: str | None = None, max_pixels: int = MAX_PIXELS
) -> NDArray[np.uint8]:
    """A picture as (H, W, 3) RGB bytes, upright, on white; a PictureError says why not.

    The EXIF orientation is applied; greyscale, palette, CMYK and 16-bit pictures become RGB;
    transparency is laid on white; of an animation the first frame is taken. The size is checked
    against `max_pixels` before any pixel is decoded, and so are the numbers of scans,
    chunks and tags. `name` is what errors call the source.
    """
    return read_reduced(source, name or name_of(source, "picture"), max_pixels)[0]


def read_reduced(
    source: Source, name: str, max_pixels: int, least: int = 0
) -> tuple[NDArray[np.uint8], tuple[int, int]]:
    """The pixels, and the upright picture's full (height, width).

    With `least`, a large picture is reduced by a whole factor; its short side keeps that length.
    """
    with opened(source, name, "picture", PictureError) as file:
        decoder = _decoder_for(file.read(1024), name)
        check_structure(file, decoder, name)
        with _quiet_pillow():
            return _decode(file, decoder, name, max_pixels, least)


def _decode(
    file: BinaryIO, decoder: str, name: str, max_pixels: int, least: int
) -> tuple[NDArray[np.uint8], tuple[int, int]]:
    # For damaged files Pillow's decoders raise exceptions of every kind (struct.error, IndexError,
    # SyntaxError, zlib.error, …), so all are caught here, where the file is the cause.
    width = height = 0
    try:
        if decoder == "WEBP":
            check_size(webp_size(file), bytes_each(decoder), name, max_pixels)
        with Image.open(file, formats=[decoder]) as image:
            width, height = image.size
            check_size(image.size, bytes_each(decoder, image), name, max_pixels)
            reduced = least > 0 and width * height > _LARGE
            if reduced:
                image.draft(image.mode, (least, least))  # a JPEG's decoder can reduce as it decodes
            image.load()
            turned = _orientation(image)
            factor = max(1, min(image.size) // least) if reduced else 1
            pixels = _to_rgb(image, name, factor)
        if turned > 4:
            width, height = height, width
        return np.ascontiguousarray(_UPRIGHT[turned](pixels)), (height, width)
    except PictureError:
        raise
    except Image.DecompressionBombError:
        raise PictureSizeError(
            f"{name}: too large: more than twice Pillow's limit of pixels; scale it down first"
        ) from None
    except UnidentifiedImageError:
        raise PictureError(
            f"{name}: damaged: begins like {decoder} but its header is bad"
        ) from None
    except MemoryError:
        raise PictureSizeError(
            f"{name}: too large: not enough memory to decode it; scale it down first"
        ) from None
    except Exception as error:
        reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
        # C decoders call it damage, too, where they get no memory
        also = ", or too large for the memory there is" if width * height > _LARGE else ""
        raise PictureError(f"{name}: damaged or cut short ({decoder}): {reason}{also}") from None


# EXIF orientation → how the stored pixels are turned
_UPRIGHT: dict[int, Callable[[NDArray[np.uint8]], NDArray[np.uint8]]] = {
    1: lambda pixels: pixels,
    2: lambda pixels: pixels[:, ::-1],
    3: lambda pixels: pixels[::-1, ::-1],
    4: lambda pixels: pixels[::-1],
    5: lambda pixels: pixels.swapaxes(0, 1),
    6: lambda pixels: pixels.swapaxes(0, 1)[:, ::-1],
    7: lambda pixels: pixels.swapaxes(0, 1)[::-1, ::-1],
    8: lambda pixels: pixels.swapaxes(0, 1)[::-1],
}


def _orientation(image: Image.Image) -> int:
    with suppress(Exception):  # unreadable EXIF is common, and no reason to refuse it
        given = image.getexif().get(0x0112)
        if given in _UPRIGHT:
            return int(given)
    return 1


def _to_rgb(image: Image.Image, name: str, factor: int) -> NDArray[np.uint8]:
    """Convert band by band, and reduce by a whole factor."""
    width, height = image.size
    is_deep = image.mode in ("I", "F") or image.mode.startswith("I;16")
    rows = -(-_BAND // (width * factor)) * factor
    bands = [(0, top, width, min(top + rows, height)) for top in range(0, height, rows)]
    limits = _deep_range(image, bands, name) if is_deep else None
    if len(bands) == 1 and factor == 1:
        return np.array(_band_to_rgb(image, limits))  # a copy that outlives the file
    result = np.empty((-(-height // factor), -(-width // factor), 3), np.uint8)
    for box in bands:
        band = _band_to_rgb(image.crop(box), limits)
        if factor > 1:
            band = band.reduce(factor)
        top = box[1] // factor
        result[top : top + band.height] = np.asarray(band)
    return result


def _band_to_rgb(image: Image.Image, limits: tuple[float, float] | None) -> Image.Image:
    if limits is not None:
        low, high = limits
        numbers = np.asarray(image).astype(np.float64)
        scaled = (numbers - low) * (255.0 / max(high - low, 1e-12))
        image = Image.fromarray(np.rint(scaled).astype(np.uint8))
    if image.has_transparency_data:
        image = image.convert("RGBA")
        paper = Image.new("RGBA", image.size, (255, 255, 255, 255))
        image = Image.alpha_composite(paper, image)
    return image if image.mode == "RGB" else image.convert("RGB")


def _deep_range(
    image: Image.Image, bands: Sequence[tuple[int, int, int, int]], name: str
) -> tuple[float, float]:
    """16-bit by its full range, [0, 1] floats by 255; any other range is stretched to fit."""
    low, high = np.inf, -np.inf
    for box in bands:
        values = np.asarray(image.crop(box))
        if not np.isfinite(values).all():
            raise PictureError(f"{name}: it has pixels that are not numbers (NaN or infinity)")
        low, high = min(low, float(values.min())), max(high, float(values.max()))
    is_float = image.mode == "F"
    if is_float and low >= 0 and high <= 1:
        return 0.0, 1.0
    if not is_float and low >= 0 and high <= 65535:
        return 0.0, 65535.0
    return low, high


def pixels_of(source: Pixels) -> NDArray[np.uint8]:
    """(H, W, 3) of a Pillow image, upright and on white, or of an array; grey is all three."""
    if isinstance(source, Image.Image):
        try:
            return np.ascontiguousarray(_UPRIGHT[_orientation(source)](_to_rgb(source, "image", 1)))
        except OSError as error:  # opened from a file that is damaged
            raise PictureError(f"the image cannot be decoded: {error}") from None
    if source.ndim == 3 and source.shape[2] == 1:
        source = source[..., 0]
    return np.stack([source] * 3, axis=-1) if source.ndim == 2 else source


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
