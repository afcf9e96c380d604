"""The panels for classes and for pointers, with untrained models."""

import os

import pytest
from tests.serve.live_server import running
from tests.small_models import save_classifier, save_pointer

from sightline.serve.models import load_models


@pytest.fixture(scope="module")
def address(a_browser_is_there, tmp_path_factory):
    folder = tmp_path_factory.mktemp("panels")
    models = os.environ.get("SIGHTLINE_PANEL_MODELS", "").split() or [
        f"classes={save_classifier(folder / 'classes')}",
        f"hull={save_pointer(folder / 'hull')}",
        f"triangles={save_pointer(folder / 'triangles', 'delaunay')}",
    ]
    with running(load_models(models)) as server:
        yield f"{server.url}/"


def shot(page, name):
    if folder := os.environ.get("SIGHTLINE_PANEL_SHOTS"):
        page.screenshot(path=f"{folder}/{name}.png")


def test_a_sentence_is_classified(open_at, address):
    page = open_at(address)
    assert page.locator("[role=tab]").all_inner_texts() == ["Classes", "Pointing"]
    page.fill("#classify-text", "the dog runs")
    page.keyboard.press("Enter")
    page.wait_for_selector("#classify-classes li")
    assert page.locator("#classify-words span").all_inner_texts() == ["the", "dog", "runs"]
    shares = page.locator("#classify-classes .share").all_inner_texts()
    numbers = [float(share.removesuffix(" %")) for share in shares]
    assert numbers == sorted(numbers, reverse=True)
    assert sum(numbers) == pytest.approx(100, abs=0.5)
    shot(page, "classes")


def test_points_are_placed_and_pointed_at(open_at, address):
    page = open_at(address)
    page.click("#tab-point")
    assert page.locator("#point-plane circle").count() == 10  # drawn at random
    page.click("#point-clear")
    page.click("#point-run")
    assert "Place some points" in page.locator("#message").inner_text()
    plane = page.locator("#point-plane")
    for x, y in ((0.2, 0.2), (0.8, 0.3), (0.7, 0.8), (0.3, 0.7), (0.5, 0.5)):
        box = plane.bounding_box()
        plane.click(position={"x": x * box["width"], "y": y * box["height"]})
    assert plane.locator("text").all_text_contents() == [*"01234"]
    for name, points in (("hull", 3), ("triangles", 3)):
        page.select_option("#point-model", name)
        page.click("#point-run")
        page.wait_for_selector("#point-found .word")
        found = page.locator("#point-found .word").all_inner_texts()
        assert len(found) >= points
        assert set(found) <= set("01234")
        first = plane.locator("polyline").first.get_attribute("points").split()
        assert first[0] == first[-1]  # closed
        page.locator("#point-found .word").nth(1).hover()
        assert plane.locator(".likely").count() >= 1
        shot(page, name)


def test_both_are_legible_in_the_dark_and_on_a_phone(open_at, address):
    page = open_at(address, color_scheme="dark", viewport={"width": 375, "height": 760})
    page.fill("#classify-text", "the dog runs")
    page.click("#classify-form button")
    page.wait_for_selector("#classify-classes li")
    shot(page, "classes-dark-phone")
    page.click("#tab-point")
    page.click("#point-run")
    page.wait_for_selector("#point-found .word")
    shot(page, "points-dark-phone")
    assert page.locator("#point-plane").bounding_box()["width"] <= 375
