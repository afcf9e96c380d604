"""The panels that take a text or points: their answers, examples, limits and links, and /docs."""

import json
import os
import re

import pytest
from small import train_parser, train_reader
from tests.serve.live_server import running
from tests.small_models import save_classifier, save_pointer

import sightline
from sightline.serve.models import load_models

SENTENCE = "the dog sees a cat in the garden ."
PLACES = ((0.2, 0.2), (0.8, 0.3), (0.7, 0.8), (0.3, 0.7), (0.5, 0.5))


@pytest.fixture(scope="module")
def folders(a_browser_is_there, tmp_path_factory):
    """A parser and a reader of stories trained in seconds; a classifier and pointers that are not
    trained; what ships for the rest."""
    folder = tmp_path_factory.mktemp("panels")
    return {
        "classes": save_classifier(folder / "classes"),
        "parser": train_parser(folder / "trees"),
        "hull": save_pointer(folder / "hull"),
        "triangles": save_pointer(folder / "triangles", "delaunay"),
        "numbers": save_pointer(folder / "numbers", "sort"),
        "stories": train_reader(folder / "stories"),
        "en-de": "en-de",
        "shakespeare": "shakespeare",
    }


@pytest.fixture(scope="module")
def address(folders):
    with running(load_models([f"{name}={folder}" for name, folder in folders.items()])) as server:
        yield f"{server.url}/"


@pytest.fixture
def opened(open_at, address):
    """`opened(task, **options)`: the page with a task's panel in front."""

    def at(task, **options):
        page = open_at(address, **options)
        page.click(f"#tab-{task}")
        return page

    return at


def shot(page, name):
    if folder := os.environ.get("SIGHTLINE_PANEL_SHOTS"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def answered(page, task):
    page.wait_for_selector(f"#panel-{task} .save:not([hidden])")


def saved(page, button):
    with page.expect_download() as download:
        page.click(button)
    return download.value.path().read_text()


# ---------------------------------------------------------------- each panel's answers


def test_a_sentence_is_classified(opened):
    page = opened("classify")
    page.fill("#classify-text", "the dog runs")
    page.keyboard.press("Enter")
    answered(page, "classify")
    assert page.locator("#classify-words span").all_inner_texts() == ["the", "dog", "runs"]
    shares = page.locator("#classify-classes .share").all_inner_texts()
    numbers = [float(share.removesuffix(" %")) for share in shares]
    assert numbers == sorted(numbers, reverse=True)
    assert sum(numbers) == pytest.approx(100, abs=0.5)
    page.click("#panel-classify .about summary")
    limits = page.locator("#panel-classify .about").inner_text()
    assert "3 classes (animals, furniture, none of these)" in limits  # it has no card
    shot(page, "classes")


def test_a_sentence_is_parsed_and_each_phrase_shows_where_it_looked(opened, folders):
    page = opened("parse")
    page.fill("#parse-text", SENTENCE)
    page.keyboard.press("Enter")
    answered(page, "parse")
    found = sightline.load(folders["parser"]).describe(SENTENCE, beam=2, n_best=2)
    assert saved(page, "#parse-brackets").strip() == found.text
    assert page.locator(".phrases .text").all_inner_texts() == SENTENCE.split()
    labels = page.locator(".phrase > button")
    assert labels.all_inner_texts() == re.findall(r"\((\S+) (?=\()", found.text)
    shades = "all => all.map(one => Number(one.style.getPropertyValue('--looked')))"
    labels.first.hover()  # S, which the first step opened
    looked = page.locator(".phrases .text").evaluate_all(shades)
    weights = found.attention[0]  # nearly even ones stay pale
    assert looked == pytest.approx(list(weights / max(weights.max(), 2 / len(weights))), abs=1e-3)
    labels.first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.ariaLabel") == "NP: the dog"
    other = page.locator("#parsed .others li").first.inner_text()
    assert other.startswith(found.alternatives[0].text)
    shot(page, "tree")


def test_a_question_is_answered_from_the_facts_that_were_read(opened, folders):
    page = opened("answer")
    story = "Mary went to the garden.\nJohn moved to the kitchen.\nMary travelled to the office."
    page.fill("#story", story)
    page.fill("#question", "Where is John?")
    page.keyboard.press("Enter")
    answered(page, "answer")
    found = sightline.load(folders["stories"]).describe(f"{story}\nWhere is John?")
    assert page.locator("#said").inner_text() == found.text == "kitchen"
    assert page.locator("#hops th[scope=row]").all_inner_texts() == story.split("\n")
    heads = page.locator("#hops th[scope=col]").all_inner_texts()
    assert heads == ["look 1", "look 2"]
    shades = "all => all.map(one => Number(one.style.getPropertyValue('--looked')))"
    cells = page.locator("#hops .weight").evaluate_all(shades)
    weights = [hop[fact] for fact in range(3) for hop in found.attention]
    assert cells == pytest.approx(weights, abs=1e-3)
    assert cells[2] == max(cells[0::2])  # the first look reads John's fact the most
    shot(page, "story")
    page.fill("#question", "")
    page.click("#answer-form .primary")
    assert page.evaluate("document.activeElement.id") == "question"


def test_a_text_is_continued_and_another_one_comes_the_next_time(opened):
    page = opened("language_model")
    texts = []
    page.select_option("#length", "100")
    for seed in (0, 1):
        page.fill("#prompt", "ROMEO:\n")
        page.click("#language_model-form .primary")
        answered(page, "language_model")
        texts.append(json.loads(saved(page, "#language_model-json"))["text"])
        expected = sightline.load("shakespeare").describe("ROMEO:\n", length=100, seed=seed)
        assert page.locator("#written").text_content() == texts[-1] == expected.text
    assert texts[0] != texts[1]
    assert page.locator("#written .given").text_content() == "ROMEO:\n"
    assert page.locator("#written .piece").count() == 100
    shot(page, "writing")


def click_at(page, x, y):
    plane = page.locator("#point-plane")
    box = plane.bounding_box()
    plane.click(position={"x": x * box["width"], "y": y * box["height"]})


def test_points_are_placed_moved_removed_and_pointed_at(opened):
    page = opened("point")
    plane = page.locator("#point-plane")
    dots = plane.locator("circle:not(.likely)")
    assert dots.count() == 10  # drawn at random
    page.click("#point-clear")
    page.click("#point-run")
    assert "Place some points" in page.locator("#message").inner_text()
    for place in PLACES:
        click_at(page, *place)
    assert plane.locator("text").all_text_contents() == [*"01234"]
    click_at(page, 0.9, 0.9)
    click_at(page, 0.9, 0.9)  # the same again: it is removed
    assert dots.count() == 5
    box = plane.bounding_box()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.6 * box["width"], box["y"] + 0.55 * box["height"], steps=5)
    page.mouse.up()
    assert dots.count() == 5
    assert float(dots.nth(4).get_attribute("cx")) == pytest.approx(60, abs=0.5)
    for name in ("hull", "triangles"):
        page.select_option("#point-model", name)
        page.click("#point-run")
        answered(page, "point")
        found = page.locator("#point-found .word").all_inner_texts()
        assert len(found) >= 3
        assert set(found) <= set("01234")
        first = plane.locator("polyline").first.get_attribute("points").split()
        assert first[0] == first[-1]  # closed
        page.locator("#point-found .word").nth(1).hover()
        assert plane.locator(".likely").count() >= 1
        shot(page, name)
    click_at(page, 0.1, 0.9)
    assert not page.locator("#point-found").is_visible()  # it was about other points


