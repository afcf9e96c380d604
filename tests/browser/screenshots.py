"""Takes the screenshots of docs/page/ with the sample photos that ship.

    .venv/bin/python tests/browser/screenshots.py NAME=MODEL …

Models are runs, checkpoints or zoo names, as `sightline serve` takes them; the first captioner is
shown. With a soft and a hard one their comparison is shown too, with a translator its alignment.
"""

import argparse
import io
import os
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright
from serving import ARGUMENTS, chromium, serving

OUT = Path(__file__).parents[2] / "docs" / "page"
WIDTH = 900  # of a saved screenshot of a desktop
DESKTOP, PHONE = {"width": 1200, "height": 820}, {"width": 390, "height": 844}
BOX = (0.3, 0.2, 0.3, 0.35)  # x, y, width, height
SENTENCE = "a man in a blue shirt is riding a bicycle down the street ."


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


def describe_sample(page, number):
    page.locator("#sample-list button").nth(number).click()
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


def desktop(opened, samples):
    page = opened(viewport=DESKTOP)
    page.wait_for_timeout(300)
    save(page, "welcome")
    describe_sample(page, samples[0])
    longest_word(page).hover()
    save(page, "word")

    page = opened(viewport=DESKTOP, color_scheme="dark")
    describe_sample(page, samples[1])
    point(page, 0.5, 0.5)
    save(page, "picture-dark")
    save(page.locator("#search"), "search-dark")


def pointing(opened, samples, box):
    page = opened(viewport=DESKTOP)
    describe_sample(page, samples[2])
    x, y, width, height = box
    point(page, x, y)
    page.mouse.down()
    point(page, x + width, y + height)
    with page.expect_response("**/v1/describe"):
        page.mouse.up()
    described(page)
    longest_word(page).hover()
    save(page, "pointing")


def phone(opened, samples):
    page = opened(viewport=PHONE, has_touch=True, is_mobile=True, color_scheme="dark")
    describe_sample(page, samples[0])
    longest_word(page).tap()
    save(page, "phone-dark")


def comparison(opened, samples, picture=None):
    page = opened(viewport=DESKTOP)
    if picture:
        page.set_input_files("#file", picture)
        described(page)
    else:
        describe_sample(page, samples[0])
    if not page.locator("#compare").is_visible():
        print("no comparison: it needs a soft and a hard captioner")
        return
    with page.expect_response("**/v1/describe"):
        page.check("#compare")
    described(page)
    for look in (0, 1):
        longest_word(page, look).click()
    save(page, "soft-and-hard")


def translation(opened, sentence):
    page = opened(viewport={"width": 1200, "height": 640})
    if not page.locator("#tab-translate").is_visible():
        print("no translation: it needs a translator")
        return
    page.click("#tab-translate")
    page.fill("#source", sentence)
    page.click("#translate-form .primary")
    page.wait_for_selector(".aligned path[d]")
    page.locator(".aligned .target .word").nth(4).hover()
    page.wait_for_timeout(200)
    save(page, "translation")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="+", metavar="NAME=MODEL")
    parser.add_argument("--samples", type=int, nargs=3, default=[0, 1, 2], metavar="NUMBER")
    parser.add_argument(
        "--box", type=float, nargs=4, default=BOX, metavar="PART", help="to point at"
    )
    parser.add_argument("--sentence", default=SENTENCE, help="to translate")
    parser.add_argument("--compare", metavar="PICTURE", help="only compare, on a picture of yours")
    given = parser.parse_args()
    models = dict(model.split("=", 1) for model in given.models)
    OUT.mkdir(parents=True, exist_ok=True)
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(models, os.environ, Path(folder) / "log") as address,
        sync_playwright() as playwright,
    ):
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)

        def opened(**options):
            page = browser.new_context(reduced_motion="reduce", **options).new_page()
            page.goto(address)
            page.wait_for_selector("body[data-ready]")
            return page

        if not given.compare:
            desktop(opened, given.samples)
            pointing(opened, given.samples, given.box)
            phone(opened, given.samples)
            translation(opened, given.sentence)
        comparison(opened, given.samples, given.compare)
        browser.close()


if __name__ == "__main__":
    main()
