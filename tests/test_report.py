"""A report is one page that needs nothing else, and everything that was described is in it."""

from __future__ import annotations

import base64
import html
import io
import json
import math
import re
import shutil
import subprocess
import time
from collections import Counter
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from sightline.errors import UserError
from sightline.figures.looks import smooth_maps
from sightline.metrics import score
from sightline.report import ReportItem, Selection, write_report
from sightline.types import Description, Layout

NASTY = ("<script>alert(1)</script>", '"quoted"', "it's", "a&b", "{{cards}}", "🐕‍🦺", "كلب", "</p>")
VOID = {"meta", "link", "input", "img"}  # of HTML; those of SVG close themselves


class Page(HTMLParser):
    """What a page holds: its elements in order, and whether all were closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.words: list[list[str]] = []  # of each caption
        self.texts: dict[str, list[str]] = {}
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        self.elements.append((tag, values))
        if "cap" in values.get("class", "").split():
            self.words.append([])
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes nothing"

    def handle_data(self, data: str) -> None:
        if self.words and self.open[-2:] in (["p", "button"], ["p", "span"]):
            self.words[-1].append(data)
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)

    def of_class(self, name: str) -> list[dict[str, str]]:
        return [values for _, values in self.elements if name in values.get("class", "").split()]


def items_of(
    folder: Path, count: int, size: tuple[int, int] = (60, 80), side: int = 5
) -> list[ReportItem]:
    """Items whose CIDEr grows with their number, all with one grey picture."""
    folder.mkdir(exist_ok=True)
    picture = folder / "grey.png"
    Image.new("RGB", (size[1], size[0]), (128, 128, 128)).save(picture)
    random = np.random.default_rng(1)
    items = []
    for i in range(count):
        tokens = ("a", "dog", f"number{i}", NASTY[i % len(NASTY)], "<end>")
        attention = random.dirichlet(np.full(side * side, 0.3), len(tokens)).astype(np.float32)
        description = Description(
            " ".join(tokens[:-1]),
            tokens,
            -1.0,
            (-0.1, -0.2, -2.0, -0.7, -0.1),
            attention,
            Layout.grid(side, side),
        )
        scores = {"bleu_1": 0.5, "cider": 0.01 * i}
        items.append(
            ReportItem(
                f"item-{i}", picture, (f"reference <b>{i}</b>", "another"), description, scores
            )
        )
    return items


def metrics_of(items: list[ReportItem]) -> Any:
    return score(
        {item.id: item.description.text for item in items},
        {item.id: item.references for item in items},
        ["bleu", "cider"],
        resamples=20,
    )


def write_page(path: Path, items: list[ReportItem], **options: Any) -> Page:
    write_report(path, items, **{"title": "A report", "metrics": {}, **options})
    return Page(path.read_text(encoding="utf-8"))


EVENTS = [
    *({"kind": "train", "step": s, "time": 0.0, "loss": 5 - s / 500} for s in range(10, 1000, 10)),
    {"kind": "train", "step": 1000, "time": 0.0, "loss": math.nan, "entropy": 1.0},
    {"kind": "evaluation", "step": 500, "time": 0.0, "training_seconds": 9.0, "bleu_4": 0.173},
    {"kind": "evaluation", "step": 900, "time": 0.0, "training_seconds": 18.0, "bleu_4": 0.152},
]


def test_every_item_is_there_with_its_words_references_and_scores(tmp_path: Path) -> None:
    items = items_of(tmp_path, 20)
    page = write_page(tmp_path / "r.html", items)
    assert not page.open  # all elements are closed
    expected = Counter(tuple(item.description.text.split()) for item in items)
    assert (
        Counter(tuple(word for word in words if word.strip()) for words in page.words) == expected
    )
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    for item in items:
        assert html.escape(item.references[0]) in text
        assert f">{item.id}<" in text
    assert "<script>alert" not in text
    assert text.count("<script>") == 1


def test_the_page_asks_nothing_of_the_network(tmp_path: Path) -> None:
    items = items_of(tmp_path, 12)
    page = write_page(
        tmp_path / "r.html",
        items,
        metrics=metrics_of(items),
        curves=EVENTS,
        paper={"X": {"cider": 1}},
    )
    addresses = [
        values[name]
        for _, values in page.elements
        for name in ("src", "href", "srcset", "action", "poster", "data")
        if name in values
    ]
    assert len(addresses) >= 12
    assert all(address.startswith("data:") for address in addresses)
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert not re.search(r"https?:|@import|url\(|//\w+\.\w", text)
    assert "default-src 'none'" in text


def test_the_worst_come_first_and_a_large_evaluation_is_sampled(tmp_path: Path) -> None:
    items = items_of(tmp_path, 60)
    page = write_page(tmp_path / "r.html", items[::-1], limit=Selection(worst=10, best=5, random=4))
    cards = page.of_class("card")
    assert [card["data-group"] for card in cards].count("worst") == 10
    scores = [float(card["data-scores"].split()[1]) for card in cards]
    assert scores == sorted(scores)
    assert scores[:10] == pytest.approx([0.01 * i for i in range(10)])
    assert scores[-5:] == pytest.approx([0.01 * i for i in range(55, 60)])
    assert len(set(scores)) == len(scores) == 19
    assert "19 of 60 examples" in (tmp_path / "r.html").read_text(encoding="utf-8")
    everything = write_page(tmp_path / "all.html", items, limit=None)
    assert len(everything.of_class("card")) == 60


def test_of_an_error_rate_the_highest_is_the_worst(tmp_path: Path) -> None:
    plain = items_of(tmp_path, 5)
    items = [
        ReportItem(item.id, item.source, item.references, item.description, {"wer": 0.1 * i})
        for i, item in enumerate(plain)
    ]
    unscored = ReportItem("none", plain[0].source, (), plain[0].description, {})
    cards = write_page(tmp_path / "r.html", [unscored, *items]).of_class("card")
    assert [card["data-scores"] for card in cards] == ["0.4", "0.3", "0.2", "0.1", "0", "nan"]


def test_pictures_without_scores_keep_their_order_and_none_is_called_worst(tmp_path: Path) -> None:
    items = [replace(item, scores={}) for item in items_of(tmp_path / "pictures", 4)]
    path = tmp_path / "report.html"
    write_report(path, items[::-1], title="none", metrics={"corpus": {}})
    text = path.read_text(encoding="utf-8")
    assert "4 examples." in text
    assert "CIDEr" not in text
    assert '<select id="sort"></select>' in text  # which the page then hides
    assert re.findall(r"number(\d)<", text) == ["3", "2", "1", "0"]


def test_attention_is_stored_to_a_part_in_255(tmp_path: Path) -> None:
    (item,) = items_of(tmp_path, 1)
    (caption,) = write_page(tmp_path / "r.html", [item]).of_class("cap")
    assert caption["data-grid"] == "5 5"
    attention = item.description.attention
    assert attention is not None
    stored = np.frombuffer(base64.b64decode(caption["data-weights"]), np.uint8).reshape(4, 25)
    peaks = np.array([float(peak) for peak in caption["data-peaks"].split()])
    np.testing.assert_allclose(stored / 255 * peaks[:, None], attention[:4], atol=0.5 / 255 + 1e-4)


def test_attention_lies_on_the_part_that_the_encoder_saw(tmp_path: Path) -> None:
    (item,) = items_of(tmp_path, 1, size=(100, 200))
    layout = Layout.grid(5, 5, box=(0.28125, 0.0625, 0.71875, 0.9375))
    seen = replace(item, description=replace(item.description, layout=layout))
    page = write_page(tmp_path / "r.html", [seen])
    box = [float(part) for part in page.of_class("cap")[0]["data-box"].split()]
    assert box == pytest.approx(layout.box, abs=1e-4)


def test_the_page_smooths_attention_as_the_figures_do(tmp_path: Path) -> None:
    """The script multiplies what the page holds: the weights, and by side a matrix (16 N, N)."""
    (item,) = items_of(tmp_path, 1)
    (caption,) = write_page(tmp_path / "r.html", [item]).of_class("cap")
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    (data,) = re.findall(r"spreads \} = (\{.*\});", text)
    spread = np.frombuffer(base64.b64decode(json.loads(data)["spreads"]["5"]), "<f4").reshape(80, 5)
    peaks, low, high = (
        np.array(caption[f"data-{key}"].split(), float)[:, None, None]
        for key in ("peaks", "low", "high")
    )
    stored = np.frombuffer(base64.b64decode(caption["data-weights"]), np.uint8).reshape(4, 5, 5)
    maps = (spread @ (stored / 255 * peaks) @ spread.T - low) / (high - low)
    attention = item.description.attention
    assert attention is not None
    drawn = smooth_maps(attention[:4], Layout.grid(5, 5))
    np.testing.assert_allclose(np.clip(maps, 0, 1), drawn, atol=0.01)


def test_a_text_is_shown_with_the_words_that_each_word_looked_at(tmp_path: Path) -> None:
    layout = Layout.words(["▁the", "▁snow", "board", "<end>"])
    attention = np.array([[1, 0, 0, 0], [0, 0.25, 0.5, 0.25]], np.float32)
    described = Description("das <b>", ("▁das", "▁<b>"), 0.0, (-0.1, -0.2), attention, layout)
    plain = Description("das", ("das",), 0.0, (-0.1,))
    page = write_page(
        tmp_path / "r.html",
        [
            ReportItem("1", "the snowboard", ("ein",), described, {"sacrebleu": 38.1}),
            ReportItem("2", "no <attention>", ("ein",), plain, {"sacrebleu": 40.0}),
        ],
        metrics={"corpus": {"sacrebleu": 39.05}},
    )
    assert not page.open
    text = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<span>the</span> <span>snowboard</span>" in text
    caption, _ = page.of_class("cap")
    weights = np.frombuffer(base64.b64decode(caption["data-weights"]), np.uint8).reshape(2, 2)
    np.testing.assert_array_equal(weights, [[255, 0], [0, 255]])
    assert caption["data-peaks"] == "1 0.75"
    assert "no &lt;attention&gt;" in text
    assert "BLEU (sacreBLEU) <b>38.10</b>" in text


def test_pictures_are_small_inside_and_keep_their_proportions(tmp_path: Path) -> None:
    items = items_of(tmp_path, 1, size=(900, 450))
    page = write_page(tmp_path / "r.html", items)
    (image,) = [values for tag, values in page.elements if tag == "img"]
    kind, data = image["src"].split(";base64,")
    assert kind == "data:image/jpeg"
    with Image.open(io.BytesIO(base64.b64decode(data))) as picture:
        assert picture.size == (160, 320) == (int(image["width"]), int(image["height"]))
        assert picture.getpixel((80, 160)) == (128, 128, 128)


def test_the_scores_stand_beside_the_papers(tmp_path: Path) -> None:
    items = items_of(tmp_path, 12)
    metrics = {
        "corpus": {"bleu_4_nobp": 0.2134, "cider": 0.621},
        "intervals": {"bleu_4_nobp": [0.2051, 0.2249], "cider": [0.6, 0.65]},
        "signatures": {"bleu_4_nobp": "bleu|<no bp>"},
        "notes": ["METEOR is left out: no tables"],
    }
    paper = {"Xu et al., soft": {"bleu_4_nobp": 19.5}, "hard <x>": {"bleu_4_nobp": 21.33}}
    page = write_page(tmp_path / "r.html", items, metrics=metrics, paper=paper)
    cells = [cell for cell in page.texts["td"] if cell.strip()]
    assert cells == ["21.34", "20.51 – 22.49", "19.5", "21.33", "62.10", "60.00 – 65.00"]
    assert {"Xu et al., soft", "hard <x>", "BLEU-4 (no BP)"} <= set(page.texts["th"])
    assert "bleu|<no bp>" in page.texts["code"]
    assert "METEOR is left out: no tables" in page.texts["p"]
    dots = [float(v["cx"]) for tag, v in page.elements if tag == "circle"]
    strokes = [float(v["x1"]) for v in page.of_class("other")]
    assert strokes[0] < dots[0] < strokes[1] + 1 < dots[1]


def test_the_curves_of_the_log_are_drawn_with_their_best_marked(tmp_path: Path) -> None:
    items = items_of(tmp_path, 2)
    page = write_page(tmp_path / "r.html", items, curves=EVENTS)
    labels = [v["aria-label"] for tag, v in page.elements if tag == "svg" and "aria-label" in v]
    assert labels == ["Loss (nats)", "BLEU-4, best 17.30 at step 500"]
    thin, _ = (values["points"] for tag, values in page.elements if tag == "polyline")
    loss = [tuple(map(float, point.split(","))) for point in thin.split()]
    assert len(loss) == 99  # the one that was no number is left out
    assert loss[20][1] < loss[-1][1]  # falls: y grows downwards
    assert all(math.isfinite(x) and math.isfinite(y) for x, y in loss)
    assert "Training" not in (
        text for text in write_page(tmp_path / "none.html", items).texts["h2"]
    )


def test_a_long_log_is_drawn_with_few_points(tmp_path: Path) -> None:
    events = [{"kind": "train", "step": s, "loss": 1.0} for s in range(50_000)]
    page = write_page(tmp_path / "r.html", items_of(tmp_path, 1), curves=events)
    (line,) = [values["points"] for tag, values in page.elements if tag == "polyline"]
    assert len(line.split()) <= 240


def test_items_without_attention_or_without_a_picture_are_shown_as_they_are(tmp_path: Path) -> None:
    (item,) = items_of(tmp_path, 1)
    blind = Description("a <dog>", ("a", "<dog>", "<end>"), 0.0, (-0.1, -0.2, -0.1))
    page = write_page(
        tmp_path / "r.html",
        [
            ReportItem("blind", item.source, ("r",), blind, {"cider": 0.0}),
            ReportItem("lost", tmp_path / "no<ne>.jpg", ("r",), item.description, {"cider": 1.0}),
            ReportItem(7, item.source, (), item.description, {}),  # type: ignore[arg-type]
        ],
    )
    assert page.words[0] == ["a", "<dog>"]
    assert len(page.of_class("w")) == 8
    (lost,) = [text for text in page.texts["p"] if "no such file" in text]
    assert "no<ne>.jpg" in lost


def test_words_that_the_model_doubted_are_marked(tmp_path: Path) -> None:
    words = write_page(tmp_path / "r.html", items_of(tmp_path, 1)).of_class("w")
    assert [word["title"] for word in words] == ["p = 0.90", "p = 0.82", "p = 0.14", "p = 0.50"]
    assert ["style" in word for word in words] == [False, False, True, True]


def test_a_caption_is_one_stop_of_the_keyboard(tmp_path: Path) -> None:
    page = write_page(tmp_path / "r.html", items_of(tmp_path, 3))
    assert [word["tabindex"] for word in page.of_class("w")] == ["0", "-1", "-1", "-1"] * 3
    names = {values.get("id") for _, values in page.elements}
    for _, values in page.elements:
        if "aria-labelledby" in values:
            assert values["aria-labelledby"] in names
    assert all(values["alt"] for tag, values in page.elements if tag == "img")


def test_the_same_evaluation_gives_the_same_bytes(tmp_path: Path) -> None:
    items = items_of(tmp_path, 40)
    for name in ("one", "two"):
        write_report(
            tmp_path / f"{name}.html", items, title="t", metrics={}, limit=Selection(5, 5, 5)
        )
    assert (tmp_path / "one.html").read_bytes() == (tmp_path / "two.html").read_bytes()


def test_mistakes_are_said(tmp_path: Path) -> None:
    items = items_of(tmp_path, 2)
    with pytest.raises(UserError, match="at least one item"):
        write_report(tmp_path / "r.html", [], title="t", metrics={})
    with pytest.raises(UserError, match="sorted by 'spice'; the items' scores are bleu_1, cider"):
        write_report(tmp_path / "r.html", items, title="t", metrics={}, sort="spice")
    with pytest.raises(UserError, match=r"one of \.html"):
        write_report(tmp_path / "r.pdf", items, title="t", metrics={})
    with pytest.raises(UserError, match="cannot write"):
        write_report(tmp_path / "grey.png" / "r.html", items, title="t", metrics={})
    wrong = Description("a", ("a",), 0.0, (0.0,), np.ones((1, 9), np.float32), Layout.grid(2, 2))
    with pytest.raises(UserError, match=r"item bad: .*9 positions"):
        write_report(
            tmp_path / "r.html",
            [ReportItem("bad", items[0].source, (), wrong, {})],
            title="t",
            metrics={},
        )
    assert not (tmp_path / "r.html").exists()


def test_three_hundred_items_take_less_than_twenty_seconds_and_ten_megabytes(
    tmp_path: Path,
) -> None:
    items = items_of(tmp_path, 300, size=(240, 320), side=14)
    noise = np.random.default_rng(0).integers(0, 255, (24, 32, 3)).astype(np.uint8)
    Image.fromarray(noise).resize((320, 240), Image.Resampling.BICUBIC).save(tmp_path / "grey.png")
    start = time.process_time()
    write_report(tmp_path / "r.html", items, title="t", metrics={})
    assert time.process_time() - start < 20
    assert (tmp_path / "r.html").stat().st_size < 10_000_000


SCRIPT = """
const results = {};
const seen = () => [...gallery.children].filter(card => !card.hidden);
const visible = () => seen().map(card => card.querySelector(".id").textContent);
results.first = visible().slice(0, 3);
order.value = "best"; order.dispatchEvent(new Event("change"));
results.best = visible().slice(0, 3);
find.value = "NUMBER7 dog"; filter();
results.shown = visible();
results.count = count.textContent;
find.value = "nothing-has-this"; filter();
results.none = [visible().length, none.hidden];
find.value = ""; filter();
const card = gallery.children[0], words = card.querySelectorAll(".w");
words[0].focus();
words[0].dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true}));
results.focus = document.activeElement.textContent;
results.now = [...card.querySelectorAll(".now")].map(w => w.textContent);
const view = viewOf(card), map = view.map(1), at = map.indexOf(Math.max(...map));
const {width, height} = view.canvas;
results.peak = [Math.floor(at / width) / height, at % width / width];
results.lit = view.canvas.className;
words[1].blur();
results.left = view.canvas.className;
document.title = JSON.stringify(results);
"""


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="no chromium to open the page with")
def test_sorting_finding_and_attention_work_in_a_browser(tmp_path: Path) -> None:
    items = items_of(tmp_path, 9)
    write_report(tmp_path / "r.html", items, title="t", metrics={})
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    page = page.replace("</body>", f"<script>{SCRIPT}</script></body>")
    (tmp_path / "r.html").write_text(page, encoding="utf-8")
    shown = subprocess.run(
        [
            *("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run"),
            *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
            f"--user-data-dir={tmp_path / 'profile'}",
            *("--dump-dom", (tmp_path / "r.html").as_uri()),
        ],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    ).stdout
    title = re.search(r"<title>(.*?)</title>", shown, re.DOTALL)
    assert title is not None
    results = json.loads(html.unescape(title[1]))
    assert results["first"] == ["item-0", "item-1", "item-2"]
    assert results["best"] == ["item-8", "item-7", "item-6"]
    assert results["shown"] == ["item-7"]
    assert results["count"] == "1 example"
    assert results["none"] == [0, False]
    assert results["focus"] == "dog"
    assert results["now"] == ["dog"]
    attention = items[8].description.attention
    assert attention is not None
    row, column = divmod(int(attention[1].argmax()), 5)
    assert results["peak"] == pytest.approx([(row + 0.5) / 5, (column + 0.5) / 5], abs=0.2)
    assert (results["lit"], results["left"]) == ("seen", "")
