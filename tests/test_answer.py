"""Question answering: trained, resumed, exported, commanded, served and drawn."""

import json

import numpy as np
import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

import sightline
from sightline.cli import app
from sightline.data.converters.stories import babi
from sightline.errors import DataError, UserError
from sightline.tasks import build_task, read_recipe
from sightline.tasks.answer.parts import sentences_of, used_facts
from toy_stories import train_reader, write_manifest

pytest.importorskip("onnx")
HARD = ("model.hard=true", "loss.looks=1", "model.hops=1")
LAYERS = (
    "model.tying=layerwise", "model.encoding=words", "model.temporal=false", "model.hops=3",
    "model.linear_start=0.3", "training.steps=30", "training.evaluate_every=30",
)  # fmt: skip
GATED = ("model.gate=true", "training.steps=30", "training.evaluate_every=30")
STORY = ["Mary went to the garden.", "John moved to the kitchen.", "Mary travelled to the office."]


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("answer")
    write_manifest(folder / "toy.jsonl")
    train_reader(folder)
    train_reader(folder, "hard", *HARD)
    train_reader(folder, "layers", *LAYERS)
    train_reader(folder, "gated", *GATED, "model.tying=layerwise")
    for name in ("run", "hard", "layers", "gated"):
        run("export", folder / name, folder / f"{name}-export")
    return folder


def texts(folder):
    lines = [json.loads(line) for line in (folder / "toy.jsonl").read_text().splitlines()]
    return [line["source"] for line in lines if line["split"] == "test"]


def test_it_learns_and_is_evaluated(folder, tmp_path):
    for model in ("run", "hard", "run-export", "hard-export"):
        page = tmp_path / f"{model}.html"
        found = json.loads(
            run(
                "evaluate",
                folder / model,
                "--json",
                "--data",
                folder / "toy.jsonl",
                "--report",
                page,
            )
        )
        assert found["corpus"]["accuracy"] > 0.85, model
        assert page.stat().st_size > 10_000


@pytest.mark.parametrize("name", ["run", "hard", "layers", "gated"])
def test_an_export_equals_its_model_and_a_batch_its_singles(folder, name):
    model, ours = sightline.load(folder / name), sightline.load(folder / f"{name}-export")
    some = [*texts(folder)[:12], "Where is Mary?", "Zyx glorped to the garden. Where is Zyx?"]
    together = ours.describe(some, n_best=2)
    for text, mine, its in zip(some, together, model.describe(some, n_best=2), strict=True):
        alone = ours.describe(text, n_best=2)
        assert mine.text == its.text == alone.text != ""
        assert [o.text for o in mine.alternatives] == [o.text for o in its.alternatives]
        np.testing.assert_allclose(mine.log_probs, its.log_probs, atol=0.02)
        np.testing.assert_allclose(mine.log_probs, alone.log_probs, atol=1e-4)
        facts = len(sentences_of(text)) - 1
        assert mine.attention.shape == (model.recipe.model.hops, facts)
        np.testing.assert_allclose(mine.attention, its.attention, atol=0.01)
        if facts:
            np.testing.assert_allclose(mine.attention.sum(1), 1, atol=1e-3)
        if name == "hard" and facts:
            assert set(np.unique(mine.attention)) <= {0.0, 1.0}


def test_answers_are_right_in_capitals_too(folder, tmp_path):
    lines = [json.loads(line) for line in (folder / "toy.jsonl").read_text().splitlines()]
    loud = [line | {"targets": [t.upper() for t in line["targets"]]} for line in lines]
    (tmp_path / "loud.jsonl").write_text("\n".join(map(json.dumps, loud)))
    found = (
        json.loads(run("evaluate", folder / "run-export", "--json", "--data", data))
        for data in (folder / "toy.jsonl", tmp_path / "loud.jsonl")
    )
    one, other = (each["corpus"]["accuracy"] for each in found)
    assert one == other > 0.85


def test_attention_finds_the_fact(folder):
    found = sightline.load(folder / "hard-export").describe("\n".join([*STORY, "Where is John?"]))
    assert found.text == "kitchen"
    assert used_facts(found) == [(STORY[1], 1.0)]
    assert found.layout.kind == "facts"
    assert found.layout.labels == tuple(STORY)


