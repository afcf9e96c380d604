"""Takes all the screenshots of docs/images/page/, with the models that ship.

    .venv/bin/python tests/browser/screenshots.py [--only STATE …] [soft=RUN hard=RUN]

The comparison of soft and hard attention is taken only where both are given.
"""

import argparse
import io
import os
import tempfile
from pathlib import Path

from PIL import Image
from playwright.sync_api import sync_playwright
from serving import ARGUMENTS, chromium, serving

from sightline import zoo

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


def ask(opened, task, example=0, **options):
    """A panel's example, answered."""
    page = opened(**{"viewport": {"width": 1200, "height": 700}} | options)
    page.click(f"#tab-{task}")
    page.locator(f"#panel-{task} .examples button").nth(example).click()
    page.wait_for_selector(f"#panel-{task} .save:not([hidden])")
    page.wait_for_timeout(200)
    return page


def classes(opened):
    page = opened(viewport={"width": 1200, "height": 800})
    page.click("#tab-classify")
    page.fill("#classify-text", "Which fish can live out of water?")
    page.keyboard.press("Enter")
    page.wait_for_selector("#panel-classify .save:not([hidden])")
    page.click("#panel-classify .about summary")
    save(page, "classes")


def tree(opened):
    page = ask(opened, "parse")
    page.locator(".phrase > button", has_text="VP").first.hover()
    save(page, "tree")


def points(opened):
    page = ask(opened, "point", 1, viewport={"width": 1200, "height": 860})
    words = page.locator("#point-found .word")
    words.nth(words.count() // 2).hover()
    save(page, "points")


def story(opened):
    save(ask(opened, "answer", viewport={"width": 1200, "height": 900}), "story")


def writing(opened):
    save(ask(opened, "language_model", viewport={"width": 1200, "height": 860}), "writing")


def phone_points(opened):
    page = ask(opened, "point", viewport=PHONE, has_touch=True, is_mobile=True, color_scheme="dark")
    page.locator("#point-found .word").nth(3).tap()
    page.evaluate("scrollTo(0, 60)")
    save(page, "points-phone-dark")


def clip(opened):
    page = ask(opened, "clip", viewport={"width": 1200, "height": 760})
    clip_word(page).hover()
    page.wait_for_timeout(400)
    save(page, "clip")


def phone_clip(opened):
    page = ask(opened, "clip", viewport=PHONE, has_touch=True, is_mobile=True, color_scheme="dark")
    clip_word(page).tap()
    page.evaluate("scrollTo(0, 330)")
    page.wait_for_timeout(400)
    save(page, "clip-phone-dark")


def speech(opened):
    page = opened(viewport={"width": 1200, "height": 640})
    page.click("#tab-transcribe")
    page.click("#speech-example")
    page.wait_for_selector("#heard:not([hidden]) #phones button")
    page.wait_for_timeout(500)
    page.locator("#phones button").nth(8).hover()
    save(page, "speech")


def clip_word(page):
    """The longest word of what is said of a film, which stands still."""
    page.wait_for_timeout(2500)  # for the frames to be drawn
    page.locator("#clip-film").evaluate("film => film.pause()")
    found = page.locator("#clip-words .word")
    texts = found.all_inner_texts()
    return found.nth(max(range(len(texts)), key=lambda i: len(texts[i])))


def api(opened):
    page = opened(path="docs")
    page.locator("#post-v1-translate").scroll_into_view_if_needed()
    page.evaluate("document.getElementById('post-v1-translate').scrollIntoView()")
    save(page, "api")


STATES = (
    *(welcome, word, picture_and_search, pointing, prefix, keyboard, broken, phone, translation),
    *(classes, tree, points, story, writing, phone_points, clip, phone_clip, speech, api),
)


def take(states, models, browser, log):
    """Every state on pages of one server of these models."""
    with serving(models, os.environ, log) as address:

        def opened(path="", **options):
            options = {"viewport": DESKTOP, "reduced_motion": "reduce"} | options
            page = browser.new_context(**options).new_page()
            page.goto(f"{address}{path}")
            page.wait_for_selector("body[data-ready]")
            return page

        for state in states:
            state(opened)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("compared", nargs="*", metavar="soft=RUN hard=RUN")
    parser.add_argument("--only", action="append", help="the names of states")
    asked = parser.parse_args()
    compared = dict(model.split("=", 1) for model in asked.compared)
    models = {name: name for name in zoo.names() if name != "coco"}  # one captioner is shown
    states = [state for state in STATES if state.__name__ in (asked.only or [state.__name__])]
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        browser = playwright.chromium.launch(executable_path=chromium(), args=ARGUMENTS)
        take(states, models, browser, folder / "log")
        if compared:
            take((comparison,), compared, browser, folder / "log")
        browser.close()


if __name__ == "__main__":
    main()
