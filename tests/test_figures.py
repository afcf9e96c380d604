"""Figures show what the attention says: where, of which word, in files that open anywhere."""

from __future__ import annotations

import base64
import io
import itertools
import json
import math
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageSequence

from sightline.errors import UserError
from sightline.figures import (
    animate_attention,
    compare_attention,
    draw_alignment,
    draw_attention,
    draw_curves,
    draw_surprise,
    draw_underlined,
)
from sightline.figures.attention import PANEL, panel_size
from sightline.figures.chart import Curve, chart
from sightline.figures.looks import light, looks_of, smooth_maps
from sightline.figures.underlined import sharpest_word
from sightline.types import WHOLE, Description, Layout

SVG = "{http://www.w3.org/2000/svg}"
GREY = np.full((90, 120, 3), 128, np.uint8)


def described(
    words: str, cells: list[int] | None = None, grid: tuple[int, int] = (7, 7), end: bool = True
) -> Description:
    """Each word looks at one cell (the cells in order, unless they are given)."""
    tokens = (*words.split(), *(["<end>"] if end else []))
    places = cells or list(range(len(tokens)))
    attention = np.full((len(tokens), grid[0] * grid[1]), 0.1 / (grid[0] * grid[1]), np.float32)
    for row, place in zip(attention, places, strict=False):
        row[place] += 0.9
    return Description(words, tokens, -1.0, (-0.5,) * len(tokens), attention, Layout.grid(*grid))


def photo(height: int, width: int) -> NDArray[np.uint8]:
    """A smooth picture with some grain, such as compresses like a photograph."""
    noise = np.random.default_rng(3).integers(0, 40, (height, width, 3))
    y, x = np.mgrid[:height, :width]
    base = np.stack([x * 200 / width, y * 200 / height, (x + y) * 100 / (width + height)], axis=2)
    return (base + noise).astype(np.uint8)