@pytest.mark.parametrize("gate", [False, True])
def test_a_step_is_the_papers_equations(folder, gate):
    """The whole answer, computed from the weights in NumPy."""
    import torch

    from sightline.tasks.answer.data import build_model

    recipe = read_recipe(folder / "run.yaml", ["model.hops=3", f"model.gate={gate}"])
    task = build_task(recipe)
    torch.manual_seed(3)
    model = build_model(recipe, task.vocab).eval()
    tables = [t.weight.detach().numpy() * 5 for t in model.encoder.tables]
    for table, values in zip(model.encoder.tables, tables, strict=True):
        table.weight.data = torch.from_numpy(values)
    times = [t.detach().numpy() for t in model.encoder.times]
    d = recipe.model.size

    def encoded(sentence, table):
        ids = [i for i in task.reader.ids(sentence) if i]
        J = len(ids)
        k = np.arange(1, d + 1)
        return sum(
            ((1 - j / J) - (k / d) * (1 - 2 * j / J)) * table[i] for j, i in enumerate(ids, 1)
        )

    u = encoded("Where is Mary?", tables[0])
    for hop in range(3):
        keys, values = (
            np.stack([encoded(s, tables[hop + n]) + times[hop + n][len(STORY) - 1 - i]
                      for i, s in enumerate(STORY)])
            for n in (0, 1)
        )  # fmt: skip
        weights = np.exp(keys @ u) / np.exp(keys @ u).sum()
        if gate:
            layer = model.decoder.gate
            weight, bias = (part.detach().numpy() for part in (layer.weight, layer.bias))
            share = 1 / (1 + np.exp(-(weight @ u + bias)))
            u = (1 - share) * u + share * (weights @ values)
        else:
            u = u + weights @ values
    logits = (tables[3] @ u)[4:]
    log_probs = logits - np.log(np.exp(logits - logits.max()).sum()) - logits.max()
    found = task.describer(model).describe("\n".join([*STORY, "Where is Mary?"]))
    assert found.text == task.vocab.tokens[4 + log_probs.argmax()]
    assert found.log_probs[0] == pytest.approx(log_probs.max(), abs=1e-4)
    np.testing.assert_allclose(found.attention[2], weights, atol=1e-5)


def test_linear_start_leaves_the_softmax_out(folder):
    import torch

    recipe = read_recipe(folder / "run.yaml", ["model.linear_start=0.5", "model.hops=1"])
    task = build_task(recipe)
    torch.manual_seed(0)
    model = task.build_model()
    batch = task.batch(task.questions[:4])
    start = model.decoder.start(model.encode(batch.inputs))
    linear = model.decoder(batch.targets[:, :1], start, linear=True).weights
    soft = model.decoder(batch.targets[:, :1], start).weights
    torch.testing.assert_close(soft.sum(-1), torch.ones(4, 1))
    assert float(linear.detach().min()) < 0
    torch.testing.assert_close(torch.softmax(linear.masked_fill(soft == 0, -torch.inf), -1), soft)
    model.train()
    early, late = (model.loss(replace_progress(batch, p))[0].total.item() for p in (0.0, 0.9))
    assert early != late
    model.eval()
    early, late = (model.loss(replace_progress(batch, p))[0].total.item() for p in (0.0, 0.9))
    assert early == late


def test_looks_are_learned_after_a_linear_start(folder):
    short = (
        "training.steps=45",
        "training.evaluate_every=45",
    )  # the softmax begins in the second 20
    train_reader(folder, "late", *short, "model.linear_start=0.5", "loss.looks=0.3")
    log = [json.loads(line) for line in (folder / "late" / "log.jsonl").open()]
    steps = [line for line in log if line["kind"] == "train"]
    assert ["looks" in line for line in steps] == [False, True, True]


def replace_progress(batch, progress):
    from dataclasses import replace

    return replace(batch, progress=progress)


def test_noise_moves_the_supports_with_their_facts(folder):
    task = build_task(read_recipe(folder / "run.yaml", ["model.noise=0.9"]))
    rng = np.random.default_rng(0)
    for question in task.questions[:50]:
        batch = task.batch([question], noise=rng)
        rows = batch.inputs["facts"].values[0].numpy()
        looks = batch.inputs["looks"].values[0].tolist()
        wanted = task.reader.ids(question.sentences[question.supports[0]])
        assert rows[looks[0]].tolist() == wanted
        assert looks[1] == -1
        told = [row.tolist() for row in rows[1:] if row.any()]
        assert told == [task.reader.ids(fact) for fact in question.sentences[:-1]]
        assert len(rows) <= 1 + 8


def test_odd_input(folder):
    model = sightline.load(folder / "run-export")
    assert model.describe("").text == model.describe(" \n ?! ").text == ""
    assert model.describe("Where is Mary?").text  # no facts: the question alone
    long = " ".join(["Mary went to the garden."] * 30)
    found = model.describe(f"{long} Where is Mary?")
    assert found.attention.shape == (2, 8)  # the latest ones
    assert found.text == "garden"
    with pytest.raises(UserError, match=r"a sentence of 9 words.*at most 8"):
        model.describe("Mary went to the the the the the garden. Where is Mary?")


def test_it_streams_and_forces(folder):
    model = sightline.load(folder / "run-export")
    text = "\n".join([*STORY, "Where is Mary?"])
    *steps, last = model.stream(text)
    assert [step.text for step in steps] == ["", "office"]
    assert last.text == "office"
    forced = model.force([text, text], ["office", "Kitchen"])
    assert forced[0].log_probs[-1] == pytest.approx(last.log_probs[0], abs=1e-3)
    assert forced[1].log_probs[-1] < forced[0].log_probs[-1]


