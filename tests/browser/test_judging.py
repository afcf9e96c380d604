"""`sightline judge` in a browser: by keys, by mouse, on a phone and in the dark."""

import json
import re
import subprocess
import sys

import pytest
from PIL import Image
from serving import address_once_ready
from steps import wait_for

from shape_pictures import draw
from sightline.metrics.judgements import read_judgements, shares

OPTIONS = ["--data=data.jsonl", "--port=0"]
SHAPES = [("red", "square"), ("blue", "circle"), ("green", "triangle")]


@pytest.fixture
def judging(a_browser_is_there, cli_environment, tmp_path):
    """The page's address and the file of judgements, for captions that say "machine"."""
    rows, captions = [], []
    for seed, (colour, shape) in enumerate(SHAPES):
        draw(colour, shape, seed).resize((320, 240), Image.Resampling.NEAREST).save(
            tmp_path / f"{shape}.png"
        )
        targets = [f"A {colour} {shape} by a person.", f"One {colour} {shape} by a person."]
        row = {"id": shape, "image": f"{shape}.png", "targets": targets, "split": "test"}
        rows.append(json.dumps(row) + "\n")
        captions.append({"image_id": shape, "caption": f"a {colour} {shape} by a machine"})
    (tmp_path / "data.jsonl").write_text("".join(rows))
    (tmp_path / "ours.json").write_text(json.dumps(captions))
    log = tmp_path / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [sys.executable, "-m", "sightline.cli", "judge", "ours.json", *OPTIONS],
            cwd=tmp_path,
            env=cli_environment,
            stdout=out,
            stderr=out,
        )
    try:
        yield address_once_ready(process, log, path=""), tmp_path / "judgements.jsonl"
    finally:
        process.terminate()
        process.wait(60)


def begin(page, name="anna"):
    page.fill("#name", name)
    page.press("#name", "Enter")
    page.wait_for_selector("#question:not([hidden])")


def counted(page, number):
    wait_for(lambda: page.inner_text("#counted") == f"{number} of 12")


def captions(page):
    return page.locator("#captions li").all_inner_texts()


def by_machine(text):
    return "machine" in text


def test_judging_by_keys_gives_the_count_by_hand(judging, open_at):
    address, file = judging
    page = open_at(address)
    begin(page)
    for at in range(12):
        counted(page, at)
        shown = captions(page)
        if len(shown) == 1:  # takes one of three machines for a person
            page.keyboard.press("ArrowRight" if by_machine(shown[0]) and at % 2 else "1")
        elif by_machine(shown[0]):
            page.keyboard.press("ArrowLeft")
        elif by_machine(shown[1]):
            page.keyboard.press("3")
        else:
            page.keyboard.press("ArrowDown")
    page.wait_for_selector("#end:not([hidden])")
    found = {(row["measure"], row["system"]): row for row in shares(read_judgements(file))}
    assert found["M1", "ours"]["answers"] == {"better": 3, "equal": 0, "worse": 0}
    assert found["M1", "person"]["answers"] == {"better": 0, "equal": 3, "worse": 0}
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    ours = [line for line in lines if (line["kind"], line["system"]) == ("m2", "ours")]
    by_hand = sum(line["answer"] == "person" for line in ours) / len(ours)
    assert found["M2", "ours"]["share"] == by_hand
    assert found["M2", "person"]["share"] == 1


def test_going_back_reloading_and_a_second_judge(judging, open_at):
    address, file = judging
    page = open_at(address)
    begin(page)
    page.click("[data-answer=person]")
    counted(page, 1)
    first = captions(page)
    page.keyboard.press("Backspace")
    page.wait_for_selector("[data-answer=person][aria-pressed=true]")
    page.click("[data-answer=machine]")
    wait_for(lambda: captions(page) == first)
    assert [each.answer for each in read_judgements(file)] == ["machine"]
    page.reload()  # the address has the name
    page.wait_for_selector("#question:not([hidden])")
    counted(page, 1)
    assert captions(page) == first
    other = open_at(address)
    begin(other, "ben")
    counted(other, 0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_phone_everything_fits(judging, open_at, scheme):
    address, _ = judging
    page = open_at(
        address, viewport={"width": 390, "height": 844}, has_touch=True, color_scheme=scheme
    )
    begin(page)
    for _ in range(6):
        before = page.inner_text("#counted")
        page.tap("[data-answer=person]")
        wait_for(lambda before=before: page.inner_text("#counted") != before)
    page.wait_for_selector("[data-answer=equal]")
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    for button in page.locator("#choices button").all():
        box = button.bounding_box()
        assert box["height"] >= 44
        assert box["y"] + box["height"] <= 844  # no scrolling to answer
    ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (int(re.findall(r"\d+", ground)[0]) < 100) == (scheme == "dark")


def test_what_cannot_be_saved_is_said(judging, open_at):
    address, file = judging
    page = open_at(address)
    begin(page)
    page.route("**/v1/answers", lambda route: route.abort())
    shown = captions(page)
    page.keyboard.press("1")
    page.wait_for_selector("#message:not([hidden])")
    assert captions(page) == shown
    page.unroute("**/v1/answers")
    page.keyboard.press("1")
    counted(page, 1)
    assert page.locator("#message").is_hidden()
    assert len(read_judgements(file)) == 1