def test_points_are_placed_with_keys_and_numbers_are_sorted(opened):
    page = opened("point")
    page.click("#point-clear")
    page.locator("#point-plane").focus()
    for key in ("ArrowLeft", "ArrowLeft", "Space", "ArrowRight", "Shift+ArrowUp", "Space"):
        page.keyboard.press(key)
    dots = page.locator("#point-plane circle")
    places = [
        (float(dot.get_attribute("cx")), float(dot.get_attribute("cy"))) for dot in dots.all()
    ]
    assert places == [(45, 50), (50, 49)]
    page.keyboard.press("Backspace")
    assert dots.count() == 1
    for key in ("ArrowLeft", "ArrowLeft", "Space"):
        page.keyboard.press(key)
    page.select_option("#point-model", "numbers")
    page.click("#point-run")
    answered(page, "point")
    assert sorted(page.locator("#point-found .word").all_inner_texts()) == ["0", "1"]
    assert {dot.get_attribute("cy") for dot in dots.all()} == {"50"}  # on one line


def test_one_can_watch_it_point(opened):
    page = opened("point", reduced_motion="no-preference")
    page.click("#point-run")
    page.wait_for_selector("#point-found .word.lit")  # at once, and it ends by itself
    assert page.locator("#point-play").inner_text() == "Stop"
    page.wait_for_selector("#point-found:not(:has(.lit))")
    assert page.locator("#point-play").inner_text() == "Watch it point"
    page.click("#point-play")
    page.wait_for_selector("#point-found .word:nth-of-type(2).lit")
    page.click("#point-play")
    assert page.locator("#point-found .lit").count() == 0


# ---------------------------------------------------------------- what all of them have


TASKS = ("classify", "parse", "point", "answer", "language_model", "translate")


