"""Every kind of picture at the most pixels that the service takes: within the documented memory."""

import io
import math
from pathlib import Path

import numpy as np
import pytest
from decoding import Measured, decoders
from live_server import PATIENT, code, post, running
from PIL import Image

from sightline.errors import PictureSizeError
from sightline.media.preprocess import ImageSpec
from sightline.serve.limits import MEGABYTE, Limits
from sightline.tasks.caption.parts import PictureReader

LIMITS = Limits()
OWN = 10 * MEGABYTE  # the decoders' own code, which is not limited
MEASURED = pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="measures as Linux does"
)
READER = PictureReader(ImageSpec(260, "squeeze"), (9, 9))
READING = {"max_pixels": LIMITS.pixels}
FULL = {"progressive": True, "subsampling": 0}
# Pillow's kind and mode, options, and the megapixels that docs/guides/serve.md promises
KINDS = [
    ("JPEG", "RGB", {}, 51), ("JPEG", "RGB", {"subsampling": 0}, 51), ("JPEG", "L", {}, 51),
    ("JPEG", "RGB", {"progressive": True}, 51), ("JPEG", "RGB", FULL, 34),
    ("JPEG", "CMYK", {}, 51), ("JPEG", "CMYK", {"progressive": True}, 25.5),
    ("PNG", "RGB", {}, 51), ("PNG", "RGBA", {}, 51), ("PNG", "LA", {}, 51), ("PNG", "L", {}, 51),
    ("PNG", "P", {}, 51), ("PNG", "1", {}, 51), ("PNG", "I;16", {}, 51), ("GIF", "P", {}, 51),
    ("BMP", "RGB", {}, 51), ("BMP", "L", {}, 51), ("PPM", "RGB", {}, 51), ("PPM", "L", {}, 51),
    ("TIFF", "RGB", {}, 40), ("TIFF", "RGBA", {}, 40), ("TIFF", "CMYK", {}, 40),
    ("TIFF", "I;16", {}, 40), ("TIFF", "F", {}, 40),
    ("WEBP", "RGB", {}, 12), ("WEBP", "RGBA", {}, 12), ("WEBP", "RGB", {"lossless": True}, 12),
    ("AVIF", "RGB", {"speed": 10}, 17), ("AVIF", "RGBA", {"speed": 10}, 17),
    ("AVIF", "RGB", {"speed": 10, "subsampling": "4:4:4"}, 17),
]  # fmt: skip


def picture(kind, mode, options, megapixels):
    """A picture file of 4 : 3 with so many pixels, or as many as an upload may hold."""
    width = int(math.sqrt(megapixels * MEGABYTE * 4 / 3))
    height = 3 * width // 4
    if kind in ("BMP", "PPM"):  # not compressed
        height = min(height, (LIMITS.upload_bytes - 5000) // (width + 4) // len(mode))
    if mode == "F":
        image = Image.fromarray(
            np.linspace(0, 9, height, dtype=np.float32)[:, None].repeat(width, 1)
        )
    elif mode == "I;16":
        image = Image.fromarray(np.arange(height, dtype=np.uint16)[:, None].repeat(width, 1))
    else:
        image = Image.linear_gradient("L").resize((width, height)).convert(mode)
    file = io.BytesIO()
    compressed = {"compression": "tiff_adobe_deflate"} if kind == "TIFF" else {}
    image.save(file, kind, **compressed, **options)
    assert len(file.getvalue()) <= LIMITS.upload_bytes
    return file.getvalue()


@MEASURED
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("most", [5, pytest.param(math.inf, marks=pytest.mark.slow)])
def test_every_kind_of_picture_is_decoded_within_the_documented_memory(most):
    """And no kind takes more for a pixel than is reckoned with."""
    used = {}
    with decoders() as pool:
        for kind, mode, options, megapixels in KINDS:
            data = picture(kind, mode, options, min(megapixels, most))
            (inputs,) = pool.read(Measured(READER), data, READING)
            used[kind, mode, *options] = int(inputs["used"].values[0])
        assert pool.restarts == 0
    print(used)  # for `pytest -s`
    assert max(used.values()) * MEGABYTE <= LIMITS.decode_memory + OWN


@pytest.mark.parametrize(
    ("kind", "options", "megapixels"),
    [
        ("WEBP", {"method": 0}, 12),
        ("WEBP", {"lossless": True, "method": 0}, 12),
        pytest.param("AVIF", {"speed": 10}, 17, marks=pytest.mark.slow),
        pytest.param("JPEG", FULL, 34, marks=pytest.mark.slow),
        ("PNG", {}, 51),
    ],
)
def test_more_is_refused_before_it_is_decoded(kind, options, megapixels):
    mode = "1" if kind == "PNG" else "L" if kind == "WEBP" else "RGB"
    with pytest.raises(PictureSizeError, match=r"too large: .* for a file of its kind"):
        READER.read(picture(kind, mode, options, megapixels * 1.03), **READING)


def test_a_phone_s_photo_of_50_megapixels_is_described(models):
    file = io.BytesIO()
    Image.linear_gradient("L").resize((8192, 6144)).convert("RGB").save(file, "JPEG")
    with running(models, Limits(**PATIENT)) as server:
        answer = post(server.client, file.getvalue())
        assert answer.status_code == 200
        assert (answer.json()["width"], answer.json()["height"]) == (8192, 6144)
        small = picture("WEBP", "L", {"method": 0}, 13)
        assert code(post(server.client, small)) == "too_many_pixels"
