"""Translation, keys alone, screen readers, phones, and files to keep."""

import io
import json
import re
import time

import numpy as np
import pytest
from PIL import Image, ImageSequence
from steps import (
    BEAM,
    LEFT,
    TWO,
    described,
    light,
    share_inside,
    two_shapes,
    upload,
    words,
)

import sightline
from sightline.tasks.translate.alignments import alignment_of
from toy_language import sentences

# ---------------------------------------------------------------- translation


def test_a_translation_is_drawn_with_its_alignment(page, models):
    source, _, links = next(s for s in sentences(50, 2) if 7 <= len(s[0]) <= 9)
    page.click("#tab-translate")
    page.fill("#source", " ".join(source))
    page.keyboard.press("Enter")
    page.wait_for_selector(".aligned path[d]")
    lines = [page.locator(f".aligned .{side} .word") for side in ("source", "target")]
    assert lines[0].all_inner_texts() == source
    translator = sightline.load(models["toy"])
    found = translator.describe(" ".join(source), beam=BEAM, n_best=BEAM)
    assert lines[1].all_inner_texts() == found.text.split()
    drawn = {
        (int(path["from"]), int(path["to"]))
        for path in page.locator(".aligned path").evaluate_all(
            "all => all.map(p => ({...p.dataset}))"
        )
    }
    aligned = {(a, b) for a, b, _ in alignment_of(translator, found).links()}
    assert drawn == aligned
    assert len(aligned & set(links)) >= 0.5 * len(links)  # the truth; it is a small model
    for index in range(lines[1].count()):
        lines[1].nth(index).hover()
        lit = page.locator(".aligned .source .word.lit").all_inner_texts()
        assert lit == [source[a] for a, b in sorted(aligned) if b == index]


# ---------------------------------------------------------------- for everyone


def tab_to(page, selector):
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate("s => document.activeElement.matches(s)", selector):
            return
    raise AssertionError(f"the Tab key never reaches {selector}")


def test_everything_can_be_done_with_the_keyboard(page, captioner):
    file = {"name": "two.png", "mimeType": "image/png", "buffer": TWO}
    page.on("filechooser", lambda chooser: chooser.set_files(file))
    tab_to(page, "#pick")
    page.keyboard.press("Enter")
    whole = described(page)
    assert page.evaluate("document.activeElement.matches('.frame')")
    # three columns of cells, of which the left one becomes the box
    for key in ["ArrowUp", "ArrowUp", "ArrowLeft", "Shift+ArrowDown", "Shift+ArrowDown"]:
        page.keyboard.press(key)
    assert "look" in page.locator("#live").inner_text()
    assert page.locator("#live").inner_text().startswith("Box of 1 by 3. ")
    page.locator("#main").focus()
    assert not page.locator(".box").is_visible()  # without Enter it does not count
    page.locator(".frame").focus()
    for key in ["ArrowUp", "ArrowUp", "ArrowLeft", "Shift+ArrowDown", "Shift+ArrowDown"]:
        page.keyboard.press(key)
    with page.expect_response("**/v1/describe"):
        page.keyboard.press("Enter")
    described(page)
    found = captioner.describe(TWO, beam=BEAM, n_best=BEAM, focus=(0, 0, 1 / 3, 1))
    assert words(page) == list(found.tokens)
    with page.expect_response("**/v1/describe"):
        page.keyboard.press("Escape")
    assert described(page) == whole

    tab_to(page, ".caption .word")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.token") == whole[1]
    assert page.locator(".word.lit").all_inner_texts() == [whole[1]]
    assert light(page).max() == 1
    name = page.evaluate("document.activeElement.ariaLabel")
    assert re.fullmatch(rf"{whole[1]}, \d+ percent sure, looked at the [a-z ]+", name)

    tab_to(page, "#prefix")
    page.keyboard.type("there is")
    with page.expect_response("**/v1/describe"):
        page.keyboard.press("Enter")
    assert described(page)[:2] == ["there", "is"]
    assert page.evaluate("document.activeElement.id") == "prefix"
    tab_to(page, "#compare")
    page.keyboard.press("Space")
    page.wait_for_selector(".look:nth-child(2)[aria-busy=false] .caption .word")
    assert page.evaluate("document.activeElement.id") == "compare"

    page.locator("#main").focus()
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("ArrowRight")
    assert page.locator("#source").is_visible()


