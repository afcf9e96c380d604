"""What tests do on the page, and what they read off it."""

import io
import time

import numpy as np
from PIL import Image

from shape_pictures import draw
from sightline.figures.looks import smooth_maps

BEAM = 3  # the shapes captioner's own, with which the page begins


def png(picture):
    out = io.BytesIO()
    picture.save(out, "PNG")
    return out.getvalue()


def two_shapes():
    """A blue circle on the left, a green square on the right."""
    picture = Image.new("RGB", (192, 96))
    picture.paste(draw("blue", "circle", 3), (0, 0))
    picture.paste(draw("green", "square", 4), (96, 0))
    return picture


ONE, TWO = png(draw("red", "square", 7)), png(two_shapes())
LEFT, RIGHT = (0.0, 0.0, 0.5, 1.0), (0.5, 0.0, 0.5, 1.0)


def upload(page, picture=ONE, name="shape.png"):
    page.set_input_files("#file", {"name": name, "mimeType": "image/png", "buffer": picture})
    described(page)


def wait_for(condition, seconds=60):
    """Without playwright's own, which evaluates texts: the page's policy forbids that."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.05)


def described(page):
    """Wait for an answer to be there; give its words."""
    page.wait_for_selector(".look[aria-busy=false] .caption .word")
    return words(page)


def words(page, look=0):
    return page.locator(".look").nth(look).locator(".caption .word").all_inner_texts()


def light(page, look=0):
    """How light every fourth pixel of the overlay is, in rows and columns: 0 where the veil is
    thickest, 1 where it is thinnest."""
    veil = _opacities(page, look)
    for _ in range(40):  # the light of one word moves to that of the next
        page.wait_for_timeout(250)
        before, veil = veil, _opacities(page, look)
        if np.array_equal(before, veil):
            break
    assert veil.max() > 0, "there is no veil on the picture"
    return (veil.max() - veil) / (veil.max() - veil.min())


def _opacities(page, look):
    rows = (
        page.locator("canvas.heat")
        .nth(look)
        .evaluate(
            """canvas => {
            const {width, height} = canvas;
            const {data} = canvas.getContext('2d').getImageData(0, 0, width, height);
            return Array.from({length: height / 4}, (_, y) =>
                Array.from({length: width / 4}, (_, x) => data[16 * (y * width + x) + 3]));
        }"""
        )
    )
    return np.array(rows, float)


def is_unveiled(page):
    return page.locator("canvas.heat").evaluate(
        "c => c.getContext('2d').getImageData(0, 0, c.width, c.height).data.every(v => v === 0)"
    )


def expected_light(description, index, shape):
    """The map that the figures draw for a word, at the places that `light` reads."""
    lit = smooth_maps(description.attention[index : index + 1], description.layout)[0]
    size = (4 * shape[1], 4 * shape[0])
    resized = np.asarray(Image.fromarray(lit).resize(size, Image.Resampling.BILINEAR))[::4, ::4]
    return (resized - resized.min()) / (resized.max() - resized.min())


def share_inside(lit, box):
    height, width = lit.shape
    x, y, w, h = (round(a * b) for a, b in zip(box, (width, height, width, height), strict=True))
    return lit[y : y + h, x : x + w].sum() / lit.sum()


def brush(page, box, frame=".frame"):
    """Draw a box on the picture with the mouse, a little inside its edges."""
    at = page.locator(frame).bounding_box()
    x, y, w, h = box
    corners = [(x + 0.02, y + 0.02), (x + w - 0.02, y + h - 0.02)]
    places = [(at["x"] + a * at["width"], at["y"] + b * at["height"]) for a, b in corners]
    page.mouse.move(*places[0])
    page.mouse.down()
    page.mouse.move(*places[1], steps=4)
    with page.expect_response("**/v1/describe"):
        page.mouse.up()
    described(page)
