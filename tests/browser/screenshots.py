"""Takes all the screenshots of docs/images/page/: the models that ship, on the sample photos.

    .venv/bin/python tests/browser/screenshots.py [soft=RUN hard=RUN]

The comparison is taken only where its models are given: they do not ship.
"""

import argparse
import io
import os
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright
from serving import ARGUMENTS, chromium, serving

ROOT = Path(__file__).parents[2]
OUT = ROOT / "docs" / "images" / "page"
WIDTH = 900  # of a saved screenshot of a desktop
DESKTOP, PHONE = {"width": 1200, "height": 820}, {"width": 390, "height": 844}
BOX = (0.02, 0.6, 0.9, 0.35)  # x, y, width, height: the fence in front of the dogs
SENTENCE = "Two men in red shirts are playing soccer on a green field."


def save(shown, name, width=WIDTH):
    """A page or a part of one in 256 colours, a third of the size for little that shows."""
    picture = Image.open(io.BytesIO(shown.screenshot())).convert("RGB")
    if picture.width > width:
        size = (width, round(picture.height * width / picture.width))
        picture = picture.resize(size, Image.Resampling.LANCZOS)
    path = OUT / f"{name}.png"
    colours = picture.quantize(256, method=Image.Quantize.MAXCOVERAGE, kmeans=3)
    dithered = picture.quantize(palette=colours, dither=Image.Dither.FLOYDSTEINBERG)
    dithered.save(path, optimize=True)
    print(f"{path.name}: {picture.width} x {picture.height}, {path.stat().st_size / 1000:.0f} kB")


def describe_sample(page, name):
    page.click(f"#sample-list button:has([src$='/{name}.jpg'])")
    described(page)


def described(page):
    page.wait_for_selector(".look:last-child[aria-busy=false] .others li")
    page.wait_for_timeout(150)


def longest_word(page, look=0):
    """The caption's longest word: most often the thing that it is about."""
    found = page.locator(".look").nth(look).locator(".caption .word")
    texts = found.all_inner_texts()
    return found.nth(max(range(len(texts)), key=lambda i: len(texts[i])))


def point(page, x, y):
    box = page.locator(".frame").first.bounding_box()
    page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"])


def welcome(opened):
    page = opened()
    page.wait_for_timeout(300)  # for the samples to be drawn
    save(page, "welcome")


def word(opened):
    page = opened()
    describe_sample(page, "dogs")
    longest_word(page).hover()
    save(page, "word")


def picture_and_search(opened):
    page = opened(color_scheme="dark")
    describe_sample(page, "egret")
    point(page, 0.5, 0.5)
    save(page, "picture-dark")
    save(page.locator("#search"), "search-dark")


def pointing(opened):
    page = opened()
    describe_sample(page, "dogs")
    x, y, width, height = BOX
    point(page, x, y)
    page.mouse.down()
    point(page, x + width, y + height)
    with page.expect_response("**/v1/describe"):
        page.mouse.up()
    described(page)
    longest_word(page).hover()
    save(page, "pointing")


def prefix(opened):
    page = opened()
    describe_sample(page, "bird")
    page.fill("#prefix", "A small")
    with page.expect_response("**/v1/describe"):
        page.keyboard.press("Enter")
    described(page)
    page.locator(".caption .word").nth(2).hover()  # the first that is the model's own
    save(page, "prefix")


def keyboard(opened):
    page = opened()
    page.keyboard.press("Tab")  # all of it with keys
    while not page.evaluate("document.activeElement.innerHTML.includes('egret')"):
        page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    described(page)
    while not page.evaluate("document.activeElement.matches('.word')"):
        page.keyboard.press("Tab")
    for _ in range(2):
        page.keyboard.press("ArrowRight")
    save(page, "keyboard")


def broken(opened):
    whole = (ROOT / "src/sightline/samples/dogs.jpg").read_bytes()
    page = opened()
    cut = {"name": "holiday.jpg", "mimeType": "image/jpeg", "buffer": whole[: len(whole) // 3]}
    page.set_input_files("#file", cut)
    page.wait_for_selector("#message:not([hidden])")
    page.wait_for_timeout(300)
    save(page, "broken-file")


def phone(opened):
    page = opened(viewport=PHONE, has_touch=True, is_mobile=True, color_scheme="dark")
    describe_sample(page, "dogs")
    longest_word(page).tap()
    save(page, "phone-dark")


def comparison(opened):
    page = opened()
    describe_sample(page, "dogs")
    with page.expect_response("**/v1/describe"):
        page.check("#compare")
    described(page)
    page.evaluate("scrollTo(0, 0)")
    for look in (0, 1):
        longest_word(page, look).click()
    save(page, "soft-and-hard")


def translation(opened):
    page = opened(viewport={"width": 1200, "height": 640})
    page.click("#tab-translate")
    page.fill("#source", SENTENCE)
    page.click("#translate-form .primary")
    page.wait_for_selector(".aligned path[d]")
    page.locator(".aligned .target .word").nth(4).hover()
    page.wait_for_timeout(200)
    save(page, "translation")


STATES = (welcome, word, picture_and_search, pointing, prefix, keyboard, broken, phone, translation)


def take(states, models, browser, log):
    """Every state on pages of one server of these models."""
    with serving(models, os.environ, log) as address:

        def opened(**options):
            options = {"viewport": DESKTOP, "reduced_motion": "reduce"} | options
            page = browser.new_context(**options).new_page()
            page.goto(address)
            page.wait_for_selector("body[data-ready]")
            return page

        for state in states:
            state(opened)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="NAME=RUN", help="to compare")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        take(
            STATES, {name: name for name in ("default", "en-de", "en-fr")}, browser, folder / "log"
        )
        models = dict(model.split("=", 1) for model in given.models)
        if models:
            take((comparison,), models, browser, folder / "log")
        browser.close()


if __name__ == "__main__":
    main()
