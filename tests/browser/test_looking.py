"""A photo comes in, a caption out; where it looked, and steering it: in a real browser."""

import numpy as np
import pytest
from steps import (
    BEAM,
    LEFT,
    ONE,
    RIGHT,
    TWO,
    brush,
    described,
    expected_light,
    is_unveiled,
    light,
    share_inside,
    upload,
    wait_for,
    words,
)

import sightline
from sightline.figures.looks import smooth_maps

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
    wait_for(lambda: page.evaluate("document.getElementById('camera-view').videoWidth"))
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


def test_hovering_over_the_picture_shows_which_words_looked_there(page, captioner):
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
    for number in (1, 2):
        page.wait_for_selector(f".look:nth-child({number})[aria-busy=false] .caption .word")
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


def test_the_caption_continues_the_words_that_were_typed(page, captioner):
    upload(page)
    page.fill("#prefix", "There is")
    with page.expect_response("**/v1/describe"):
        page.keyboard.press("Enter")
    found = captioner.describe(ONE, beam=BEAM, n_best=BEAM, prefix="There is")
    assert described(page) == list(found.tokens)
    assert found.tokens[:2] == ("there", "is")
    assert page.locator(".word.given").all_inner_texts() == ["there", "is"]


def test_the_beam_is_searched_in_groups_and_words_may_repeat(page, captioner):
    upload(page)
    assert page.locator("#groups option").all_inner_texts() == ["1", "3"]  # of a beam of 3
    sentences = page.locator(".others li button > span:first-child")
    for setting, options in (
        (lambda: page.select_option("#groups", "3"), {"groups": 3}),
        (lambda: page.check("#repeats"), {"groups": 3, "words_once": False}),
    ):
        with page.expect_response("**/v1/describe"):
            setting()
        described(page)
        found = captioner.describe(ONE, beam=BEAM, n_best=BEAM, **options)
        expected = [found.text, *(other.text for other in found.alternatives)]
        wait_for(lambda wanted=expected: sentences.all_inner_texts() == wanted)
    with page.expect_response("**/v1/describe"):
        page.select_option("#beam", "8")  # three groups do not divide it
    assert page.locator("#groups").input_value() == "1"
    assert page.locator("#groups option").all_inner_texts() == ["1", "2", "4", "8"]


def test_how_sure_it_is_is_said_in_words(page, captioner):
    upload(page)
    found = captioner.describe(ONE, beam=BEAM, n_best=BEAM)
    for number, sentence in enumerate((found, *found.alternatives)):
        page.locator(".others li button").nth(number).click()
        page.keyboard.press("Escape")
        words, _, rest = page.locator(".confidence").inner_text().partition(": ")
        assert rest.startswith(f"{int(100 * sentence.confidence + 0.5)} of 100 sentences")
        at_least = {"Quite sure": 0.75, "Fairly sure": 0.5, "Not sure": 0.25, "A guess": 0.0}
        assert words == next(w for w, least in at_least.items() if sentence.confidence >= least)


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
