"""Fine-tuning: a recipe whose numbers follow from the data, on from a model that ships."""

import io
import json
import shutil
from contextlib import redirect_stderr
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from PIL import Image
from safetensors.torch import load_file

import sightline
from sightline.commands.recipes import SHIPPED
from sightline.commands.train import train
from sightline.data.manifest import Example, write_manifest
from sightline.data.vocabulary import VOCAB, Vocabulary
from sightline.errors import ConfigError, DataError
from sightline.export.write import export
from sightline.runtime.model_folder import find_model
from sightline.tasks import read_recipe
from sightline.tasks.caption import finetune
from sightline.training.checkpoint import NEW_ROWS, load_weights
from small_models import pictures, save_captioner

RECIPE = SHIPPED / "finetune.yaml"


def manifest(folder, count=12, captions=("A purple dog runs.", "The purple cat sits!")):
    examples = []
    for number, pixels in enumerate(pictures(count)):
        path = folder / f"{number}.png"
        Image.fromarray(pixels).save(path)
        split = "train" if number < count * 2 // 3 else "dev"
        examples.append(Example(str(number), split, captions, "image", path))
    write_manifest(folder / "mine.jsonl", examples)
    return folder / "mine.jsonl"


def trained(out, *overrides):
    """Run the command; what it said."""
    with redirect_stderr(io.StringIO()) as said:
        train(Path("finetune"), list(overrides), out=out)
    return said.getvalue()


@pytest.fixture(scope="module", params=[0, 3], ids=["plain", "tags"])
def tuned(request, tmp_path_factory):
    """An export, and a run that was fine-tuned from it by the command."""
    folder = tmp_path_factory.mktemp("tuned")
    export(save_captioner(folder / "first", request.param), folder / "export")
    arguments = (f"manifest={manifest(folder)}", f"training.initial={folder / 'export'}")
    more = (f"features={folder / 'features'}", "training.tensorboard=false", "model.dropout=0.1")
    more += ("training.optimiser.learning_rate=0.01", "training.select=loss")
    return folder, trained(folder / "run", *arguments, *more)


def test_it_says_what_it_chose_and_how_long_it_takes(tuned):
    folder, said = tuned
    steps = finetune.steps(8)
    assert f"training.steps: {steps} (10 epochs of 8 pictures, 16 captions)" in said
    assert "min_count: 2 (" in said
    assert "about " in said
    assert f"{steps} steps, " in said
    recipe = sightline.load(folder / "run").recipe
    assert recipe.training.steps == steps  # numbers, not `auto`
    assert recipe.model.hidden == 16  # as the first model
    assert recipe.model.dropout == 0.1  # as the command says


def test_the_tuned_model_stands_alone(tuned, tmp_path):
    folder, _ = tuned
    shutil.copytree(folder / "run", tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "initial")
    model = sightline.load(tmp_path / "run")
    before = sightline.load(folder / "export")
    picture = folder / "1.png"
    seen, same = (m.encode(m.reader.read(picture)[0]).values for m in (before, model))
    cells = 3 * 3  # the tags' vectors learn
    assert abs(seen - same)[:, :cells].max() < 1e-3 * abs(seen).max()
    export(tmp_path / "run", tmp_path / "export")
    exported = sightline.load(tmp_path / "export")
    assert exported.describe(picture).text == model.describe(picture).text


def test_words_of_the_data_follow_those_that_were_known(tuned):
    folder, _ = tuned
    known, now = (Vocabulary.load(find_model(folder / f) / VOCAB) for f in ("export", "run"))
    assert now.tokens == (*known.tokens, "purple")
    model = sightline.load(folder / "run")
    written = model.describe(folder / "0.png", prefix="a purple")
    assert written.text.startswith("a purple")


