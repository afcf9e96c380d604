"""Several data sets in one training, each with a weight; targets of different trust."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

from sightline import config
from sightline.config import DataConfig, TrustConfig
from sightline.data import batching
from sightline.data.manifest import read_data, read_manifest, read_split, write_manifest
from sightline.errors import ConfigError, DataError
from sightline.tasks.caption.data import CaptionData
from sightline.tasks.translate.data import TranslationData
from sightline.tasks.translate.recipe import TranslateRecipe


@pytest.fixture
def folder(tmp_path):
    def write(name, rows):
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))

    write("a.jsonl", [
        *({"id": f"a{i}", "source": f"x{i} y", "targets": [f"u{i} v"]} for i in range(10)),
        {"id": "a-dev", "source": "x1 y", "targets": ["u1 v"], "split": "dev"},
    ])  # fmt: skip
    machine = {"text": "u0 w", "origin": "machine"}
    write("b.jsonl", [
        *({"id": f"b{i}", "source": f"z{i} y", "targets": [f"u{i} v", machine]} for i in range(4)),
        {"id": "b-dev", "source": "z1 y", "targets": ["u1 v"], "split": "dev"},
    ])  # fmt: skip
    return tmp_path


def recipe(folder, **changes):
    manifest = (str(folder / "a.jsonl"), DataConfig(str(folder / "b.jsonl"), 2.5))
    words = config.VocabularyConfig(kind="word")
    return TranslateRecipe(manifest, source=words, target=words, **changes)


def test_a_recipe_names_several_manifests_with_weights():
    text = "manifest: [a.jsonl, {path: b.jsonl, weight: 0.5}]\ntrust: {machine: 0.3}"
    parsed = config.parse_text(text, TranslateRecipe)
    assert parsed.manifest == ("a.jsonl", DataConfig("b.jsonl", 0.5))
    assert parsed.trust == TrustConfig(machine=0.3)
    assert config.parse_text(config.to_yaml(parsed), TranslateRecipe) == parsed
    assert config.parse_text("manifest: a.jsonl", TranslateRecipe).manifest == "a.jsonl"
    with pytest.raises(ConfigError, match=r"text:1: manifest.*weight.*more than 0"):
        config.parse_text("manifest: [{path: b.jsonl, weight: -1}]", TranslateRecipe)


def test_examples_of_all_are_read_with_their_weights(folder):
    examples = read_data(recipe(folder).manifest, medium="source")
    assert {e.id[0]: e.weight for e in examples} == {"a": 1.0, "b": 2.5}
    dev = read_split(recipe(folder).manifest, "dev", "source")
    assert [e.id for e in dev] == ["a-dev", "b-dev"]


def test_an_id_in_two_manifests_is_an_error(folder):
    twice = (str(folder / "a.jsonl"), str(folder / "a.jsonl"))
    with pytest.raises(DataError, match="'a0' is also in another manifest"):
        read_data(twice)


def test_origins_are_read_checked_and_written_back(folder):
    examples = read_manifest(folder / "b.jsonl")
    assert examples[0].targets == ("u0 v", "u0 w")
    assert examples[0].origins == ("human", "machine")
    assert read_manifest(folder / "a.jsonl")[0].origins == ()
    write_manifest(folder / "copy.jsonl", examples)
    assert read_manifest(folder / "copy.jsonl") == examples
    (folder / "bad.jsonl").write_text('{"source": "a", "targets": [{"text": "b", "origin": "me"}]}')
    with pytest.raises(DataError, match=r"bad\.jsonl:1: target 1: origin must be one of human"):
        read_manifest(folder / "bad.jsonl")


def test_examples_occur_as_often_as_their_weight_says():
    weights = [1.0, 0.5, 2.5, 3.0]
    counts = np.zeros(4)
    for epoch in range(400):
        members = batching.by_weight(weights, 1, epoch)
        assert np.array_equal(members, batching.by_weight(weights, 1, epoch))
        counts += np.bincount(members, minlength=4)
    assert counts[0] == 400
    assert counts[3] == 1200
    assert counts / 400 == pytest.approx(weights, abs=0.1)


def test_an_epoch_of_two_sets_follows_the_weights(folder):
    data = TranslationData(recipe(folder))
    members = np.concatenate(data.epoch(0).batches)
    of_b = [data.weights[i] == 2.5 for i in members]
    assert sum(not b for b in of_b) == 10  # each pair of a once
    assert 2 * 8 <= sum(of_b) <= 3 * 8  # the pairs of b, two or three times each


def test_trust_weighs_the_loss_and_0_leaves_targets_out(folder):
    without = TranslationData(recipe(folder, trust=TrustConfig(machine=0.0)))
    assert len(without.pairs) == 14
    assert set(without.trust) == {1.0}
    data = TranslationData(recipe(folder, trust=TrustConfig(machine=0.25)))
    assert sorted(set(data.trust)) == [0.25, 1.0]
    assert data.fingerprint != TranslationData(recipe(folder)).fingerprint
    torch.manual_seed(0)
    model = data.build_model().eval()
    batch = data._batch([i for i, trust in enumerate(data.trust) if data.weights[i] == 2.5], 0)
    nats, tokens = [], []
    for row in range(len(batch.targets)):
        inputs = batch.inputs.map(lambda array, row=row: array[row : row + 1])
        loss, _ = model.loss(replace(batch, targets=batch.targets[row : row + 1], inputs=inputs,
                                     weights=None))  # fmt: skip
        nats.append(loss.nats)
        tokens.append(loss.tokens)
    weights = batch.weights.numpy()
    expected = (weights * nats).sum() / (weights * tokens).sum()
    assert float(model.loss(batch)[0].total.detach()) == pytest.approx(expected, rel=1e-5)


def test_captions_of_a_picture_have_their_own_trust(shapes, tmp_path):
    _, recipe, _ = shapes
    examples = read_manifest(recipe.manifest)
    marked = [
        replace(e, origins=("human", *["machine"] * (len(e.targets) - 1))) if number % 2 else e
        for number, e in enumerate(examples)
    ]
    write_manifest(tmp_path / "marked.jsonl", marked)
    manifest, trust = str(tmp_path / "marked.jsonl"), TrustConfig(machine=0.5)
    data = CaptionData(replace(recipe, manifest=manifest, trust=trust, captions_together=True))
    batch = data.epoch(0)[0]
    weights = batch.weights.view(len(batch.items), -1).tolist()
    by_id = {example.id: example for example in marked}
    for item, row in zip(batch.items, weights, strict=True):
        origins = by_id[item].origins or ("human",) * len(by_id[item].targets)
        expected = [1.0 if origin == "human" else 0.5 for origin in origins]
        assert row[: len(expected)] == expected
