"""The parts and pixels of a picture file, counted before anything decodes it.

A small file can be made of so many scans, segments, chunks or tags that decoding it takes minutes
or gigabytes. `check_structure` walks the file's outline, which takes microseconds, and refuses it.
"""

from __future__ import annotations

import re
import struct
from typing import BinaryIO

from PIL import Image

from sightline.errors import PictureError, PictureSizeError

MAX_SCANS = 100  # of a JPEG; encoders write 10, optimisers of progressive files up to about 30
MAX_SIDE = 65_535  # JPEG's own limit; of longer strips, resizing takes gigabytes
_BYTES = {
    "WEBP": 17,
    "AVIF": 12,
    "HEIF": 12,
    "TIFF": 5,
}  # for a pixel; measured by tests/serve/test_serve_memory.py
_CHUNK = 1 << 20
_MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")  # in scan data: no stuffed FF, no restart
_STANDALONE = {0x01, *range(0xD0, 0xD9)}  # JPEG markers without a length
_TYPE_BYTES = (1, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4)  # of TIFF's types, from 0
_EXIF = b"Exif\0\0"


def check_structure(file: BinaryIO, decoder: str, name: str) -> None:
    """A PictureError for a file with more parts than a picture has; rewinds the file."""
    size = file.seek(0, 2)
    file.seek(0)
    most = 1000 + size // 1000  # chunks of 8 KB are usual
    try:
        match decoder:
            case "JPEG":
                _check_jpeg(file, most, size)
            case "PNG":
                _check_png(file, most)
            case "GIF":
                _check_gif(file, 10 * most)  # blocks have 255 bytes
            case "WEBP":
                _check_webp(file, most)
            case "TIFF":
                _check_tags(file, 0, size)
    except _TooManyError as error:
        raise PictureError(
            f"{name}: refused: {error}, which no camera or program writes; save it again"
        ) from None
    finally:
        file.seek(0)


class _TooManyError(Exception):
    pass


# ---------------------------------------------------------------- sizes


def bytes_each(decoder: str, image: Image.Image | None = None) -> float:
    """What the decoder holds of each pixel."""
    if image is None or decoder != "JPEG" or "progressive" not in image.info:
        return _BYTES.get(decoder, 4)
    # every coefficient, of two bytes; colours may have fewer than brightness
    layers = [across * down for _, across, down, _ in getattr(image, "layer", [])]
    return float(2 * sum(layers) / max(1, *layers))


def check_size(size: tuple[int, int], bytes_each: float, name: str, max_pixels: int) -> None:
    """A PictureSizeError above `max_pixels` of four bytes each, or as many bytes."""
    width, height = size
    if width < 1 or height < 1:
        raise PictureError(f"{name}: the picture is empty ({width} x {height} pixels)")
    most = int(max_pixels * 4 / max(4, bytes_each))
    if width * height > most or max(width, height) > MAX_SIDE:
        raise PictureSizeError(
            f"{name}: too large: {width} x {height} pixels, and the limit is {most:,} "
            f"and {MAX_SIDE:,} a side for a file of its kind; scale it down first"
        )


# ---------------------------------------------------------------- JPEG


def _check_jpeg(file: BinaryIO, most: int, size: int) -> None:
    data = b""
    scans = 0
    while chunk := file.read(_CHUNK):  # FF DA occurs in every scan, and rarely elsewhere
        scans += (data[-1:] + chunk).count(b"\xff\xda")
        data = chunk
    if scans > MAX_SCANS:
        file.seek(0)
        scans = _count_scans(file.read(), most)
        if scans > MAX_SCANS:
            raise _TooManyError(f"the JPEG has more than {MAX_SCANS} scans")
    _check_jpeg_head(file, most, size)


def _count_scans(data: bytes, most: int) -> int:
    """SOS markers up to the end of the picture; not those of thumbnails, nor of what follows."""
    at, scans, segments = 2, 0, 0
    while scans <= MAX_SCANS and (found := _MARKER.search(data, at)):
        kind, at = data[found.end() - 1], found.end()
        segments += 1
        if segments > most:
            raise _TooManyError(f"the JPEG has more than {most:,} segments")
        if kind == 0xD9:
            break
        scans += kind == 0xDA
        if kind not in _STANDALONE:
            at += max(2, int.from_bytes(data[at : at + 2], "big"))
    return scans


