"""A task written in one file: it is trained, resumed, evaluated, exported, described, streamed,
served and drawn by what is there already. Nothing else in Sightline knows of it.
"""

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import numpy as np
import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

import sightline
from sightline import tasks
from sightline.cli import app
from sightline.config import (
    AttentionConfig,
    DecoderConfig,
    LossConfig,
    OptimiserConfig,
    RecurrentConfig,
    SearchConfig,
    TrainingConfig,
)
from sightline.data import batching
from sightline.data.manifest import read_manifest
from sightline.data.vocabulary import BEGIN, END, SPECIALS, VOCAB, Vocabulary
from sightline.runtime.codec import Codec
from sightline.runtime.describer import Options
from sightline.runtime.partial import Partial
from sightline.tasks.spec import TaskSpec
from sightline.types import Inputs, Layout, Stream

# ---------------------------------------------------------------------- the task: spell backwards


@dataclass(frozen=True)
class BackwardsRecipe:
    manifest: str
    task: Literal["backwards"] = "backwards"
    description: str = "Words spelled backwards"
    encoder: RecurrentConfig = field(
        default_factory=lambda: RecurrentConfig(embedding=16, hidden=24)
    )
    model: DecoderConfig = field(
        default_factory=lambda: DecoderConfig(
            cell="gru", embedding=16, hidden=32, attention=AttentionConfig(size=24)
        )
    )
    loss: LossConfig = field(default_factory=LossConfig)
    search: SearchConfig = field(default_factory=lambda: SearchConfig(beam=3, max_length=12))
    training: TrainingConfig = field(
        default_factory=lambda: TrainingConfig(
            steps=300,
            evaluate_every=150,
            select="loss",
            tensorboard=False,
            optimiser=OptimiserConfig(learning_rate=1e-2),
        )
    )


@dataclass(frozen=True)
class LetterReader:
    vocab: Vocabulary
    takes: Literal["file", "text"] = "text"
    batch: int = 32

    def read(self, source, *, whole=False):
        ids = np.array(self.vocab.encode(source))
        return [Inputs(1, {"tokens": Stream.ragged([ids])}, (Layout.words(list(source)),))]


class BackwardsData:
    carries_state = False
    metrics = ("loss",)

    def __init__(self, recipe):
        self.recipe = recipe
        examples = read_manifest(recipe.manifest, medium="source")
        self.vocab = Vocabulary("char", (*SPECIALS, *"abcdefgh"))
        self.files = {VOCAB: self.vocab.to_json()}
        self.train = [e for e in examples if e.split == "train"]
        self.dev = [e for e in examples if e.split == "dev"]
        self.fingerprint = hashlib.sha256(repr(self.train).encode()).hexdigest()

    def prepare(self):
        pass

    def build_model(self):
        return build_model(self.recipe, self.vocab)

    def batch(self, examples):
        import torch

        from sightline.nn.model import Batch, pad

        reader = LetterReader(self.vocab)
        inputs = Inputs.batch([reader.read(e.source)[0] for e in examples])
        targets = [[BEGIN, *self.vocab.encode(e.targets[0]), END] for e in examples]
        return Batch(pad(targets), inputs.map(torch.from_numpy), examples[0].id)

    def epoch(self, number):
        lengths = [len(e.source) for e in self.train]
        order = batching.similar_length(lengths, 32, self.recipe.training.seed, number)
        batches = [[self.train[i] for i in rows] for rows in order]
        return Epoch(self, batches)

    def evaluate(self, model):
        loss, _ = model.loss(self.batch(self.dev))
        return {"loss": loss.nats / loss.tokens}

    def samples(self, model):
        return []


@dataclass(frozen=True)
class Epoch:
    data: BackwardsData
    batches: list

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, position):
        return self.data.batch(self.batches[position])


def build_model(recipe, vocab):
    from sightline.nn.decoder import Decoder
    from sightline.nn.encoders.text import TextEncoder
    from sightline.nn.model import EncoderDecoder
    from sightline.nn.objectives import Likelihood

    encoder = TextEncoder(recipe.encoder, len(vocab))
    decoder = Decoder(recipe.model, len(vocab), encoder.dimension)
    return EncoderDecoder(encoder, decoder, Likelihood(recipe.loss))


def vocabulary(folder):
    return Vocabulary.load(folder / VOCAB)


SPEC = TaskSpec(
    name="backwards",
    recipe=BackwardsRecipe,
    data=BackwardsData,
    model=lambda folder, recipe: build_model(recipe, vocabulary(folder)),
    reader=lambda folder, recipe, about: LetterReader(vocabulary(folder)),
    codec=lambda folder, recipe: Codec(vocabulary(folder), recipe.search),
    metrics=("wer",),
    local_paths=("manifest",),
)

# ---------------------------------------------------------------------- what it gets for nothing


@pytest.fixture(scope="module", autouse=True)
def registered():
    tasks.register(SPEC)
    yield
    tasks.unregister(SPEC.name)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("backwards")
    rng = np.random.default_rng(0)
    with open(folder / "words.jsonl", "w") as file:
        for number in range(600):
            word = "".join(rng.choice(list("abcdefgh"), size=rng.integers(2, 6)))
            split = "train" if number < 500 else "dev" if number < 550 else "test"
            line = {"id": str(number), "source": word, "targets": [word[::-1]], "split": split}
            file.write(json.dumps(line) + "\n")
    recipe = {"task": "backwards", "manifest": str(folder / "words.jsonl")}
    (folder / "backwards.yaml").write_text(json.dumps(recipe))  # JSON is YAML
    return folder