def test_it_can_be_tuned_again(tuned):
    folder, _ = tuned
    initial, features = f"training.initial={folder / 'run'}", f"features={folder / 'features'}"
    options = ("training.tensorboard=false", "training.steps=2")
    said = trained(
        folder / "again", f"manifest={folder / 'mine.jsonl'}", initial, features, *options
    )
    assert "training.steps" not in said  # given, not chosen
    assert sightline.load(folder / "again").recipe.training.steps == 2
    assert sightline.load(folder / "again").describe(folder / "0.png", prefix="a").text


def test_new_rows_begin_near_the_mean_of_the_old(tmp_path):
    from safetensors.torch import save_file

    torch.manual_seed(0)
    old, model = torch.nn.Embedding(9, 4), torch.nn.Embedding(11, 4)
    random = model.weight.detach().clone()
    save_file(old.state_dict(), tmp_path / "weights.safetensors")
    load_weights(model, tmp_path, grown=("weight",))
    assert torch.equal(model.weight[:9], old.weight)
    expected = old.weight[4:].mean(0) + NEW_ROWS * random[9:]
    torch.testing.assert_close(model.weight[9:], expected)
    assert load_file(tmp_path / "weights.safetensors")["weight"].shape == (9, 4)


# ------------------------------------------------------------------------ what is chosen


def test_more_pictures_are_seen_less_often_but_take_longer():
    sizes = [10, 40, 160, 600, 2000, 10_000]
    assert all(finetune.epochs(a) >= finetune.epochs(b) for a, b in pairwise(sizes))
    assert all(finetune.steps(a) <= finetune.steps(b) for a, b in pairwise(sizes))
    assert all(finetune.dropout(5 * a) >= finetune.dropout(5 * b) for a, b in pairwise(sizes))
    for size in sizes:
        assert 0 <= finetune.average(finetune.steps(size)) < 1


def test_the_recipe_follows_the_model_that_ships(tmp_path):
    path, said = manifest(tmp_path), []
    recipe = read_recipe(RECIPE, [f"manifest={path}"], said.append)
    shipped = read_recipe(find_model("default") / "config.yaml")
    assert recipe.model.hidden == shipped.model.hidden
    assert (recipe.encoder.name, recipe.encoder.size) == (
        shipped.encoder.name,
        shipped.encoder.size,
    )
    assert recipe.encoder.learning == "frozen"
    assert recipe.search == shipped.search
    assert len(said) == RECIPE.read_text().count("auto\n") + RECIPE.read_text().count("auto}")


@pytest.mark.parametrize(
    ("overrides", "error", "message"),
    [
        ([], DataError, "no such manifest"),
        (["manifest={}", "training.initial=en-de"], ConfigError, "a model for another task"),
        (["manifest={}", "training.initial=null"], ConfigError, "needs training.initial"),
        (["manifest={}", "training.seed=auto"], ConfigError, "expected a whole number"),
    ],
)
def test_what_cannot_be_chosen_is_an_error(tmp_path, monkeypatch, overrides, error, message):
    monkeypatch.chdir(tmp_path)
    path = manifest(tmp_path)
    with pytest.raises(error, match=message):
        read_recipe(RECIPE, [each.format(path) for each in overrides])


def test_the_benchmark_holds_a_themes_other_pictures_out(tmp_path):
    from benchmarks.finetune import select

    texts = ["a dog in the snow", "two dogs in snow", "a dog on grass", "a cat in the snow"]
    examples = [
        Example(f"{split}{n}", split, (texts[n % 4], texts[n % 4]), "image", tmp_path / "a.png")
        for split in ("train", "dev", "test")
        for n in range(24)
    ]
    write_manifest(tmp_path / "all.jsonl", examples)
    chosen = select(tmp_path / "all.jsonl", "dog,dogs+snow", 10)
    counts = {s: sum(each.split == s for each in chosen) for s in ("train", "dev", "test")}
    assert counts == {"train": 8, "dev": 2, "test": 24}
    assert all("snow" in e.targets[0] and "dog" in e.targets[0] for e in chosen)
    assert json.dumps([e.id for e in chosen]) == json.dumps(
        [e.id for e in select(tmp_path / "all.jsonl", "dog,dogs+snow", 10)]
    )
