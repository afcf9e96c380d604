"""Parsing: trained, exported, searched under its constraint, commanded, served and drawn."""

import json

import numpy as np
import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

import sightline
from sightline.cli import app
from sightline.data.trees import read_trees, words_of
from sightline.errors import DataError, UserError
from sightline.figures.phrases import draw_tree
from sightline.metrics import score
from sightline.tasks import build_task, read_recipe
from sightline.tasks.parse.parts import ensemble, tree_of
from toy_treebank import train_parser, write_manifest

pytest.importorskip("onnx")
ALL_OPTIONS = (
    "encoder.spelling=true", "encoder.word_dropout=0.1", "encoder.reversed=true",
    "encoder.bidirectional=false", "model.attention.kind=location", "model.attention.width=5",
    "tags=false", "training.steps=40", "training.evaluate_every=40",
)  # fmt: skip
NO_ATTENTION = (
    "encoder.summary=true", "model.attention.kind=none", "model.context=[state, every]",
    "training.steps=40", "training.evaluate_every=40",
)  # fmt: skip
ODD = ["the zebra sees unbelievable things in 1999 .", "dog", ". . .", "the " * 50, "(a) [b]"]


def run(*arguments, code=0):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == code, result.output
    return result.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("parse")
    write_manifest(folder / "toy.jsonl")
    train_parser(folder)
    train_parser(folder, "options", *ALL_OPTIONS)
    train_parser(folder, "none", *NO_ATTENTION)
    return folder


@pytest.fixture(scope="module")
def exported(folder):
    run("export", folder / "run", folder / "export", "--check", folder / "toy.jsonl")
    for name in ("options", "none"):
        run("export", folder / name, folder / f"{name}-export")
    return folder


@pytest.fixture(scope="module")
def sentences(folder):
    lines = [json.loads(line) for line in (folder / "toy.jsonl").read_text().splitlines()]
    return [line["source"] for line in lines if line["split"] == "test"]


def is_tree_over(description, sentence):
    (tree,) = read_trees(description.text)
    assert [leaf.word for leaf in tree.leaves()] == words_of(sentence)
    return tree_of(description) == tree


def test_it_learns_and_is_evaluated(folder, exported):
    data = folder / "toy.jsonl"
    for model in ("run", "export"):
        found = json.loads(run("evaluate", folder / model, "--json", "--data", data))
        assert found["corpus"]["bracket_f1"] > 0.85
        assert found["corpus"]["tag_accuracy"] > 0.98
        assert found["signatures"]["bracket_f1"].startswith("EVALB")


@pytest.mark.parametrize("name", ["run", "options", "none"])
def test_an_export_equals_its_model_and_a_batch_its_singles(exported, sentences, name):
    model = sightline.load(exported / name)
    ours = sightline.load(exported / ("export" if name == "run" else f"{name}-export"))
    some = [*sentences[:6], *ODD]
    together = ours.describe(some, n_best=2)
    for sentence, mine, its in zip(some, together, model.describe(some, n_best=2), strict=True):
        alone = ours.describe(sentence, n_best=2)
        assert mine.text == its.text == alone.text
        np.testing.assert_allclose(mine.log_probs, its.log_probs, atol=0.02)
        np.testing.assert_allclose(mine.log_probs, alone.log_probs, atol=1e-4)
        assert (mine.attention is None) == (name == "none")
        if mine.attention is not None:
            assert mine.attention.shape == (len(mine.tokens), len(words_of(sentence)))
            np.testing.assert_allclose(mine.attention, its.attention, atol=0.02)
        for each in (mine, *mine.alternatives):
            assert is_tree_over(each, sentence)


def test_untrained_models_write_trees_too(folder, sentences):
    task = build_task(read_recipe(folder / "run.yaml", ALL_OPTIONS[:7]))
    parser = task.describer(task.build_model().eval())
    for sentence, found in zip(sentences, parser.describe(sentences), strict=True):
        assert is_tree_over(found, sentence)
    drawn = parser.describe(sentences[:5], temperature=1.0, seed=3)
    assert all(is_tree_over(one, s) for one, s in zip(drawn, sentences, strict=False))


def test_normalised_tags(exported):
    found = sightline.load(exported / "options").describe("the dog sees a cat .")
    assert {leaf.label for leaf in tree_of(found).leaves()} == {"XX"}


def test_odd_input(exported):
    parser = sightline.load(exported / "export")
    for nothing in ("", "  \t "):
        assert parser.describe(nothing).text == ""
        assert tree_of(parser.describe(nothing)) is None
    with pytest.raises(UserError, match=r"a sentence of 61 words.*at most 60"):
        parser.describe("dog " * 61)
    assert "(NN dog)" in parser.describe("The dog sees a cat.").text  # capitals, cut words
    with pytest.raises(UserError, match="needs at least 9 tokens"):
        parser.describe("the dog sees a cat .", length=5)


def test_streams_end_in_the_tree(exported):
    parser = sightline.load(exported / "export")
    *steps, last = parser.stream("the dog sees a cat .")
    assert steps[0].text.startswith("(")
    assert last.text == parser.describe("the dog sees a cat .").text
    assert is_tree_over(last, "the dog sees a cat .")


