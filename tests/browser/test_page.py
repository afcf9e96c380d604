"""What a person does with the page, in a real browser before the real server."""

import io
import json
import re

import numpy as np
import pytest
from PIL import Image, ImageSequence

import sightline
from shape_pictures import draw
from sightline.figures.looks import smooth_maps
from toy_language import sentences

BEAM = 5


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


@pytest.fixture(scope="module")
def captioner(models):
    return sightline.load(models["shapes"])


def upload(page, picture=ONE, name="shape.png"):
    page.set_input_files("#file", {"name": name, "mimeType": "image/png", "buffer": picture})
    described(page)


def described(page):
    """Wait for an answer to be there; give its words."""
    page.wait_for_selector(".look[aria-busy=false] .caption .word")
    return words(page)


def words(page, look=0):
    return page.locator(".look").nth(look).locator(".caption .word").all_inner_texts()


def light(page, look=0):
    """How light every fourth pixel of the overlay is, in rows and columns: 0 where the veil is
    thickest, 1 where it is thinnest."""
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
    veil = np.array(rows, float)
    assert veil.max() > 0, "there is no veil on the picture"
    return (veil.max() - veil) / (veil.max() - veil.min())


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


# ---------------------------------------------------------------- a photo comes in, a caption out


def test_an_uploaded_picture_is_described_as_python_describes_it(page, captioner):
    upload(page)
    found = captioner.describe(ONE, beam=BEAM, n_best=BEAM)
    assert words(page) == list(found.tokens)
    others = page.locator(".others li button > span:first-child").all_inner_texts()
    assert others == [found.text, *(other.text for other in found.alternatives)]
    scores = page.locator(".others .score").all_inner_texts()
    assert scores[0] == f"{found.score:.2f}".replace("-", "−")
    assert page.locator("#live").inner_text() == f"Caption: {found.text}"


def test_the_caption_and_the_tree_grow_word_by_word(open_page):
    page = open_page(reduced_motion="no-preference")
    page.evaluate(
        """() => {
            window.seen = [];
            const count = () => seen.push([
                document.querySelectorAll('.caption .word').length,
                document.querySelectorAll('#tree text').length]);
            new MutationObserver(count).observe(document.body, {childList: true, subtree: true});
        }"""
    )
    upload(page)
    page.wait_for_selector(".others li")
    seen = page.evaluate("seen")
    lengths = [length for length, _ in seen]
    assert {1, 2, 3} <= set(lengths)
    assert lengths.index(1) < lengths.index(2) < lengths.index(3)
    sizes = [size for _, size in seen]
    assert sizes == sorted(sizes)
    assert sizes[-1] > 5


@pytest.mark.parametrize("way", ["paste", "drop"])
def test_a_picture_can_be_pasted_and_dropped(page, way):
    page.evaluate(
        """([way, bytes]) => {
            const data = new DataTransfer();
            data.items.add(new File([new Uint8Array(bytes)], 'p.png', {type: 'image/png'}));
            const options = {bubbles: true, cancelable: true};
            const event = way === 'paste'
                ? new ClipboardEvent('paste', {clipboardData: data, ...options})
                : new DragEvent('drop', {dataTransfer: data, ...options});
            document.body.dispatchEvent(event);
        }""",
        [way, list(ONE)],
    )
    assert "red" in described(page)


def test_a_photo_can_be_taken_with_the_camera(page):
    page.click("#camera")
    page.wait_for_function("() => document.getElementById('camera-view').videoWidth > 0")
    page.click("#camera-take")
    described(page)
    assert not page.locator("#camera-dialog").is_visible()
    size = page.locator(".picture").evaluate("image => image.naturalWidth")
    assert size >= 640
    assert page.evaluate("document.getElementById('camera-view').srcObject") is None


# ---------------------------------------------------------------- where it looked


def test_hovering_over_a_word_lights_where_the_model_looked(page, captioner):
    upload(page, TWO)
    found = captioner.describe(TWO, beam=BEAM, n_best=BEAM)
    assert is_unveiled(page)
    for index in range(len(found.tokens)):
        page.locator(".caption .word").nth(index).hover()
        lit = light(page)
        expected = expected_light(found, index, lit.shape)
        assert np.corrcoef(lit.ravel(), expected.ravel())[0, 1] > 0.99
        sure = round(100 * np.exp(found.log_probs[index]))
        said = page.locator(".readout").inner_text()
        assert said.startswith(f"“{found.tokens[index]}” · {sure} % sure")
    page.mouse.move(5, 5)
    assert is_unveiled(page)


