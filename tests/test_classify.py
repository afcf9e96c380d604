"""Classifying: a toy of good and bad words, trained, exported, asked and served."""

import json
import zipfile

import numpy as np
import pytest
import torch
from starlette.testclient import TestClient
from typer.testing import CliRunner

import sightline
from sightline.cli import app
from sightline.config import RecurrentConfig
from sightline.data.converters import classes
from sightline.data.manifest import read_manifest
from sightline.data.vocabulary import END, UNKNOWN
from sightline.errors import ConfigError, DataError
from sightline.metrics import score
from sightline.nn.encoders.text import TextEncoder
from sightline.tasks import build_task, read_recipe
from sightline.types import Inputs, Stream
from toy_opinions import RECIPE, sentences, train_classifier, write_manifest

TEXTS = ["A fine, LOVELY film.", "the film was dull", "zebra", "the acting was quite grey and dull"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("classes")
    write_manifest(folder / "data.jsonl")
    return folder


@pytest.fixture(scope="module")
def run(folder):
    return train_classifier(folder, "run")


@pytest.fixture(scope="module")
def exported(folder, run):
    command("export", run, folder / "export", "--check", folder / "data.jsonl")
    return folder / "export"


def command(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    if result.exit_code and result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.stdout


def test_it_learns_and_shows_its_words(run, folder):
    result = json.loads(command("evaluate", run, "--json"))
    assert result["corpus"]["accuracy"] >= 0.9
    model = sightline.load(run)
    for text, label in list(sentences(20, seed=9)):
        found = model.describe(text)
        assert found.text == label
        assert found.attention.shape == (1, len(text.split()))
        assert found.attention.sum() == pytest.approx(1, abs=1e-5)
    looked = model.describe("the film was dull")
    assert looked.layout.labels == ("the", "film", "was", "dull")
    looked.figure(folder / "looked.png")
    assert (folder / "looked.png").stat().st_size > 1000


@pytest.mark.parametrize("option", ["model.attention.kind=none", "encoder.summary=true"])
def test_mean_and_last_state(folder, option):
    model = sightline.load(train_classifier(folder, option, option, "training.steps=60"))
    found = model.describe(["the film was dull", "fine"], n_best=2)
    assert [d.text for d in found] == ["very bad", "good"]
    assert all(d.layout is None or d.layout.kind == "vector" for d in found)


def test_the_export_equals_the_run_and_a_batch_its_singles(run, exported):
    model, ours = sightline.load(run), sightline.load(exported)
    together = ours.describe(TEXTS, n_best=5)
    for text, mine, its in zip(TEXTS, together, model.describe(TEXTS, n_best=5), strict=True):
        alone = ours.describe(text, n_best=5)
        assert mine.text == its.text == alone.text
        assert mine.score == pytest.approx(its.score, abs=0.02)
        assert mine.score == pytest.approx(alone.score, abs=1e-5)
        np.testing.assert_allclose(mine.attention, its.attention, atol=0.01)
        every = [mine, *mine.alternatives]
        assert len(every) == 2  # all the classes there are
        assert sum(np.exp(each.score) for each in every) == pytest.approx(1, abs=1e-4)


def test_odd_texts(run):
    model = sightline.load(run)
    assert model.describe("").text == ""
    assert model.describe(" \t\n ").tokens == ()
    for text in ("zebra", "<end> <pad> <begin>", "?!", "dull " * 3000, "\u202e\x00dull", "🦓"):
        found = model.describe(text)
        assert found.text in ("good", "very bad")
        assert np.isfinite(found.score)
    assert len(model.describe("dull " * 3000).layout.labels) == model.recipe.longest
    assert model.describe("FILM!").layout.labels == ("film", "!")


def test_the_command(run, exported, tmp_path):
    (tmp_path / "lines.txt").write_text("the film was dull\n\na fine film\n")
    lines = command("classify", "-m", run, "-i", tmp_path / "lines.txt").split("\n")
    assert [line.rpartition(" ")[0] for line in lines] == ["very bad", "", "good", ""]
    out = command("classify", "a lovely film", "-m", run, "--words", "--n-best", "2")
    first, second, words = out.strip().split("\t")
    assert first.startswith("good 0.")
    assert second.startswith("very bad ")
    assert set(words.split()) == {"a", "lovely", "film"}
    out = json.loads(command("classify", "dull", "-m", exported, "--json", "--figure", tmp_path))
    assert out["text"] == "very bad"
    assert out["attention"] == [[1.0]]
    assert (tmp_path / "1.png").exists()
    both = command("classify", "a dull film", "-m", run, "-m", run)  # an ensemble with itself
    assert both == command("classify", "a dull film", "-m", run)
    with pytest.raises(DataError, match="--input"):
        command("classify", "-m", run)


def test_it_is_served(exported):
    from sightline.serve.app import Service
    from sightline.serve.models import load_models

    with TestClient(Service(load_models([f"toy={exported}"])).guard) as client:
        body = {"text": "a dull film", "beam": 5, "n_best": 5}
        answer = client.post("/v1/classify", json=body).json()
        assert answer["text"] == "very bad"
        assert list(answer["probabilities"]) == ["very bad", "good"]
        assert sum(answer["probabilities"].values()) == pytest.approx(1, abs=1e-4)
        assert client.post("/v1/classify", json={"text": ""}).json()["probabilities"] == {}
        assert 'id="classify-form"' in client.get("/").text


def test_wrong_data_is_refused(folder, tmp_path):
    def data(*rows):
        lines = [{"source": s, "targets": [t], "split": p} for s, t, p in rows]
        (tmp_path / "m.jsonl").write_text("\n".join(json.dumps(line) for line in lines))
        return build_task(read_recipe(RECIPE, [f"manifest={tmp_path}/m.jsonl"]))

    with pytest.raises(DataError, match="1 classes to train on"):
        data(("a b", "x", "train"), ("a b", "x", "dev"))
    with pytest.raises(DataError, match="class 'z', which"):
        data(("a b", "x", "train"), ("a b", "y", "train"), ("a", "z", "dev"))
    with pytest.raises(ConfigError, match=r"model\.head=class"):
        train_classifier(folder, "wrong", "model.head=vocabulary")


# ---------------------------------------------------------------- the parts


def test_word_dropout_reads_unknown_words_in_training_only():
    torch.manual_seed(0)
    encoder = TextEncoder(RecurrentConfig(embedding=6, hidden=5, word_dropout=0.3), 30)
    seen = []
    encoder.embed.register_forward_hook(lambda module, given, made: seen.append(given[0]))
    tokens = torch.full((200, 50), 7)
    tokens[:, -1] = END
    stream = Stream(tokens, torch.ones_like(tokens, dtype=torch.bool))
    for training in (True, False):
        encoder.train(training)(Inputs(200, {"tokens": stream}))
    trained, used = seen
    assert (trained[:, :-1] == UNKNOWN).float().mean() == pytest.approx(0.3, abs=0.02)
    assert (trained[:, -1] == END).all()  # what is no word stays
    assert used.equal(tokens)


def archive(path, **files):
    with zipfile.ZipFile(path, "w") as out:
        for name, text in files.items():
            out.writestr(f"data/{name.replace('__', '-').replace('_', '.')}", text)
    return path


def test_trec_is_prepared(tmp_path):
    lines = "DESC:manner How did serfdom develop ?\nABBR:exp What is caf\xe9 ?\n".encode("latin-1")
    path = archive(tmp_path / "qc.zip", train_txt=lines * 50, test_txt=lines)
    out = command("prepare", "trec", path, "--out", tmp_path / "trec.jsonl")
    examples = read_manifest(tmp_path / "trec.jsonl", medium="source")
    assert "102 items" in out
    assert {e.split for e in examples} == {"train", "dev", "test"}
    assert examples[1].source == "What is café ?"
    assert examples[1].targets == ("abbreviation",)
    fine = classes.trec(path, fine=True).examples
    assert fine[0].targets == ("description:manner",)
    archive(tmp_path / "bad.zip", train_txt="no class here\n", test_txt="x")
    with pytest.raises(DataError, match=r"train\.txt:1"):
        classes.trec(tmp_path / "bad.zip")


def test_polarity_and_subjectivity_are_prepared_in_folds(tmp_path):
    path = archive(
        tmp_path / "p.zip", rt__polarity_pos="good\n" * 50, rt__polarity_neg="bad\n" * 50
    )
    examples = classes.polarity(path).examples
    assert sorted(e.meta["fold"] for e in examples) == sorted([*range(10)] * 10)
    assert {e.targets for e in examples if e.source == "bad"} == {("negative",)}
    for test in range(10):
        splits = [classes.split_of_fold(e.meta["fold"], test) for e in examples]
        assert [splits.count(name) for name in ("train", "dev", "test")] == [80, 10, 10]
    with pytest.raises(DataError, match="has no quote"):
        classes.subjectivity(path)
    (tmp_path / "none.zip").write_bytes(b"no zip")
    with pytest.raises(DataError, match="cannot be read"):
        classes.polarity(tmp_path / "none.zip")


def test_accuracy_counts_texts_that_are_a_reference():
    result = score({1: "a ", 2: "b", 3: "A"}, {1: ["a"], 2: ["c", "b"], 3: ["a"]}, ["accuracy"])
    assert result["corpus"]["accuracy"] == pytest.approx(2 / 3)
    assert result["per_item"][3]["accuracy"] == 0