def test_given_trees_are_scored_and_prefixes_held_to(exported):
    parser = sightline.load(exported / "export")
    best = parser.describe("the dog sees a cat .")
    (forced,) = parser.force(["the dog sees a cat ."], [best.text])
    assert forced.tokens == best.tokens
    assert forced.log_probs == pytest.approx(best.log_probs, abs=0.02)
    other = parser.describe("the dog sees a cat .", prefix="(S (VP")
    assert other.tokens[:2] == ("(S", "(VP")
    assert is_tree_over(other, "the dog sees a cat .")


def test_ensembles(exported, sentences):
    one = sightline.load(exported / "export")
    both = ensemble(one, sightline.load(exported / "run"))
    assert [d.text for d in both.describe(sentences[:5])] == [
        d.text for d in one.describe(sentences[:5])
    ]
    with pytest.raises(UserError, match="model 2 knows other words or labels"):
        ensemble(one, sightline.load(exported / "options"))


def test_the_command(exported, tmp_path):
    text, model = "the dog sees a cat .", exported / "export"
    brackets = run("parse", text, "--model", model).strip()
    assert brackets == sightline.load(model).describe(text).text
    assert run("parse", text, "-m", model, "--format", "linear").startswith("(S (NP DT NN )NP")
    pretty = run("parse", text, "-m", model, "--format", "pretty")
    assert read_trees(pretty) == read_trees(brackets)
    (tmp_path / "in.txt").write_text(f"{text}\n\n{text}\n")
    many = ("parse", "-i", tmp_path / "in.txt", "-m", model, "-m", exported / "run")
    assert run(*many).split("\n")[:3] == [brackets, "", brackets]
    found = json.loads(run("parse", text, "-m", model, "--format", "json", "--n-best", 2))
    assert found["trees"][0]["label"] == "S"
    assert len(found["trees"]) == 2
    run("parse", text, "-m", model, "--figure", tmp_path / "trees")
    assert (tmp_path / "trees/1.png").stat().st_size > 2000
    for wrong in ((), (text,), (text, "-m", model, "--format", "xml")):
        result = CliRunner().invoke(app, ["parse", *map(str, wrong)])
        assert isinstance(result.exception, UserError)


def test_it_is_served(exported):
    from sightline.serve.app import Service
    from sightline.serve.models import load_models

    service = Service(load_models([f"toy={exported / 'export'}"]))
    with TestClient(service.guard) as client:
        answer = client.post("/v1/parse", json={"text": "the dog sees a cat."}).json()
        assert answer["words"] == ["the", "dog", "sees", "a", "cat", "."]
        assert answer["tree"]["label"] == "S"
        assert answer["tree"]["steps"] == [0, len(answer["tokens"]) - 1]
        assert read_trees(answer["text"])[0].label == "S"
        assert client.post("/v1/parse", json={"text": ""}).status_code in (200, 400, 422)
        too_long = client.post("/v1/parse", json={"text": "dog " * 100})
        assert too_long.status_code == 422
        assert "at most 60" in too_long.text


def test_figures_name_what_is_wrong(exported, tmp_path):
    tree = tree_of(sightline.load(exported / "export").describe("the dog sees a cat ."))
    draw_tree(tree, tmp_path / "tree.svg", title="A tree")
    assert ">VP<" in (tmp_path / "tree.svg").read_text()
    with pytest.raises(UserError, match="attention over 3 places, the tree has 6"):
        draw_tree(tree, tmp_path / "tree.svg", np.ones((4, 3)))


def test_trees_over_other_words_are_refused(folder, tmp_path):
    lines = (folder / "toy.jsonl").read_text().splitlines()
    broken = json.loads(lines[2])
    broken["source"] += " more"
    (tmp_path / "toy.jsonl").write_text("\n".join([*lines[:2], json.dumps(broken)]))
    recipe = read_recipe(folder / "run.yaml", [f"manifest={tmp_path / 'toy.jsonl'}"])
    with pytest.raises(DataError, match="item 't2': the target must be one tree over the words"):
        build_task(recipe)


def test_reading_backwards_and_spelling(folder):
    """Reversed input reads the last word first; a word's spelling counts where it is unknown."""
    import torch

    recipe = read_recipe(folder / "run.yaml", ALL_OPTIONS)
    task = build_task(recipe)
    torch.manual_seed(0)
    encoder = task.build_model().encoder.eval()

    def read(text):
        inputs = task.reader.read(text)[0].map(torch.from_numpy)
        return encoder(inputs).values[0].detach()

    one, other = read("the dog sees it"), read("a dog sees it")
    torch.testing.assert_close(one[1:], other[1:])  # what came before is read later
    assert not torch.allclose(one[0], other[0])
    assert not torch.allclose(read("qzing")[0], read("qzed")[0])
    torch.testing.assert_close(read("qzed")[0], read("qzed")[0])
    encoder.train()
    torch.manual_seed(1)
    several = torch.stack([read("dog") for _ in range(60)])
    assert len(several.unique(dim=0)) == 2  # as it is, and as an unknown word


def test_scores_need_every_word(folder, exported, sentences):
    parser = sightline.load(exported / "export")
    texts = {s: parser.describe(s).text for s in sentences[:10]}
    same = score(texts, {s: [t] for s, t in texts.items()}, ["bracket_f1"], intervals=False)
    assert same["corpus"] == {"bracket_f1": 1.0}