def test_hovering_over_the_picture_tells_which_words_looked_there(page, captioner):
    upload(page)
    found = captioner.describe(ONE, beam=BEAM, n_best=BEAM)
    maps = smooth_maps(found.attention, found.layout)
    frame = page.locator(".frame").bounding_box()
    for row, column in [(1, 1), (24, 24), (40, 10)]:
        x, y = (column + 0.5) / maps.shape[2], (row + 0.5) / maps.shape[1]
        page.mouse.move(frame["x"] + x * frame["width"], frame["y"] + y * frame["height"])
        here = maps[:, row, column]
        hint = page.locator(".hint")
        if here.max() < 0.45:
            assert not hint.is_visible()
        elif here.max() > 0.55:
            assert hint.inner_text().split(" · ")[0] == found.tokens[here.argmax()]
    page.mouse.move(5, 5)
    assert not page.locator(".hint").is_visible()


def test_another_sentence_of_the_beam_shows_its_own_words_and_light(page, captioner):
    upload(page)
    other = captioner.describe(ONE, beam=BEAM, n_best=BEAM).alternatives[1]
    page.locator(".others li button").nth(2).click()
    page.keyboard.press("Escape")
    assert words(page) == list(other.tokens)
    page.locator(".caption .word").nth(1).hover()
    lit = light(page)
    assert np.corrcoef(lit.ravel(), expected_light(other, 1, lit.shape).ravel())[0, 1] > 0.99
    path = page.locator("#tree text.best").evaluate_all("all => all.map(t => t.firstChild.data)")
    assert path == list(other.tokens)


def test_soft_and_hard_attention_stand_side_by_side(page, captioner, models):
    upload(page, TWO)
    with page.expect_response("**/v1/describe"):
        page.check("#compare")
    page.wait_for_selector(".look:nth-child(2)[aria-busy=false] .caption .word")
    both = {"shapes": captioner, "shapes-hard": sightline.load(models["shapes-hard"])}
    for look, (name, model) in enumerate(both.items()):
        found = model.describe(TWO, beam=BEAM, n_best=BEAM)
        assert words(page, look) == list(found.tokens)
        assert name in page.locator(".kind").nth(look).inner_text()
    first, second = (page.locator(".frame").nth(look).bounding_box() for look in (0, 1))
    assert first["y"] == second["y"]
    assert first["x"] + first["width"] < second["x"]
    page.uncheck("#compare")
    assert page.locator(".look").count() == 1


# ---------------------------------------------------------------- steering it


def test_a_box_on_the_picture_steers_the_caption_and_its_light(page, captioner):
    upload(page, TWO)
    whole = words(page)
    captions = []
    for box in (LEFT, RIGHT):
        brush(page, box)
        captions.append(words(page))
        drawn = page.locator(".box").evaluate(
            "b => ['left', 'top', 'width', 'height'].map(side => parseFloat(b.style[side]) / 100)"
        )
        assert np.allclose(drawn, [box[0] + 0.02, 0.02, 0.46, 0.96], atol=0.01)
        found = captioner.describe(TWO, beam=BEAM, n_best=BEAM, focus=tuple(drawn))
        assert captions[-1] == list(found.tokens)
        page.locator(".caption .word").nth(1).hover()
        assert share_inside(light(page), box) > 0.75
        assert " ".join(whole) in page.locator(".before").inner_text()
    assert captions[0] != captions[1]
    with page.expect_response("**/v1/describe"):
        page.click(".whole")
    assert described(page) == whole
    assert not page.locator(".box").is_visible()


def test_the_caption_goes_on_from_the_words_that_were_typed(page, captioner):
    upload(page)
    page.fill("#prefix", "There is")
    with page.expect_response("**/v1/describe"):
        page.keyboard.press("Enter")
    found = captioner.describe(ONE, beam=BEAM, n_best=BEAM, prefix="There is")
    assert described(page) == list(found.tokens)
    assert found.tokens[:2] == ("there", "is")
    assert page.locator(".word.given").all_inner_texts() == ["there", "is"]


