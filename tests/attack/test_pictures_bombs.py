"""Small picture files made to take minutes or gigabytes: refused before they are decoded."""

import io
import os
import struct
import time
import zlib

import numpy as np
import pytest
from benchmarks.load import scan_bomb
from PIL import Image

from sightline.errors import DataError
from sightline.media.image import read_image
from sightline.media.preprocess import ImageSpec, read_picture

SPEC = ImageSpec(260, "squeeze")


def encoded(image, kind, **options):
    file = io.BytesIO()
    image.save(file, kind, **options)
    return file.getvalue()


def grey(width=64, height=64):
    return Image.linear_gradient("L").resize((width, height))


def png_chunk(kind, body=b""):
    return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))


def tags(entries, size, order="<"):
    """A TIFF header and a directory whose every tag names all `size` bytes of the file."""
    head = (b"II*\0" if order == "<" else b"MM\0*") + struct.pack(order + "IH", 8, entries)
    every = [struct.pack(order + "HHII", 1000 + i, 7, size, 0) for i in range(entries)]
    return (head + b"".join(every)).ljust(size, b"\0")


def with_segment(data, marker, body):
    """A JPEG with another segment after its first two bytes."""
    return data[:2] + bytes([0xFF, marker]) + struct.pack(">H", len(body) + 2) + body + data[2:]


def bombs():
    small = encoded(grey(), "JPEG")
    png = encoded(grey(), "PNG")
    gif = encoded(grey(), "GIF")
    webp = encoded(grey(), "WEBP", exif=b"Exif\0\0" + tags(60_000, 1_000_000))
    first = 13 + (3 << (gif[10] & 7) + 1)
    yield "scans", scan_bomb(4000, 5000), "scans"
    yield (
        "scans in Exif's company",
        with_segment(scan_bomb(4000, 5000), 0xE0, b"x" * 60_000),
        "scans",
    )
    yield "segments", small[:2] + b"\xff\xfe\0\x02" * 400_000 + small[2:], "segments"
    yield "chunks", png[:33] + png_chunk(b"teSt") * 200_000 + png[33:], "chunks"
    yield "blocks", gif[:first] + b"!\xfe\x01x\0" * 400_000 + gif[first:], "blocks"
    yield "sub-blocks", gif[:first] + b"!\xfe" + b"\x01x" * 900_000 + b"\0" + gif[first:], "blocks"
    yield "TIFF tags", tags(60_000, 1_000_000), "tags"
    yield "TIFF tags, big-endian", tags(60_000, 1_000_000, ">"), "tags"
    yield "Exif in PNG", png[:33] + png_chunk(b"eXIf", tags(60_000, 1_000_000)) + png[33:], "tags"
    yield "Exif in JPEG", with_segment(small, 0xE1, b"Exif\0\0" + tags(5000, 65_000)), "tags"
    yield "Exif in WebP", webp, "tags"


@pytest.mark.parametrize(("name", "data", "reason"), [pytest.param(*b, id=b[0]) for b in bombs()])
def test_too_many_parts_are_refused_at_once(name, data, reason):
    start = time.process_time()
    with pytest.raises(DataError, match=rf"^b: refused: .*{reason}.*save it again"):
        read_image(data, name="b")
    assert time.process_time() - start < 0.5


def test_scans_of_thumbnails_and_after_the_end_do_not_count():
    """Phones append films to their photos; a scan's marker occurs in those by chance."""
    data = encoded(grey(), "JPEG", progressive=True)
    expected = read_image(data)
    for innocent in (data + b"\xff\xda" * 5000, with_segment(data, 0xED, b"\xff\xda" * 5000)):
        np.testing.assert_array_equal(read_image(innocent), expected)


@pytest.mark.parametrize("size", [(1, 50_000_000), (49_000_000, 1), (65_536, 10)])
def test_sides_are_limited_as_well_as_pixels(size):
    header = struct.pack(">IIBBBBB", *size, 1, 0, 0, 0, 0)
    data = b"\x89PNG\r\n\x1a\n" + png_chunk(b"IHDR", header)
    data += png_chunk(b"IDAT", zlib.compress(b"\0" * 100)) + png_chunk(b"IEND")
    with pytest.raises(DataError, match=r"too large: .* 65,535 a side"):
        read_picture(data, SPEC, (9, 9))


def test_a_pipe_is_refused_and_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.jpg")
    for path in (tmp_path / "pipe.jpg", "/dev/zero"):
        with pytest.raises(DataError, match=r"is a (FIFO|device), not a file"):
            read_image(path)


# ---------------------------------------------------------------- large pictures are reduced


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "WEBP"])
@pytest.mark.parametrize("mode", ["squeeze", "crop"])
def test_a_large_picture_is_reduced_and_looks_the_same(kind, mode):
    rng = np.random.default_rng(0)
    small = Image.fromarray(rng.integers(0, 256, (40, 50, 3), dtype=np.uint8))
    data = encoded(small.resize((3000, 2400), Image.Resampling.BICUBIC), kind, quality=90)
    spec = ImageSpec(96, mode)
    whole = read_image(data)
    assert whole.shape == (2400, 3000, 3)
    got = read_picture(data, spec, (3, 3))
    expected = read_picture(whole, spec, (3, 3))
    assert got.layouts == expected.layouts
    difference = got["pictures"].values - expected["pictures"].values
    assert np.abs(difference).mean() < 1.0
    assert np.abs(difference).max() < 12


@pytest.mark.parametrize("mode", ["1", "L", "P", "LA", "RGB", "RGBA", "I;16", "F"])
def test_bands_give_what_the_whole_gives(mode, monkeypatch):
    rng = np.random.default_rng(1)
    image = Image.fromarray(rng.integers(0, 256, (37, 29, 4), dtype=np.uint8))
    if mode == "I;16":
        image = Image.fromarray(rng.integers(0, 65536, (37, 29), dtype=np.uint16))
    elif mode == "F":
        image = Image.fromarray(rng.normal(size=(37, 29)).astype(np.float32))
    elif mode != "RGBA":
        image = image.convert("RGB").convert(mode)
    data = encoded(image, "TIFF" if mode == "F" else "PNG")
    whole = read_image(data)
    monkeypatch.setattr("sightline.media.image._BAND", 100)
    np.testing.assert_array_equal(read_image(data), whole)


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_large_picture_is_turned_after_it_is_reduced(orientation):
    rng = np.random.default_rng(2)
    image = Image.fromarray(rng.integers(0, 256, (4, 6, 3), dtype=np.uint8))
    exif = Image.Exif()
    exif[0x0112] = orientation
    data = encoded(image.resize((2400, 1800)), "PNG", exif=exif)
    got = read_picture(data, ImageSpec(32, "squeeze"), (2, 2))
    expected = read_picture(read_image(data), ImageSpec(32, "squeeze"), (2, 2))
    assert got.layouts == expected.layouts
    # turned, the rounded-up edge is on the other side: less than a quarter of a pixel of the input
    assert np.abs(got["pictures"].values - expected["pictures"].values).mean() < 2.0
