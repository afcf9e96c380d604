"""Errors: broken files, a server that is busy, locked or gone, a failed request."""

import io
import json

from steps import ONE, TWO, described, draw, upload, words


def test_a_broken_file_gets_a_message_and_the_page_still_works(page):
    broken = {"name": "holiday.jpg", "mimeType": "image/jpeg", "buffer": b"not a picture at all"}
    page.set_input_files("#file", broken)
    page.wait_for_selector("#message:not([hidden])")
    said = page.locator("#message").inner_text()
    assert "picture" in said
    assert "Try a JPEG" in said
    assert page.locator("#welcome").is_visible()
    assert page.evaluate("document.activeElement.id") == "pick"
    upload(page)
    assert "red" in words(page)
    assert not page.locator("#message").is_visible()


def test_a_busy_server_gets_the_request_again(page):
    asked = []

    def busy_at_first(route):
        asked.append(route)
        if len(asked) > 1:
            return  # continued once the message is read
        error = {"code": "busy", "message": "busy"}
        body = json.dumps({"error": error, "request_id": "1"})
        route.fulfill(status=503, headers={"Retry-After": "1"}, body=body)

    page.route("**/v1/describe", busy_at_first)
    page.set_input_files("#file", {"name": "a.png", "mimeType": "image/png", "buffer": ONE})
    page.wait_for_selector("#message.wait")
    assert "Trying again in 1 s" in page.locator("#message").inner_text()
    while len(asked) < 2:  # or the test's own time limit
        page.wait_for_timeout(50)  # unlike sleep it lets the page's requests through
    asked[1].continue_()
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
    page.wait_for_selector("#key")
    assert not page.locator("#pick").is_visible()
    page.fill("#key", "a guess")
    page.keyboard.press("Enter")
    page.wait_for_selector("#message:not([hidden])")
    page.fill("#key", "open sesame")
    page.keyboard.press("Enter")
    page.wait_for_selector("#key-form", state="hidden")
    assert page.locator("#pick").is_visible()
    upload(page)
    assert given[:2] == [None, "a guess"]
    assert set(given[2:]) == {"open sesame"}


def test_a_picture_that_the_browser_cannot_show_is_described_all_the_same(page):
    file = io.BytesIO()
    draw("red", "square", 7).save(file, "TIFF")
    upload(page, file.getvalue(), "scan.tif")
    assert "red" in words(page)
    assert page.locator(".unseen").is_visible()
    kinds = page.locator(".save button:visible").all_inner_texts()
    assert kinds == ["JSON"]  # a picture cannot be drawn of it
    upload(page)
    assert not page.locator(".unseen").is_visible()
    assert page.locator(".look .save button:visible").count() == 3


def test_one_of_two_that_fails_leaves_the_other(page):
    upload(page, TWO)
    before = words(page)

    def break_hard(route):
        if b"shapes-hard" in route.request.post_data_buffer:
            return route.fulfill(status=500, body="{}")
        return route.continue_()

    page.route("**/v1/describe", break_hard)
    page.check("#compare")
    page.wait_for_selector("#message:not([hidden])")
    assert page.locator("#work").is_visible()
    assert described(page) == before
    assert "went wrong" in page.locator("#message").inner_text()


def test_a_server_that_is_gone_is_reported(page):
    page.route("**/samples/*", lambda route: route.abort())
    page.locator("#sample-list button").first.click()
    page.wait_for_selector("#message:not([hidden])")
    assert "cannot be reached" in page.locator("#message").inner_text()
    page.route("**/v1/translate", lambda route: route.abort())
    page.click("#tab-translate")
    page.fill("#source", "the dog")
    page.keyboard.press("Enter")
    page.wait_for_selector("#message:not([hidden])")
    assert not page.locator("#translate-json").is_visible()


def test_a_new_caption_pins_no_word(page):
    upload(page, TWO)
    page.locator(".caption .word").first.click()
    assert page.locator(".word[aria-pressed=true]").count() == 1
    page.fill("#prefix", words(page)[0])
    with page.expect_response("**/v1/describe"):
        page.keyboard.press("Enter")
    described(page)
    assert page.locator(".word[aria-pressed=true]").count() == 0