def panels_of(path: Path) -> list[NDArray[np.uint8]]:
    """The pictures inside an SVG, decoded."""
    panels = []
    for image in ET.parse(path).getroot().iter(f"{SVG}image"):
        kind, data = image.attrib["href"].split(";base64,")
        assert kind in ("data:image/jpeg", "data:image/png")
        panels.append(np.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")))
    return panels


def texts_of(path: Path) -> list[str]:
    return [text.text or "" for text in ET.parse(path).getroot().iter(f"{SVG}text")]


# ---------------------------------------------------------------- the map


def test_even_attention_stays_even_and_is_neither_black_nor_white() -> None:
    even = smooth_maps(np.full((1, 63), 1 / 63, np.float32), Layout.grid(7, 9))
    assert even.shape == (1, 112, 144)
    assert np.ptp(even) < 1e-3
    assert 0.2 < even.mean() < 0.8


def test_the_map_is_brightest_in_the_cell_that_was_looked_at() -> None:
    for place in (0, 24, 30, 62):
        weights = np.zeros((1, 63), np.float32)
        weights[0, place] = 1
        heat = smooth_maps(weights, Layout.grid(7, 9))[0]
        row, column = np.unravel_index(heat.argmax(), heat.shape)
        assert (row // 16, column // 16) == divmod(place, 9)
        assert heat.max() == pytest.approx(1)
        assert heat.min() == pytest.approx(0, abs=0.01)


def test_the_map_is_a_gaussian_of_the_papers_width_around_a_single_cell() -> None:
    weights = np.zeros((1, 15 * 15), np.float32)
    weights[0, 7 * 15 + 7] = 1
    heat = smooth_maps(weights, Layout.grid(15, 15))[0].astype(float)
    line = heat[heat.shape[0] // 2]
    place = np.arange(len(line)) - (len(line) - 1) / 2
    spread = np.sqrt((line * place**2).sum() / line.sum())
    # σ of the Gaussian, 20 / 224 of the side; bicubic upsampling of a cell adds little to it
    assert spread == pytest.approx(20 / 224 * len(line), rel=0.06)


def test_light_dims_where_it_did_not_look_and_whitens_where_it_did() -> None:
    heat = np.zeros((64, 64), np.float32)
    heat[:, 32:] = 1
    lit = light(GREY, heat, WHOLE)
    assert lit[:, :40].max() < 60
    assert lit[:, 80:].min() > 150


def test_nothing_outside_the_part_that_the_encoder_saw_is_lit() -> None:
    heat = np.ones((64, 64), np.float32)
    lit = light(GREY, heat, (40 / 120, 20 / 90, 100 / 120, 80 / 90))
    assert lit[25:75, 45:95].min() > 150
    assert lit[:, :30].max() < 60
    assert lit[:8].max() < 60
    assert lit[:, 112:].max() < 60


def test_pieces_of_a_word_are_one_word_and_share_their_attention() -> None:
    tokens = ("▁a", "▁snow", "board", "er", "<end>")
    attention = np.eye(5, 6, dtype=np.float32)
    looks = looks_of(
        Description("a snowboarder", tokens, 0.0, (0.0,) * 5, attention, Layout.grid(2, 3))
    )
    assert [look.word for look in looks] == ["a", "snowboarder"]
    np.testing.assert_allclose(looks[1].weights, [0, 1 / 3, 1 / 3, 1 / 3, 0, 0], rtol=1e-6)


# ---------------------------------------------------------------- panels


def test_each_word_has_a_panel_lit_where_it_looked(tmp_path: Path) -> None:
    cells = [0, 8, 24, 48, 6]  # of 7 × 7
    draw_attention(GREY, described("a dog runs home", cells), tmp_path / "figure.svg")
    panels = panels_of(tmp_path / "figure.svg")
    assert len(panels) == 5  # the picture and four words; <end> is none
    assert abs(panels[0].astype(int) - 128).max() <= 2
    for panel, cell in zip(panels[1:], cells, strict=False):
        grey = panel.mean(axis=2)
        height, width = grey.shape
        row, column = np.unravel_index(grey.argmax(), grey.shape)
        # the centre of the cell, or for a cell at the rim the rim
        assert abs(row / height - (cell // 7 + 0.5) / 7) < 0.12
        assert abs(column / width - (cell % 7 + 0.5) / 7) < 0.12
        assert grey.max() > 170
        assert grey.min() < 50


def test_an_svg_has_the_words_and_the_caption_as_text(tmp_path: Path) -> None:
    words = 'a <b>"dog"</b> & runs'
    draw_attention(GREY, described(words), tmp_path / "figure.svg")
    texts = texts_of(tmp_path / "figure.svg")
    assert texts[0] == words
    assert [text for text in texts[1:] if text] == [f"{word}(0.61)" for word in words.split()]
    assert ET.parse(tmp_path / "figure.svg").getroot().findtext(f"{SVG}title") == words
    assert "http" not in (tmp_path / "figure.svg").read_text().replace(SVG[1:-1], "")


@pytest.mark.parametrize("count", [1, 4, 11, 25])
@pytest.mark.parametrize("shape", [(240, 360), (36, 24), (3, 400)])
def test_sheets_have_good_proportions(tmp_path: Path, count: int, shape: tuple[int, int]) -> None:
    words = " ".join(["something"] * count)
    cells = [i % 49 for i in range(count + 1)]
    draw_attention(photo(*shape), described(words, cells), tmp_path / "figure.jpg")
    with Image.open(tmp_path / "figure.jpg") as image:
        aspect = image.width / image.height
        area = image.width * image.height
    assert 0.6 < aspect < 4
    width, height = panel_size(shape[1], shape[0], PANEL)
    assert (count + 1) * width * height < area < 3.3 * (count + 1) * width * height + 200_000


def test_the_sheet_is_as_large_as_its_panels_ask(tmp_path: Path) -> None:
    draw_attention(GREY, described("a dog runs"), tmp_path / "small.png", panel=60)
    draw_attention(GREY, described("a dog runs"), tmp_path / "large.png", panel=300)
    with Image.open(tmp_path / "small.png") as small, Image.open(tmp_path / "large.png") as large:
        assert 3 * small.width * small.height < large.width * large.height


def test_png_jpeg_and_svg_are_of_one_size(tmp_path: Path) -> None:
    for suffix in ("png", "jpg", "svg"):
        draw_attention(GREY, described("a dog"), tmp_path / f"f.{suffix}")
    with Image.open(tmp_path / "f.png") as png, Image.open(tmp_path / "f.jpg") as jpg:
        root = ET.parse(tmp_path / "f.svg").getroot()
        assert png.size == jpg.size == (int(root.attrib["width"]), int(root.attrib["height"]))


def test_a_picture_may_be_a_file(tmp_path: Path) -> None:
    Image.fromarray(GREY).save(tmp_path / "photo.png")
    draw_attention(tmp_path / "photo.png", described("a dog"), tmp_path / "file.png")
    draw_attention(GREY, described("a dog"), tmp_path / "array.png")
    assert (tmp_path / "file.png").read_bytes() == (tmp_path / "array.png").read_bytes()


def test_the_light_lies_on_the_part_that_the_encoder_saw(tmp_path: Path) -> None:
    whole = described("a", [24], end=False)  # the middle of 7 × 7
    for name, box in (("left", (0, 0, 0.5, 1)), ("right", (0.5, 0, 1, 1))):
        part = replace(whole, layout=Layout.grid(7, 7, box=box))
        part.figure(tmp_path / f"{name}.svg", GREY)
        panel = panels_of(tmp_path / f"{name}.svg")[1].mean(axis=2)
        column = panel.mean(axis=0).argmax() / panel.shape[1]
        assert column == pytest.approx((box[0] + box[2]) / 2, abs=0.02)


def test_a_word_of_several_tokens_has_the_probability_of_all(tmp_path: Path) -> None:
    tokens = ("▁a", "▁snow", "board")
    attention = np.full((3, 49), 1 / 49, np.float32)
    logs = (math.log(0.99), math.log(0.5), math.log(0.5))
    one = Description("a snowboard", tokens, -1.0, logs, attention, Layout.grid(7, 7))
    draw_attention(GREY, one, tmp_path / "figure.svg")
    assert texts_of(tmp_path / "figure.svg")[-2:] == ["a(0.99)", "snowboard(0.25)"]
    draw_attention(GREY, replace(one, log_probs=()), tmp_path / "figure.svg")  # not known
    assert texts_of(tmp_path / "figure.svg")[-2:] == ["a", "snowboard"]


def lines_of(path: Path) -> list[dict[str, float]]:
    lines = ET.parse(path).getroot().iter(f"{SVG}line")
    return [{k: float(v) for k, v in line.attrib.items() if k != "stroke"} for line in lines]


def test_the_word_whose_map_is_shown_is_underlined(tmp_path: Path) -> None:
    path = tmp_path / "sheet.svg"
    one, two = described("a dog runs on the long wide beach today"), described("a cat sleeps")
    draw_underlined([(GREY, one, "runs"), (photo(200, 90), two, "cat")], path)
    assert len(panels_of(path)) == 4
    under = [line for line in lines_of(path) if line["y1"] == line["y2"]][::2]
    for line, word in zip(under, ("runs", "cat"), strict=True):
        (found,) = (
            text.attrib for text in ET.parse(path).getroot().iter(f"{SVG}text") if text.text == word
        )
        assert line["x1"] == pytest.approx(float(found["x"]), abs=0.1)
        assert 2 <= line["y1"] - float(found["y"]) <= 6
        assert 20 < line["x2"] - line["x1"] < 60
    lit = panels_of(path)[1].mean(axis=2)
    row, column = np.unravel_index(lit.argmax(), lit.shape)
    assert (row / lit.shape[0], column / lit.shape[1]) == pytest.approx((0, 2.5 / 7), abs=0.1)


def test_without_a_word_the_sharpest_content_word_is_underlined(tmp_path: Path) -> None:
    one = described("a dog runs on grass", end=False)
    attention = np.full((5, 49), 1 / 49, np.float32)
    for row, weight in ((0, 1.0), (1, 0.4), (2, 0.8), (3, 0.9), (4, 0.3)):
        attention[row] = (1 - weight) / 49
        attention[row, 7] += weight
    assert sharpest_word(looks_of(replace(one, attention=attention))) == 2  # "a", "on" are not
    with pytest.raises(UserError, match="has no word 'cat'"):
        draw_underlined([(GREY, one, "cat")], tmp_path / "sheet.svg")


def test_systems_are_compared_one_under_the_other(tmp_path: Path) -> None:
    both = {"soft": described("a dog runs"), "hard": described("the dog")}
    compare_attention(GREY, both, tmp_path / "figure.svg")
    assert len(panels_of(tmp_path / "figure.svg")) == 1 + 3 + 1 + 2
    places = {
        text.text: float(text.attrib["y"])
        for text in ET.parse(tmp_path / "figure.svg").getroot().iter(f"{SVG}text")
    }
    assert places["soft"] < places["a dog runs"] < places["hard"] < places["the dog"]


# ---------------------------------------------------------------- animations


def test_a_gif_goes_word_by_word_and_ends_with_the_picture(tmp_path: Path) -> None:
    animate_attention(GREY, described("a dog runs"), tmp_path / "a.gif", side=120, steps=4)
    with Image.open(tmp_path / "a.gif") as gif:
        frames = [frame.convert("RGB") for frame in ImageSequence.Iterator(gif)]
        times = [frame.info["duration"] for frame in ImageSequence.Iterator(gif)]
    assert len(frames) == 1 + 3 * 4 + 4  # the picture, each word, and back to the picture
    assert times[-1] > times[1]
    middle = [np.asarray(frame)[50:70, 150:190].mean() for frame in frames]
    assert middle[0] == pytest.approx(128, abs=3)
    assert middle[-1] == pytest.approx(128, abs=3)
    assert max(middle[4:13]) < 60  # the words look at the first cells, not the middle


def test_the_light_moves_smoothly_between_words(tmp_path: Path) -> None:
    two = described("left right", cells=[21, 27], end=False)
    animate_attention(GREY, two, tmp_path / "a.gif", side=300, steps=4)
    with Image.open(tmp_path / "a.gif") as gif:
        frames = [np.asarray(f.convert("L"), float) for f in ImageSequence.Iterator(gif)]
    right = [frame[110:150, 290:315].mean() for frame in frames[4:9]]
    assert all(before < after - 5 for before, after in itertools.pairwise(right))


def test_a_webp_moves_too(tmp_path: Path) -> None:
    animate_attention(GREY, described("a dog"), tmp_path / "a.webp", side=64, steps=2)
    with Image.open(tmp_path / "a.webp") as moving:
        assert moving.n_frames == 1 + 2 * 2 + 2


# ---------------------------------------------------------------- alignments


def test_an_alignment_matrix_is_dark_where_the_weight_is(tmp_path: Path) -> None:
    weights = np.zeros((3, 4))
    weights[[0, 1, 2], [2, 0, 3]] = 1
    draw_alignment(
        weights,
        tmp_path / "m.svg",
        rows=["the", "red", "dog"],
        columns=["der", "rote", "Hund", "."],
    )
    (matrix,) = panels_of(tmp_path / "m.svg")
    cell = matrix.shape[0] // 3
    centres = matrix[cell // 2 :: cell, cell // 2 :: cell].mean(axis=2)
    assert centres.shape == (3, 4)
    np.testing.assert_array_equal(centres < 100, weights == 1)
    assert set(texts_of(tmp_path / "m.svg")) >= {"the", "red", "dog", "der", "rote", "Hund", "."}


def test_long_sentences_keep_their_words_legible(tmp_path: Path) -> None:
    words = [f"word{i}" for i in range(90)]
    draw_alignment(np.eye(90), tmp_path / "m.svg", rows=words, columns=words)
    root = ET.parse(tmp_path / "m.svg").getroot()
    sizes = [int(text.attrib["font-size"]) for text in root.iter(f"{SVG}text")]
    assert len(sizes) == 180
    assert min(sizes) >= 11
    heights = sorted(
        float(t.attrib["y"]) for t in root.iter(f"{SVG}text") if "transform" not in t.attrib
    )
    assert min(np.diff(heights)) >= 11


@pytest.mark.parametrize("suffix", ["png", "svg"])
def test_any_script_can_be_drawn(tmp_path: Path, suffix: str) -> None:
    rows = ["一只狗", "كلب", "כלב", "собака", "🐕‍🦺", "a\u0000b\ud800", ""]
    draw_alignment(np.eye(7), tmp_path / f"m.{suffix}", rows=rows, columns=rows, title="狗 כלב")
    draw_attention(GREY, described("一只 كلب כלב 🐕"), tmp_path / f"f.{suffix}")
    animate_attention(GREY, described("一只 كلب כלב 🐕"), tmp_path / "a.gif", side=64)
    if suffix == "svg":
        assert "كلب" in texts_of(tmp_path / "m.svg")
        assert "ab" in texts_of(tmp_path / "m.svg")


def test_a_description_draws_itself_by_its_layout(tmp_path: Path) -> None:
    described("a dog").figure(tmp_path / "grid.svg", GREY)
    assert len(panels_of(tmp_path / "grid.svg")) == 3
    described("a dog").figure(tmp_path / "grid.gif", GREY)
    words = Description(
        "der Hund",
        ("der", "Hund"),
        0.0,
        (0.0, 0.0),
        np.eye(2, dtype=np.float32),
        Layout.words(["the", "dog"]),
    )
    words.figure(tmp_path / "words.svg")
    assert set(texts_of(tmp_path / "words.svg")) >= {"der", "Hund", "the", "dog"}


def test_attention_over_time_is_dark_at_its_time(tmp_path: Path) -> None:
    times = [0.1 * i for i in range(40)]
    attention = np.zeros((2, 40), np.float32)
    attention[0, 10], attention[1, 30] = 1, 1
    spoken = Description("yes no", ("yes", "no"), 0.0, (0.0, 0.0), attention, Layout.frames(times))
    spoken.figure(tmp_path / "f.svg")
    bands = panels_of(tmp_path / "f.svg")
    assert len(bands) == 2
    for band, frame in zip(bands, (10, 30), strict=True):
        dark = band.mean(axis=(0, 2)).argmin() / band.shape[1]
        assert dark == pytest.approx((frame + 0.5) / 40, abs=0.02)
    assert {"1 s", "2 s"} <= set(texts_of(tmp_path / "f.svg"))


# ---------------------------------------------------------------- mistakes, and what holds for all


def test_what_cannot_be_drawn_is_said(tmp_path: Path) -> None:
    good = described("a dog")
    out = tmp_path / "f.png"
    blind = Description("a dog", ("a", "dog"), 0.0, (0.0, 0.0))
    with pytest.raises(UserError, match="'a dog' has no attention"):
        draw_attention(GREY, blind, out)
    with pytest.raises(UserError, match="no attention"):
        blind.figure(out, GREY)
    with pytest.raises(UserError, match="needs the picture"):
        good.figure(out)
    wrong = Description("a", ("a",), 0.0, (0.0,), np.ones((1, 9), np.float32), Layout.grid(2, 3))
    with pytest.raises(UserError, match=r"9 positions .* of 6"):
        draw_attention(GREY, wrong, out)
    short = Description(
        "a b", ("a", "b"), 0.0, (0.0,), np.ones((1, 6), np.float32), Layout.grid(2, 3)
    )
    with pytest.raises(UserError, match="one row per token"):
        draw_attention(GREY, short, out)
    spoiled = described("a dog")
    assert spoiled.attention is not None
    spoiled.attention[0, 0] = np.nan
    with pytest.raises(UserError, match="not numbers"):
        draw_attention(GREY, spoiled, out)
    for box in ((0, 0, 500, 20), (0.5, 0, 0.5, 1)):
        outside = replace(good, layout=Layout.grid(7, 7, box=box))
        with pytest.raises(UserError, match=r"box .* is not a part of the picture"):
            draw_attention(GREY, outside, out)
    with pytest.raises(UserError, match="no such file"):
        draw_attention(tmp_path / "none.jpg", good, out)
    with pytest.raises(UserError, match="does not fit 1 row words"):
        draw_alignment(np.eye(2), out, rows=["a"], columns=["a", "b"])
    with pytest.raises(UserError, match="needs the words"):
        draw_alignment(np.eye(2), out)
    with pytest.raises(UserError, match="over a grid"):
        draw_alignment(good, out)
    assert not out.exists()


def test_a_path_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    good = described("a dog")
    with pytest.raises(UserError, match=r"'\.bmp' is not one of \.png, \.svg"):
        draw_attention(GREY, good, tmp_path / "f.bmp")
    with pytest.raises(UserError, match=r"no ending"):
        draw_attention(GREY, good, tmp_path / "f")
    with pytest.raises(UserError, match=r"one of \.gif, \.webp"):
        animate_attention(GREY, good, tmp_path / "f.png")
    with pytest.raises(UserError, match=r"\.png, \.svg, .*\.gif"):
        good.figure(tmp_path / "f.tiff", GREY)
    (tmp_path / "file").write_text("")
    for name in ("f.png", "f.svg"):
        with pytest.raises(UserError, match="cannot write the figure"):
            draw_attention(GREY, good, tmp_path / "file" / name)
    (tmp_path / "folder.png").mkdir()
    with pytest.raises(UserError, match="cannot write the figure"):
        draw_attention(GREY, good, tmp_path / "folder.png")


@pytest.mark.parametrize("name", ["f.png", "f.jpg", "f.svg", "f.gif", "f.webp"])
def test_the_same_description_gives_the_same_bytes(tmp_path: Path, name: str) -> None:
    (tmp_path / "one").mkdir()
    for folder in ("one", "two"):
        described("a dog runs").figure(tmp_path / folder / name, GREY)
    assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_a_figure_of_eleven_words_takes_less_than_a_second(tmp_path: Path) -> None:
    picture, words = (
        photo(480, 640),
        described("one two three four five six seven eight nine ten eleven"),
    )
    draw_attention(picture, words, tmp_path / "warm.png")
    start = time.process_time()
    draw_attention(picture, words, tmp_path / "f.png")
    assert time.process_time() - start < 1


def test_figures_need_neither_torch_nor_matplotlib() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None; sys.modules['torch'] = None\n"
        "import numpy as np, tempfile, pathlib\n"
        "from sightline.figures import draw_alignment\n"
        "path = pathlib.Path(tempfile.mkdtemp()) / 'm.png'\n"
        "draw_alignment(np.eye(2), path, rows=['ä', 'b'], columns=['c', 'd'])\n"
        "assert path.stat().st_size > 0"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


# ---------------------------------------------------------------- surprise and curves


def test_surprise_is_drawn_as_colour(tmp_path: Path) -> None:
    sure = Description("ab", ("a", "b"), 0.0, (-0.01, -0.01))
    unsure = Description("ab", ("a", "b"), 0.0, (-6.0, -6.0))
    draw_surprise(sure, tmp_path / "sure.png")
    draw_surprise(unsure, tmp_path / "unsure.png")
    colours = []
    for name in ("sure", "unsure"):
        with Image.open(tmp_path / f"{name}.png") as image:
            top = np.asarray(image)[: image.height // 2].astype(int)
        colours.append((top[..., 0] - top[..., 2]).max())
    assert colours[0] < 20 < 150 < colours[1]


def test_curves_mark_the_lowest_loss_and_the_highest_bleu(tmp_path: Path) -> None:
    events = [
        {
            "kind": "evaluation",
            "step": s,
            "training_seconds": 60.0 * s,
            "loss": loss,
            "bleu_4": bleu,
        }
        for s, loss, bleu in ((1, 3.0, 0.1), (2, 2.0, 0.3), (3, 2.5, 0.2))
    ]
    log = tmp_path / "run" / "log.jsonl"
    log.parent.mkdir()
    log.write_text("".join(json.dumps(event) + "\n" for event in events))
    for metric, best in (("loss", "2.0000"), ("bleu_4", "30.00")):
        draw_curves([log.parent], tmp_path / "c.svg", metric)
        assert f"run: {best}" in texts_of(tmp_path / "c.svg")
    with pytest.raises(UserError, match="no evaluation of cider"):
        draw_curves([log.parent], tmp_path / "c.svg", "cider")


def test_a_chart_has_round_numbers_and_its_curves_inside_them(tmp_path: Path) -> None:
    falling = [(float(x), 9.0 / (x + 1)) for x in range(40)]
    sheet = chart([Curve(falling, "run", thick=False)], x_label="x")
    sheet.save(tmp_path / "c.svg")
    numbers = [float(text) for text in texts_of(tmp_path / "c.svg") if text[0].isdigit()]
    assert numbers == [0, 0.5, 1, 1.5, 2, 0, 10, 20, 30]  # the first tenth is far above
    ((_, top), *_, (right, low)) = sheet.polylines[0].points
    assert top == pytest.approx(sheet.lines[-1].y0)  # and drawn at the edge
    assert right == pytest.approx(sheet.lines[0].x1)
    assert top < low < sheet.lines[0].y0
    for suffix in ("png", "pdf"):
        sheet.save(tmp_path / f"c.{suffix}")
    with Image.open(tmp_path / "c.png") as image:
        colours = {colour for _, colour in image.getcolors(1 << 20) or ()}
    assert sheet.polylines[0].colour in colours