def test_every_control_has_a_name_for_a_screen_reader(page):
    upload(page)
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    controls = [
        (node["role"]["value"], node.get("name", {}).get("value", ""))
        for node in nodes
        if not node["ignored"]
        and node["role"]["value"]
        in ("button", "textbox", "combobox", "checkbox", "tab", "application", "image", "img")
    ]
    assert len(controls) > 15
    assert [role for role, name in controls if not name.strip()] == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_a_finger_can_point(open_page, scheme):
    phone = {"width": 360, "height": 740}
    page = open_page(viewport=phone, has_touch=True, is_mobile=True, color_scheme=scheme)
    upload(page, TWO)
    widths = page.evaluate("[document.documentElement.scrollWidth, innerWidth]")
    assert widths == [360, 360]
    paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (min(map(int, re.findall(r"\d+", paper))) > 200) == (scheme == "light")
    press(page, "true")
    draw_with_a_finger(page, [(0.05, 0.05), (0.3, 0.6), (0.48, 0.95)])
    assert page.locator(".box").is_visible()
    press(page, "false")

    page.locator(".caption .word").nth(1).tap()
    lit = light(page)
    assert share_inside(lit, LEFT) > 0.75
    row, column = np.unravel_index(lit.argmax(), lit.shape)
    frame = page.locator(".frame").bounding_box()
    x, y = (column + 0.5) / lit.shape[1], (row + 0.5) / lit.shape[0]
    for _ in range(3):  # a finger may tap again, too
        page.locator(".frame").tap(position={"x": x * frame["width"], "y": y * frame["height"]})
        end = time.monotonic() + 10
        while not page.locator(".hint").is_visible() and time.monotonic() < end:
            page.wait_for_timeout(50)
        if page.locator(".hint").is_visible():
            break
    assert words(page)[1] in page.locator(".hint").inner_text().split(" · ")
    page.locator(".caption .word").first.tap()
    assert not page.locator(".hint").is_visible()


def press(page, pressed):
    """Tap the button for pointing until it says so: on a busy machine a tap may last as long as a
    long press, which is no click."""
    button = page.locator(".point")
    for _ in range(5):
        button.tap()
        end = time.monotonic() + 5
        while button.get_attribute("aria-pressed") != pressed and time.monotonic() < end:
            page.wait_for_timeout(50)
        if button.get_attribute("aria-pressed") == pressed:
            return
    raise AssertionError(f"the button is not {pressed}")


def draw_with_a_finger(page, places):
    frame = page.locator(".frame").bounding_box()
    session = page.context.new_cdp_session(page)
    kinds = ["touchStart"] + ["touchMove"] * (len(places) - 1)
    for kind, (x, y) in zip(kinds, places, strict=True):
        point = {"x": frame["x"] + x * frame["width"], "y": frame["y"] + y * frame["height"]}
        session.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": [point]})
    with page.expect_response("**/v1/describe"):
        session.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    described(page)


# ---------------------------------------------------------------- what can be kept


def saved(page, kind):
    with page.expect_download() as download:
        page.click(f".save [data-kind={kind}]")
    assert download.value.suggested_filename == f"shape-sightline.{kind}"
    return download.value.path().read_bytes()


def test_a_look_is_saved_as_png_gif_and_json(page, captioner):
    upload(page, TWO)
    found = captioner.describe(TWO, beam=BEAM, n_best=BEAM)

    answer = json.loads(saved(page, "json"))
    assert answer["text"] == found.text
    assert np.allclose(answer["attention"], found.attention, atol=1e-4)

    sheet = Image.open(io.BytesIO(saved(page, "png")))
    assert sheet.format == "PNG"
    assert sheet.width > 400

    moving = Image.open(io.BytesIO(saved(page, "gif")))
    frames = [np.asarray(frame.convert("RGB"), float) for frame in ImageSequence.Iterator(moving)]
    assert len(frames) == len(found.tokens) + 2
    assert moving.info["loop"] == 0
    original = np.asarray(two_shapes().resize((360, 180), Image.Resampling.BILINEAR), float)
    assert np.abs(frames[0][:180] - original).mean() < 6  # the same picture in 256 colours
    assert frames[1][:180].mean() < 0.8 * original.mean()  # most of it in the dark
