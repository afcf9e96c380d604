"""The photos that ship are small, free and credited, and their boxes are inside them."""

from __future__ import annotations

import subprocess
import sys

import pytest
from PIL import Image

from sightline.data.manifest import normalise_caption
from sightline.media.image import read_image
from sightline.samples import FOLDER, Sample, samples

COPYRIGHT, ARTIST = 0x8298, 0x013B  # EXIF
FREE = {"CC0 1.0", "public domain", "CC BY 4.0"}


@pytest.fixture(params=samples(), ids=lambda sample: sample.name)
def sample(request: pytest.FixtureRequest) -> Sample:
    return request.param


def test_every_photo_in_the_folder_is_listed_once() -> None:
    names = [sample.name for sample in samples()]
    assert 6 <= len(names) <= 10
    assert sorted(names) == sorted(file.name for file in FOLDER.glob("*.jpg"))


def test_a_photo_is_a_small_jpeg(sample: Sample) -> None:
    assert sample.path.stat().st_size <= 80_000
    assert sample.path.read_bytes()[:3] == b"\xff\xd8\xff"
    assert max(read_image(sample.path).shape) <= 640


def test_a_photo_is_free_and_says_so_itself(sample: Sample) -> None:
    assert sample.licence in FREE
    assert sample.credit.endswith(sample.licence)
    author = sample.credit.removesuffix(f", {sample.licence}")
    assert sample.source.package
    assert sample.source.path
    assert sample.source.stated_in
    with Image.open(sample.path) as image:
        exif = image.getexif()
    assert exif[ARTIST] == author
    assert sample.licence in exif[COPYRIGHT]
    assert sample.licence_url in exif[COPYRIGHT]


def test_boxes_lie_inside_and_are_named_in_the_caption(sample: Sample) -> None:
    caption = normalise_caption(sample.alt).split()
    assert 1 <= len(sample.boxes) <= 3
    for thing in sample.boxes:
        x, y, width, height = thing.box
        assert min(x, y) >= 0
        assert min(width, height) > 0
        assert max(x + width, y + height) <= 1 + 1e-9
        assert any(word in caption for word in thing.words)


def test_listing_the_samples_needs_neither_torch_nor_pillow() -> None:
    code = (
        "import sys; from sightline.samples import samples; assert samples();"
        "assert not {'torch', 'PIL', 'numpy'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
