"""Show, Attend and Tell's recipes: the same for each of its sets, tried on tiny ones."""

import json
from dataclasses import asdict
from pathlib import Path

import pytest
from rich.console import Console

torch = pytest.importorskip("torch", reason="the train extra is not installed")

from safetensors.torch import save_file  # noqa: E402

import sightline  # noqa: E402
from sightline.commands.recipes import find_recipe  # noqa: E402
from sightline.data.converters.published import coco, flickr30k  # noqa: E402
from sightline.data.manifest import write_manifest  # noqa: E402
from sightline.nn.encoders.image import build_encoder  # noqa: E402
from sightline.tasks import read_recipe  # noqa: E402
from sightline.tasks.caption.data import CaptionData  # noqa: E402
from sightline.training.loop import train  # noqa: E402
from test_prepare import KARPATHY_30K, coco_file, small_flickr30k  # noqa: E402

SMALL = [
    "min_count=1",
    "encoder.size=32",
    "model.embedding=6",
    "model.hidden=7",
    "model.attention.size=5",
    "search.beam=2",
    "search.max_length=4",
    "training.steps=2",
    "training.evaluate_every=2",
    "training.schedule.warmup=1",
]


@pytest.fixture(scope="module")
def vgg16(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A weight file of the published shape, with random numbers."""
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("vgg") / "vgg16.safetensors"
    save_file(build_encoder("vgg16").network.state_dict(), path)
    return path


def small_coco(folder: Path) -> Path:
    coco_file(folder / "annotations" / "captions_train2014.json", [1, 2, 3], "train2014")
    coco_file(folder / "annotations" / "captions_val2014.json", [4, 5, 6, 7, 8], "val2014")
    return folder


def small_30k(folder: Path) -> Path:
    small_flickr30k(folder)
    (folder / "dataset_flickr30k.json").write_text(json.dumps(KARPATHY_30K))
    return folder


@pytest.mark.parametrize("attention", ["soft", "hard"])
@pytest.mark.parametrize("name", ["flickr30k", "coco"])
def test_recipes_differ_only_in_data(name, attention):
    """Which data, how many steps it is worth, and the runs that bear its name."""
    mine, base = (
        read_recipe(find_recipe(Path(f"{which}-{attention}"))) for which in (name, "flickr8k")
    )
    assert mine.benchmark == name
    assert mine.training.steps > base.training.steps
    length = {key: getattr(base.training, key) for key in ("steps", "evaluate_every")}
    renamed = json.loads(json.dumps(_plain(mine)).replace(name, "flickr8k"))
    renamed["training"] |= length
    assert renamed | {"description": base.description} == _plain(base)


@pytest.mark.parametrize("attention", ["soft", "hard"])
@pytest.mark.parametrize("name", ["flickr8k", "flickr30k", "coco"])
def test_paper_recipes_do_what_the_paper_did_and_nothing_else(name, attention):
    recipe = read_recipe(find_recipe(Path(f"{name}-{attention}-paper")))
    training, loss, model = recipe.training, recipe.loss, recipe.model
    assert (loss.label_smoothing, training.ema, training.optimiser.weight_decay) == (0, 0, 0)
    assert (training.schedule.kind, training.schedule.warmup) == ("constant", 0)
    assert training.optimiser.kind == ("rmsprop" if name == "flickr8k" else "adam")
    assert (training.select, training.patience > 0) == ("bleu_4_nobp", True)
    assert (recipe.batching.kind, recipe.batching.size) == ("same_length", 64)
    assert (recipe.vocabulary, recipe.min_count, recipe.references) == (10_000, 1, 5)
    assert (recipe.encoder.mode, recipe.encoder.learning) == ("crop", "frozen")
    assert not recipe.search.words_once
    hard = attention == "hard"
    assert (model.attention.hard, model.gate) == (hard, not hard)  # β is in soft attention only
    assert bool(loss.doubly_stochastic) == (not hard)
    assert model.attention.describe == ("argmax" if hard else "expectation")


def test_captions_beyond_the_fifth_are_left_out(tmp_path, monkeypatch):
    """COCO has pictures with six and seven."""
    monkeypatch.chdir(tmp_path)
    prepared = coco(small_coco(tmp_path / "set")).examples
    write_manifest("coco.jsonl", prepared)
    overrides = [*SMALL, "encoder.name=vgg16"]
    first = read_recipe(find_recipe(Path("coco-soft-paper")), [*overrides, "references=1"])
    every = read_recipe(find_recipe(Path("coco-soft-paper")), [*overrides, "references=0"])
    train = [example for example in prepared if example.split == "train"]
    assert len(CaptionData(first).captions) == len(train)
    assert len(CaptionData(every).captions) == sum(len(each.targets) for each in train) > len(train)


def _plain(recipe):
    return json.loads(json.dumps(asdict(recipe)))


@pytest.mark.parametrize(
    ("name", "make", "read"),
    [("flickr30k", small_30k, flickr30k), ("coco", small_coco, coco)],
)
def test_soft_then_hard_train_on_a_tiny_set_in_its_own_format(
    name, make, read, vgg16, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)  # recipes name each other's runs
    write_manifest(f"{name}.jsonl", read(make(tmp_path / "set")).examples)
    soft = read_recipe(find_recipe(Path(f"{name}-soft")), [*SMALL, f"encoder.weights={vgg16}"])
    train(CaptionData(soft), f"runs/{name}-soft", console=Console(quiet=True))
    hard = read_recipe(find_recipe(Path(f"{name}-hard")), SMALL)
    outcome = train(CaptionData(hard), f"runs/{name}-hard", console=Console(quiet=True))
    assert outcome.progress.step == 2
    model = sightline.load(f"runs/{name}-hard")
    assert model.describe(CaptionData(hard).dev[0].media).attention is not None