def test_the_command(folder, tmp_path):
    model = folder / "hard-export"
    facts = [part for fact in STORY for part in ("--fact", fact)]
    assert run("answer", "Where is John?", *facts, "-m", model).strip() == "kitchen"
    (tmp_path / "story.txt").write_text("\n".join(STORY))
    told = ("answer", "Where is John?", "--story", tmp_path / "story.txt", "-m", model)
    assert f"hop 1: 100% {STORY[1]}" in run(*told, "--facts")
    assert len(run(*told, "--n-best", 3).strip().split("\n")) == 3
    assert json.loads(run(*told, "--json"))["attention"] == [[0.0, 1.0, 0.0]]
    run(*told, "--figure", tmp_path / "hops.png")
    run(*told, "--figure", tmp_path / "hops.svg")
    assert ">Where is John? kitchen<" in (tmp_path / "hops.svg").read_text()
    sightline.load(model).describe("\n".join([*STORY, "Where is John?"])).figure(
        tmp_path / "also.png"
    )
    for wrong in (["answer", "Where?"], ["answer", "Where?", "-m", model, "--figure", "f.png"]):
        result = CliRunner().invoke(app, [str(each) for each in wrong])
        assert isinstance(result.exception, UserError)


def test_it_is_served(folder):
    from sightline.serve.app import Service
    from sightline.serve.models import load_models

    service = Service(load_models([f"toy={folder / 'hard-export'}"]))
    with TestClient(service.guard) as client:
        text = "\n".join([*STORY, "Where is John?"])
        said = client.post("/v1/answer", json={"text": text, "n_best": 2})
        assert said.status_code == 200, said.text
        answer = said.json()
        assert answer["text"] == "kitchen"
        assert answer["question"] == "Where is John?"
        assert answer["facts"] == STORY
        assert answer["used"] == [[STORY[1], 1.0]]
        assert client.get("/v1/models").json()["models"][0]["attention"] == "hard"
        alone = client.post("/v1/answer", json={"text": "Where is John?"})
        assert alone.status_code == 200
        assert alone.json()["facts"] == []
        assert client.get("/static/panels/answer/panel.js").status_code == 200


def test_it_resumes_bit_for_bit(folder):
    from safetensors.numpy import load_file

    from sightline.runtime.model_folder import find_model

    # a linear start would be the same share of fewer steps
    train_reader(folder, "whole", *LAYERS, "model.linear_start=0")
    again = ("train", folder / "whole.yaml", "--out", folder / "again", *LAYERS)
    run(*again, "model.linear_start=0", "training.steps=20", "training.evaluate_every=20")
    run(*again, "model.linear_start=0", "--resume")
    one, other = (
        load_file(find_model(folder / name) / "weights.safetensors") for name in ("whole", "again")
    )
    assert all(np.array_equal(one[name], other[name]) for name in one)


def test_babi_is_converted(tmp_path):
    (tmp_path / "qa1_single_train.txt").write_text(
        "1 Mary moved to the bathroom.\n2 John slept.\n3 Where is Mary? \tbathroom\t1\n"
        "4 Mary left.\n5 Where is Mary?\tout\t1 4\n1 John ran.\n2 Who ran?\tjohn\t1\n"
    )
    (tmp_path / "qa2_two_test.txt").write_text("1 A b.\n2 C?\td\t1\n")
    found = babi(tmp_path)
    first, second, third, last = found.examples
    assert first.source == "Mary moved to the bathroom.\nJohn slept.\nWhere is Mary?"
    assert first.targets == ("bathroom",)
    assert first.meta == {"task": 1, "supports": [0]}
    assert second.meta["supports"] == [0, 2]
    assert third.source == "John ran.\nWho ran?"
    assert last.split == "test"
    assert found.notes == ["task 2 has no file to train on"]
    assert len(babi(tmp_path, [2]).examples) == 1
    with pytest.raises(DataError, match="no file"):
        babi(tmp_path, [7])
    (tmp_path / "qa3_x_train.txt").write_text("1 A b.\n2 C?\td\t5\n")
    with pytest.raises(DataError, match=r"qa3_x_train.txt:2: '5' are no facts"):
        babi(tmp_path, [3])


def test_wrong_supports_are_refused(folder, tmp_path):
    lines = (folder / "toy.jsonl").read_text().splitlines()
    broken = json.loads(lines[0]) | {"meta": {"supports": [40]}}
    (tmp_path / "toy.jsonl").write_text("\n".join([json.dumps(broken), *lines[1:]]))
    recipe = read_recipe(folder / "run.yaml", [f"manifest={tmp_path / 'toy.jsonl'}"])
    with pytest.raises(DataError, match=r"item 's0': meta\.supports must list facts"):
        build_task(recipe)


@pytest.mark.slow
def test_babis_first_task_is_solved(shared_data, tmp_path):
    import tarfile

    with tarfile.open(shared_data / "babi/babi-en-1k.tar.xz") as archive:
        archive.extractall(tmp_path, filter="data")
    run("prepare", "babi", tmp_path / "en", "--task", 1, "--out", tmp_path / "qa1.jsonl")
    run("train", "babi", f"manifest={tmp_path / 'qa1.jsonl'}", "training.steps=1000",
        "training.evaluate_every=500", "--out", tmp_path / "run")  # fmt: skip
    found = json.loads(run("evaluate", tmp_path / "run", "--json"))
    assert found["corpus"]["accuracy"] > 0.97