def test_every_panel_has_examples_that_answer_and_says_its_limits(opened):
    page = opened("translate")
    for task in TASKS:
        page.click(f"#tab-{task}")
        page.locator(f"#panel-{task} .examples button").last.click()
        answered(page, task)
        assert not page.locator("#message").is_visible()
        about = page.locator(f"#panel-{task} .about")
        about.locator("summary").click()
        assert "Limits. " in about.inner_text()
    assert "English of 1600" in page.locator("#panel-language_model .about").inner_text()
    assert "5 to 10 points" in page.locator("#panel-point .about").inner_text()
    aligned = page.locator(".aligned .source .word").all_inner_texts()
    assert aligned[:4] == ["Where", "is", "the", "station?"] or "station" in " ".join(aligned)
    assert not page.locator("#translate-search").is_visible()  # sentences are searched one by one


@pytest.mark.parametrize(
    ("task", "fill", "result"),
    [
        ("translate", {"#source": "A dog runs & jumps?"}, ".aligned .target"),
        ("answer", {"#story": "Mary went to the garden.", "#question": "Where is Mary?"}, "#said"),
        ("language_model", {"#prompt": "To be, "}, "#written"),
        ("point", {}, "#point-found"),
    ],
)
def test_a_link_restores_what_was_asked_and_the_server_keeps_nothing(
    opened, open_at, address, task, fill, result
):
    page = opened(task)
    for field, text in fill.items():
        page.fill(field, text)
    page.click(f"#panel-{task} .primary")
    answered(page, task)
    said = page.locator(result).text_content()
    page.click(f"#{task}-link")
    page.wait_for_selector(f"#{task}-link:not(:text('Copy a link'))")
    link = page.url
    assert link.startswith(f"{address}#{task}?model=")
    sent = []
    other = open_at(address)
    other.on("request", lambda request: sent.append(request.url))
    other.goto(link)
    answered(other, task)
    assert other.locator(f"#tab-{task}").get_attribute("aria-selected") == "true"
    assert other.locator(result).text_content() == said
    for field, text in fill.items():
        assert other.input_value(field) == text
    assert not [url for url in sent if "?" in url.partition("#")[0]]


def test_a_link_with_nonsense_opens_the_page_all_the_same(open_at, address):
    for fragment in ("#point?points=a,b;9,9;0.5,0.5&model=none", "#no-such?x=1", "#parse?%%%"):
        page = open_at(f"{address}{fragment}")
        assert page.locator("[role=tab][aria-selected=true]").count() == 1
    page = open_at(f"{address}#point?points=a,b;9,9;0.5,0.5&model=none")
    answered(page, "point")
    assert page.locator("#point-found .word").all_inner_texts() == ["0"]


@pytest.mark.parametrize("task", TASKS)
def test_every_panel_is_legible_in_the_dark_on_a_phone(opened, task):
    page = opened(task, color_scheme="dark", viewport={"width": 360, "height": 740})
    page.locator(f"#panel-{task} .examples button").first.click()
    answered(page, task)
    shot(page, f"{task}-dark-phone")
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    session = page.context.new_cdp_session(page)
    nodes = session.send("Accessibility.getFullAXTree")["nodes"]
    roles = ("button", "textbox", "combobox", "spinbutton", "tab", "application")
    named = [
        (node["role"]["value"], node.get("name", {}).get("value", "").strip())
        for node in nodes
        if not node["ignored"] and node["role"]["value"] in roles
    ]
    assert [role for role, name in named if not name] == []


# ---------------------------------------------------------------- the search, and the API's page


def test_the_whole_search_is_drawn(open_at):
    """Also with a large beam: no row is cut off."""
    with running(load_models(["default"])) as server:
        page = open_at(f"{server.url}/#caption?sample=dogs.jpg&beam=20&prefix=two")
        page.wait_for_selector(".look[aria-busy=false] .others li")
        assert page.input_value("#beam") == "20"
        assert page.locator(".caption .word").first.inner_text() == "two"
        inside, whole, last = page.locator("#tree").evaluate(
            """tree => {
                const texts = [...tree.querySelectorAll('text')];
                const bottoms = texts.map(text => text.getBoundingClientRect().bottom);
                const {top} = tree.getBoundingClientRect();
                return [tree.clientHeight, tree.scrollHeight, Math.max(...bottoms) - top];
            }"""
        )
        assert whole == inside >= last > 600
        page.click("#link")
        assert "sample=dogs.jpg" in page.url
        assert page.locator("#about").inner_text()
        shot(page, "large-beam")


def test_the_api_is_described_and_can_be_tried(open_at, address):
    page = open_at(f"{address}docs")
    assert page.locator("#index a").count() > 10
    trial = page.locator("#post-v1-translate")
    assert "at most 2000 characters" in trial.inner_text()
    trial.locator("summary").last.click()
    trial.locator("textarea").fill(json.dumps({"text": "A dog runs."}))
    trial.get_by_role("button", name="Send").click()
    page.wait_for_selector("#post-v1-translate pre:text('200')")
    assert '"text": ' in trial.locator("pre").last.inner_text()
    shot(page, "docs")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
