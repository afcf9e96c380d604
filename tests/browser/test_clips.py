"""The panel for clips, with the model that ships."""

import io
import re

import pytest
from PIL import Image
from serving import serving
from steps import wait_for

import sightline
from films import moving, write_film
from sightline.tasks.clip.parts import sample_clips

pytest.importorskip("av", reason="clips need PyAV")

WORDS = "#clip-words .word"


@pytest.fixture(scope="module")
def clips():
    return sightline.load("clips")


@pytest.fixture(scope="module")
def address(a_browser_is_there, cli_environment, tmp_path_factory):
    log = tmp_path_factory.mktemp("serve") / "log"
    with serving({"clips": "clips"}, cli_environment, log) as address:
        yield address


@pytest.fixture
def film(tmp_path):
    return write_film(tmp_path / "square.mp4", moving((220, 30, 30), 16, (1, 0), 96, 128))


def answered(page):
    page.wait_for_selector("#panel-clip .save:not([hidden])")
    return page.locator(WORDS).all_inner_texts()


def film_is(page, what):
    return page.locator("#clip-film").evaluate(f"film => film.{what}")


def test_the_sample_plays_and_each_word_shows_where_it_looked(open_at, address, clips):
    (sample,) = sample_clips(clips.recipe)
    found = clips.describe(sample)
    page = open_at(address)
    page.click("#panel-clip .examples button")
    assert answered(page) == list(found.tokens)
    assert "NASA" in page.locator("#clip-credit").inner_text()
    cells = page.locator("#clip-strip button")
    assert cells.count() == len(found.layout.times)
    before = film_is(page, "currentTime")
    wait_for(lambda: film_is(page, "currentTime") != before)  # it plays
    wait_for(lambda: page.locator("#clip-strip .now").count() == 1)
    for index, token in enumerate(found.tokens):
        row = found.attention[index]
        page.locator(WORDS).nth(index).hover()
        said = page.locator("#clip-readout").inner_text()
        name, time, percent = re.fullmatch(r"“(.+)” · most at ([\d.]+) s, (\d+) %.*", said).groups()
        assert name == token
        assert float(time) == pytest.approx(found.layout.times[row.argmax()], abs=0.06)
        assert float(percent) == pytest.approx(100 * row.max(), abs=1.1)
        lit = cells.evaluate_all("all => all.map(c => +c.style.getPropertyValue('--weight'))")
        assert lit == pytest.approx(row / max(row.max(), 2 / len(row)), abs=0.02)
    cells.nth(3).click()
    wait_for(lambda: film_is(page, "paused"))
    assert film_is(page, "currentTime") == pytest.approx(found.layout.times[3], abs=0.02)
    drawn = "c => new Set(c.getContext('2d').getImageData(0, 0, c.width, c.height).data).size"
    wait_for(lambda: cells.nth(3).locator("canvas").evaluate(drawn) > 50)  # a picture of the film


def test_a_clip_of_ones_own_and_a_moving_gif(open_at, address, clips, film):
    page = open_at(address)
    page.set_input_files("#clip-file", film)
    assert answered(page) == list(clips.describe(film).tokens)
    assert film_is(page, "videoWidth") == 128
    out = io.BytesIO()
    pictures = [Image.fromarray(pixels) for pixels in moving((30, 60, 220), 8, (0, 1))]
    pictures[0].save(out, "GIF", save_all=True, append_images=pictures[1:], duration=100)
    gif = {"name": "a.gif", "mimeType": "image/gif", "buffer": out.getvalue()}
    with page.expect_response("**/v1/clip"):
        page.set_input_files("#clip-file", gif)
    assert answered(page) == list(clips.describe(out.getvalue()).tokens)
    assert page.locator("#clip-picture").is_visible()
    assert not page.locator("#clip-film").is_visible()


def test_what_is_no_clip_is_explained(open_at, address):
    page = open_at(address)
    bad = {"name": "a.mp4", "mimeType": "video/mp4", "buffer": b"no film"}
    page.set_input_files("#clip-file", bad)
    page.wait_for_selector("#message:not([hidden])")
    assert "not a clip that this server reads" in page.locator("#message").inner_text()
    assert not page.locator("#clip-words").is_visible()


def test_the_camera_films_on_a_phone(open_at, address):
    phone = {"width": 360, "height": 740}
    page = open_at(address, viewport=phone, has_touch=True, is_mobile=True)
    page.locator("#clip-camera").click()
    page.wait_for_selector("#clip-live:not([hidden])")
    assert page.locator("#clip-camera").inner_text() == "Stop"
    page.wait_for_timeout(1200)
    page.locator("#clip-camera").click()
    assert answered(page)
    assert not page.locator("#clip-live").is_visible()
    page.locator(WORDS).first.tap()
    assert "most at" in page.locator("#clip-readout").inner_text()
    assert page.evaluate("[document.documentElement.scrollWidth, innerWidth]") == [360, 360]


def test_every_control_of_it_has_a_name(open_at, address, film):
    page = open_at(address)
    page.set_input_files("#clip-file", film)
    answered(page)
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    names = [
        node.get("name", {}).get("value", "")
        for node in nodes
        if not node["ignored"] and node["role"]["value"] in ("button", "textbox", "combobox")
    ]
    assert len(names) > 15
    assert all(name.strip() for name in names)