def test_a_prefix_of_unknown_words_is_explained(page):
    upload(page)
    before = words(page)
    page.fill("#prefix", "zebra")
    page.keyboard.press("Enter")
    page.wait_for_selector("#message:not([hidden])")
    assert "zebra" in page.locator("#message").inner_text()
    assert words(page) == before
    upload(page, TWO)  # it does not stand in the way of the next picture
    assert not page.locator("#message").is_visible()


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
    found = translator.translate(" ".join(source), beam=BEAM, n_best=BEAM)
    assert lines[1].all_inner_texts() == found.text.split()
    drawn = {
        (int(path["from"]), int(path["to"]))
        for path in page.locator(".aligned path").evaluate_all(
            "all => all.map(p => ({...p.dataset}))"
        )
    }
    aligned = {(a, b) for a, b, _ in translator.alignment(found).links()}
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
    page.locator("#main").focus()

    tab_to(page, ".frame")  # three columns of cells; the left one and the middle become the box
    for key in ["ArrowUp", "ArrowUp", "ArrowLeft", "Shift+ArrowDown", "Shift+ArrowDown"]:
        page.keyboard.press(key)
    assert "look" in page.locator("#live").inner_text()
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
    page.locator(".point").tap()
    draw_with_a_finger(page, [(0.05, 0.05), (0.3, 0.6), (0.48, 0.95)])
    assert page.locator(".box").is_visible()
    page.locator(".point").tap()

    page.locator(".caption .word").nth(1).tap()
    lit = light(page)
    assert share_inside(lit, LEFT) > 0.75
    row, column = np.unravel_index(lit.argmax(), lit.shape)
    frame = page.locator(".frame").bounding_box()
    x, y = (column + 0.5) / lit.shape[1], (row + 0.5) / lit.shape[0]
    page.locator(".frame").tap(position={"x": x * frame["width"], "y": y * frame["height"]})
    assert words(page)[1] in page.locator(".hint").inner_text().split(" · ")
    page.locator(".caption .word").first.tap()
    assert not page.locator(".hint").is_visible()


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


# ---------------------------------------------------------------- when something is wrong


def test_a_broken_file_gets_a_friendly_message_and_the_page_goes_on(page):
    broken = {"name": "holiday.jpg", "mimeType": "image/jpeg", "buffer": b"not a picture at all"}
    page.set_input_files("#file", broken)
    page.wait_for_selector("#message:not([hidden])")
    said = page.locator("#message").inner_text()
    assert "picture" in said
    assert "Try a JPEG" in said
    assert page.locator("#welcome").is_visible()
    upload(page)
    assert "red" in words(page)
    assert not page.locator("#message").is_visible()


def test_a_busy_server_is_asked_again(page):
    asked = []

    def busy_at_first(route):
        asked.append(route.request.url)
        if len(asked) > 1:
            return route.continue_()
        error = {"code": "busy", "message": "busy"}
        body = json.dumps({"error": error, "request_id": "1"})
        return route.fulfill(status=503, headers={"Retry-After": "1"}, body=body)

    page.route("**/v1/describe", busy_at_first)
    page.set_input_files("#file", {"name": "a.png", "mimeType": "image/png", "buffer": ONE})
    page.wait_for_selector("#message.wait")
    assert "Trying again in 1 s" in page.locator("#message").inner_text()
    assert "red" in described(page)
    assert len(asked) == 2
    assert not page.locator("#message").is_visible()


def test_a_key_is_asked_for_where_the_server_wants_one(open_page):
    page = open_page()
    given = []

    def locked(route):
        given.append(route.request.headers.get("x-api-key"))
        if given[-1] == "open sesame":
            return route.continue_()
        error = {"code": "no_key", "message": "this service needs a valid API key"}
        return route.fulfill(status=401, body=json.dumps({"error": error, "request_id": "1"}))

    page.route("**/v1/*", locked)
    page.reload()
    page.fill("#key", "a guess")
    page.keyboard.press("Enter")
    page.wait_for_selector("#message:not([hidden])")
    page.fill("#key", "open sesame")
    page.keyboard.press("Enter")
    page.wait_for_selector("#key-form", state="hidden")
    upload(page)
    assert given[:2] == [None, "a guess"]
    assert set(given[2:]) == {"open sesame"}