def run(*arguments):
    result = CliRunner().invoke(app, [str(argument) for argument in arguments])
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture(scope="module")
def trained(folder):
    run("train", folder / "backwards.yaml", "--out", folder / "run")
    return folder / "run"


@pytest.fixture(scope="module")
def exported(folder, trained):
    run("export", trained, folder / "export", "--check", folder / "words.jsonl")
    return folder / "export"


def weights(run_folder):
    from safetensors.numpy import load_file

    from sightline.runtime.model_folder import find_model

    return load_file(find_model(run_folder) / "weights.safetensors")


def test_it_resumes_bit_for_bit(folder, trained):
    again = folder / "again"
    run("train", folder / "backwards.yaml", "training.steps=150", "--out", again)
    run("train", folder / "backwards.yaml", "training.steps=300", "--out", again, "--resume")
    first, second = weights(trained), weights(again)
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[name], second[name]) for name in first)


def test_it_is_evaluated(folder, trained, exported):
    for model in (trained, exported):
        result = json.loads(run("evaluate", model, "--json", "--data", folder / "words.jsonl"))
        assert len(result["texts"]) == 50
        assert result["corpus"]["wer"] < 0.1


@pytest.mark.parametrize("kind", ["trained", "exported"])
def test_it_describes_and_streams(kind, request):
    model = sightline.load(request.getfixturevalue(kind))
    one = model.describe("abcd")
    assert one.text == "dcba"
    assert one.attention.shape == (4, 4)
    assert one.layout.labels == ("a", "b", "c", "d")
    many = model.describe(["abcd", "hg", "abc"], n_best=2)
    assert [d.text for d in many] == ["dcba", "gh", "cba"]
    assert all(len(d.alternatives) == 1 for d in many)
    *partial, whole = model.stream("abcd")
    assert all(isinstance(each, Partial) for each in partial)
    assert whole.text == "dcba"
    assert model.describe("abcd", prefix="dc").text.startswith("dc")
    # a search leaves <unk> out of the softmax, a given output may have it
    assert model.force(["abcd"], ["dcba"])[0].log_probs == pytest.approx(one.log_probs, abs=1e-2)
    greedy = model.describe_inputs([model.reader.read("hg")], Options(temperature=0.0))
    assert greedy[0].text == "gh"


def test_the_command_describes_it(exported):
    assert run("describe", "abcd", "--model", exported).strip() == "dcba"


def test_very_many_are_described(exported, tmp_path):
    (tmp_path / "words.txt").write_text("abcd\nhg\n")
    run(
        "describe", tmp_path / "words.txt", "--engine", "local", "--workers", 1,
        "--model", exported, "--format", "jsonl", "--output", tmp_path / "out",
    )  # fmt: skip
    (part,) = tmp_path.glob("out/*/part-00000.jsonl")
    assert [json.loads(line)["text"] for line in part.open()] == ["dcba", "gh"]


def test_it_is_drawn(exported, tmp_path):
    sightline.load(exported).describe("abcd").figure(tmp_path / "looks.png")
    assert (tmp_path / "looks.png").stat().st_size > 1000


def test_it_is_served(exported):
    from sightline.serve.app import Service
    from sightline.serve.models import load_models

    service = Service(load_models([f"toy={exported}"]))
    with TestClient(service.guard) as client:
        answer = client.post("/v1/backwards", json={"text": "abcd", "n_best": 2, "beam": 3})
        assert answer.status_code == 200, answer.text
        assert answer.json()["text"] == "dcba"
        assert answer.json()["model"] == "toy"
        streamed = client.post("/v1/backwards", json={"text": "abcd", "stream": True})
        assert "event: step" in streamed.text
        assert '"text": "dcba"' in streamed.text
        names = [model["task"] for model in client.get("/v1/models").json()["models"]]
        assert names == ["backwards"]
        assert "/v1/backwards" in client.get("/openapi.json").json()["paths"]


def test_no_file_of_the_package_knows_a_task_by_name():
    """Outside tasks/, data files aside, no task is named in code."""
    source = Path(sightline.__file__).parent
    names = tasks.task_names()
    # files of COCO and of judgements, and people's tables, have keys "caption" and "answer": these
    # are no task's name there
    formats = ("data/converters", "data/manifest.py", "metrics/files.py")
    formats += ("metrics/judgements.py", "serve/judging.py")
    for path in sorted(source.rglob("*.py")):
        if any(path.is_relative_to(source / each) for each in ("tasks", *formats)):
            continue
        text = path.read_text().replace('mode="clip"', "")  # NumPy's
        for name in names:
            assert f'"{name}"' not in text, f"{path} names the task {name}"
            assert f"tasks.{name}" not in text, f"{path} imports the task {name}"
    for path in sorted((source / "serve/page").rglob("*")):
        for name in names:
            assert f"'{name}'" not in path.read_text(), f"{path} names the task {name}"
