"""Someone with photos: folders, odd files, tables, and Python."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import sightline
from sightline.errors import UserError
from sightline.samples import samples

DOGS = samples()[0].path


def test_a_folder_is_searched_and_nothing_is_skipped_without_a_word(typed, photos):
    Image.open(DOGS).resize((64, 48)).save(photos / "old.ppm")
    (photos / "cut.jpg").write_bytes(DOGS.read_bytes()[:900])
    done = typed("sightline describe photos --figure drawn", code=2)
    names = [line.partition(":")[0] for line in done.out.splitlines()]
    assert names == ["photos/beach/IMG_1.jpg", "photos/old.ppm", "photos/town/IMG_1.jpg"]
    assert "photos: 1 file not taken for pictures, such as notes.txt" in done.err
    assert "photos/cut.jpg: damaged or cut short" in done.err
    assert done.err.endswith("3 described, 1 failed\n")
    drawn = sorted(path.name for path in (photos.parent / "drawn").iterdir())
    assert drawn == ["IMG_1-2.png", "IMG_1.png", "old.png"]


def test_a_table_and_small_json_go_to_a_file_without_a_word(typed, photos):
    done = typed("sightline describe photos -m default -b 2 -n 2 --csv -o captions.csv -q")
    assert (done.out, done.err) == ("", "")
    rows = list(csv.DictReader(io.StringIO((photos.parent / "captions.csv").read_text())))
    assert [row["file"] for row in rows] == 2 * ["photos/beach/IMG_1.jpg"] + 2 * [
        "photos/town/IMG_1.jpg"
    ]
    assert all(row["text"] and 0 < float(row["confidence"]) < 1 for row in rows)
    small = typed(f"sightline describe {DOGS} --json --no-attention --n-best 2").out
    assert not {"attention", "layout"} & json.loads(small)["alternatives"][0].keys()
    assert "attention" not in small
    both = typed(f"sightline describe {DOGS} --json --csv", code=2)
    assert "not both" in both.err


def test_heic_is_read_with_its_extra_and_otherwise_says_what_to_install(
    typed, here, monkeypatch: pytest.MonkeyPatch
):
    heif = pytest.importorskip("pillow_heif", reason="the extra heic")
    heif.from_pillow(Image.open(DOGS)).save(here / "phone.heic")
    assert "dog" in typed("sightline describe phone.heic").out
    from sightline.media import image

    monkeypatch.setattr(image, "find_spec", lambda name: None)
    refused = typed("sightline describe phone.heic", code=2)
    assert "pip install 'sightline-attention[heic]'" in refused.err


def test_an_address_is_refused_in_one_line(typed, here):
    done = typed("sightline describe https://example.org/dog.jpg", code=2)
    assert done.err.count("\n") == 1
    assert "opens no address on the network; save the picture first" in done.err


def test_no_bar_is_mixed_with_captions_on_a_terminal(here, cli_environment):
    """With both streams on one terminal, the lines are captions and nothing is drawn over them."""
    pty = pytest.importorskip("pty")
    import os

    for number in range(18):
        (here / f"{number:02}.jpg").symlink_to(DOGS)
    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "sightline", "describe", ".", "-b", "1"]
    process = subprocess.Popen(
        command, stdout=follower, stderr=follower, cwd=here, env=cli_environment
    )
    os.close(follower)
    shown = b""
    try:
        while chunk := os.read(leader, 4096):
            shown += chunk
    except OSError:  # the terminal's other end is closed
        pass
    os.close(leader)
    assert process.wait(120) == 0
    *captions, last = shown.decode().replace("\r\n", "\n").splitlines()
    assert [line.partition(": ")[0] for line in captions] == [f"{n:02}.jpg" for n in range(18)]
    assert last == "18 described"


def test_python_takes_what_people_have_at_hand():
    model = sightline.load("default")
    image = Image.open(DOGS)
    pixels = np.asarray(image.convert("RGB"))
    text = model.describe(DOGS).text
    assert model.describe(image).text == model.describe(pixels).text == text
    turned = image.rotate(90, expand=True)
    exif = turned.getexif()
    exif[0x0112] = 6  # shown turned back
    packed = io.BytesIO()
    turned.save(packed, "PNG", exif=exif)
    assert model.describe(Image.open(packed)).text == text
    grey = image.convert("L")
    several = model.describe(each for each in (grey, np.asarray(grey), np.asarray(grey)[..., None]))
    assert several[0] == several[1] == several[2]
    assert len({*several}) == 1
    assert several[0] != model.describe(image)
    assert several[0] != several[0].text
    with pytest.raises(UserError, match="opens no address"):
        model.describe("http://example.org/dog.jpg")


def test_a_description_shows_itself(tmp_path: Path):
    found = sightline.load("default").describe(DOGS, n_best=2)
    words, rows, columns = found.attention_maps.shape
    assert (words, rows, columns) == (len(found.tokens), *found.layout.shape)
    np.testing.assert_array_equal(found.attention_maps[0].ravel(), found.attention[0])
    page = found._repr_html_()
    assert page.count("<img") == len(found.tokens)
    assert 'src="data:image/png' in page
    assert "http" not in page
    assert found.alternatives[0].text in page
    found.figure(tmp_path / "from_image.png", Image.open(DOGS))
    assert (tmp_path / "from_image.png").stat().st_size > 5000
    translated = sightline.load("en-de").describe("A dog & a <cat> run.")
    assert "<cat>" not in translated._repr_html_()
    assert "dog" in translated._repr_html_()
    with pytest.raises(UserError, match="rows and columns"):
        _ = translated.attention_maps