def _check_jpeg_head(file: BinaryIO, most: int, size: int) -> None:
    """The segments before the first scan, which Pillow walks in Python; the Exif among them."""
    at, segments = 2, 0
    while at < size:
        file.seek(at)
        head = file.read(10)
        segments += 1
        if segments > most:
            raise _TooManyError(f"the JPEG has more than {most:,} segments")
        if len(head) < 4 or head[0] != 0xFF or head[1] == 0xFF:
            at += 1  # filling
            continue
        if head[1] in _STANDALONE:
            at += 2
            continue
        if head[1] in (0xDA, 0xD9):
            return
        length = int.from_bytes(head[2:4], "big")
        if head[1] == 0xE1 and head[4:] == _EXIF:
            _check_tags(file, at + 10, length - 8)
        at += 2 + max(2, length)


# ---------------------------------------------------------------- PNG, GIF, WebP


def _check_png(file: BinaryIO, most: int) -> None:
    at = 8
    for _ in range(most):
        file.seek(at)
        head = file.read(8)
        if len(head) < 8 or head[4:] == b"IEND":
            return
        length = int.from_bytes(head[:4], "big")
        if head[4:] == b"eXIf":
            _check_tags(file, at + 8, length)
        at += 12 + length
    raise _TooManyError(f"the PNG has more than {most:,} chunks")


def _check_gif(file: BinaryIO, most: int) -> None:
    """The blocks before the first frame."""
    head = file.read(13)
    if len(head) == 13 and head[10] & 128:
        file.seek(3 << (head[10] & 7) + 1, 1)
    for _ in range(most):
        kind = file.read(1)
        if kind in (b"", b",", b";"):
            return
        if kind == b"!":
            file.seek(1, 1)
            for _ in range(most):
                length = file.read(1)
                if length in (b"", b"\0"):
                    break
                file.seek(length[0], 1)
            else:
                break
    raise _TooManyError(f"the GIF has more than {most:,} blocks before its first frame")


def _check_webp(file: BinaryIO, most: int) -> None:
    at = 12
    for _ in range(most):
        file.seek(at)
        head = file.read(8)
        if len(head) < 8:
            return
        length = int.from_bytes(head[4:], "little")
        if head[:4] == b"EXIF":
            start = 6 if file.read(6) == _EXIF else 0
            _check_tags(file, at + 8 + start, length - start)
        at += 8 + length + length % 2
    raise _TooManyError(f"the WebP has more than {most:,} chunks")


def webp_size(file: BinaryIO) -> tuple[int, int]:
    """Width and height by the first chunk; zeros where it has none. Rewinds the file.

    Pillow says them only after its decoder has taken the memory for them.
    """
    file.seek(12)
    head = file.read(18)
    file.seek(0)
    kind, data = head[:4], head[8:]
    if kind == b"VP8X":  # flags and three bytes, then 24 bits each
        return int.from_bytes(data[4:7], "little") + 1, int.from_bytes(data[7:10], "little") + 1
    if kind == b"VP8L":  # a signature, then 14 bits each
        bits = int.from_bytes(data[1:5], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if kind == b"VP8 ":  # a frame's tag and start code, then 14 bits of 16 each
        sides = int.from_bytes(data[6:8], "little"), int.from_bytes(data[8:10], "little")
        return sides[0] & 0x3FFF, sides[1] & 0x3FFF
    return 0, 0


# ---------------------------------------------------------------- TIFF, Exif


def _check_tags(file: BinaryIO, start: int, size: int) -> None:
    """The first directory of TIFF tags: its values may overlap, and Pillow reads every one.

    So a directory of 65,535 tags that each name the whole file would take gigabytes.
    """
    file.seek(start)
    head = file.read(8)
    if len(head) < 8 or head[:2] not in (b"II", b"MM"):
        return
    order = "<" if head[:2] == b"II" else ">"
    (offset,) = struct.unpack(order + "4xI", head)
    file.seek(start + offset)
    count = file.read(2)
    if len(count) < 2:
        return
    entries = file.read(12 * struct.unpack(order + "H", count)[0])
    whole = len(entries) // 12 * 12
    total = 0
    for _, kind, number, _ in struct.iter_unpack(order + "HHII", entries[:whole]):
        total += min(size, number * _TYPE_BYTES[kind]) if kind < len(_TYPE_BYTES) else 0
    if total > 4 * size + 1_000_000:
        raise _TooManyError("its tags (TIFF or Exif) name the same bytes over and over")
