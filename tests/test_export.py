"""`sightline export`: whole models of every task, and what is refused on the way back in."""

import hashlib
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import sightline
from sightline.errors import CheckpointError, DataError, UserError
from sightline.export.check import Comparison
from sightline.export.write import Check, export
from sightline.runtime.graph_check import MalformedError, RefusedError, check_graph
from sightline.runtime.model_folder import EXPORT, FORMAT, read_export
from sightline.tasks.language_model.parts import evaluate_text
from sightline.tasks.translate.alignments import align, alignment_of
from sightline.tasks.translate.parts import ensemble
from small_models import pictures, save_captioner, save_language_model, save_translator

onnx = pytest.importorskip("onnx")
SENTENCES = ["abc def", "h", "", "gfedcba " * 4]


@pytest.fixture(scope="module")
def captioner(tmp_path_factory):
    folder = tmp_path_factory.mktemp("captioner")
    save_captioner(folder / "model")
    export(folder / "model", folder / "export")
    return folder


@pytest.fixture
def broken(captioner, tmp_path):
    """A copy of an export, to be broken; `change(file, content)` keeps its hash right."""
    folder = tmp_path / "copy"
    folder.mkdir()
    for path in (captioner / "export").iterdir():
        (folder / path.name).write_bytes(path.read_bytes())

    def change(name, content):
        (folder / name).write_bytes(content)
        about = json.loads((folder / EXPORT).read_text())
        about["files"][name] = hashlib.sha256(content).hexdigest()
        (folder / EXPORT).write_text(json.dumps(about))

    return folder, change


def about(folder, **changes):
    path = folder / EXPORT
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


# ---------------------------------------------------------------------------- the same results


def test_an_exported_captioner_describes_as_the_model(captioner):
    model, ours = sightline.load(captioner / "model"), sightline.load(captioner / "export")
    seen = list(pictures(5))
    results, wanted = ours.describe(seen, n_best=3), model.describe(seen, n_best=3)
    assert len({description.text for description in wanted}) > 1
    for mine, its in zip(results, wanted, strict=True):
        assert mine.text == its.text
        assert [other.text for other in mine.alternatives] == [o.text for o in its.alternatives]
        assert mine.score == pytest.approx(its.score, abs=1e-3)
        np.testing.assert_allclose(mine.attention, its.attention, atol=2e-3)
        assert mine.layout == its.layout
    assert ours.describe(seen[3]).text == results[3].text


def test_descriptions_made_side_by_side_come_in_order(captioner, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    ours = sightline.load(captioner / "export")
    seen = list(pictures(23))
    wanted = [ours.describe(picture) for picture in seen]
    assert len({description.text for description in wanted}) > 1
    for mine, its in zip(ours.describe(seen), wanted, strict=True):
        assert mine.text == its.text
        np.testing.assert_allclose(mine.log_probs, its.log_probs, atol=1e-5)
    with pytest.raises(DataError, match="missing"):
        ours.describe([*seen, "missing.jpg", *seen])


def test_an_exported_translator_translates_and_aligns_as_the_model(tmp_path):
    model_folder = save_translator(tmp_path / "model")
    (model_folder / "lexicon.json").write_text('{"a": {"dog": 1.0}, "b": {"cat": 1.0}}')
    export(model_folder, tmp_path / "export")
    model, ours = sightline.load(model_folder), sightline.load(tmp_path / "export")
    for options in ({}, {"beam": 1}, {"n_best": 2}, {"shortlist": 3}):
        results, wanted = ours.describe(SENTENCES, **options), model.describe(SENTENCES, **options)
        assert [d.text for d in results] == [d.text for d in wanted]
        assert [len(d.alternatives) for d in results] == [len(d.alternatives) for d in wanted]
    (aligned,), (forced,) = align(ours, ["abc"], ["a dog"]), model.force(["abc"], ["a dog"])
    np.testing.assert_allclose(aligned.weights, alignment_of(model, forced).weights, atol=1e-3)
    assert ours.codec.lexicon == model.codec.lexicon != {}
    together = ensemble(ours, model)  # of both kinds
    assert together.describe("abc def").text == model.describe("abc def").text


def test_an_exported_language_model_writes_and_scores_as_the_model(tmp_path):
    model_folder = save_language_model(tmp_path / "model")
    export(model_folder, tmp_path / "export")
    model, ours = sightline.load(model_folder), sightline.load(tmp_path / "export")

    def log_probs(describer, text):
        return describer.force([""], [text])[0].log_probs

    for temperature in (0.0, 0.8):
        options = {"length": 40, "temperature": temperature, "n_best": 2, "seed": 3}
        # Draws at the edge of two tokens may fall to either side, so texts need not be the same:
        # what each writes is as likely to the other, token by token.
        for first in (ours.describe("ab", **options), model.describe("ab", **options)):
            assert len(first.alternatives) == 1
            for text in (first.text, first.alternatives[0].text):
                assert text.startswith("ab")
                theirs = log_probs(model, text)
                assert log_probs(ours, text) == pytest.approx(theirs, abs=0.02)
    *partial, last = ours.stream("a", length=9)
    assert partial[-1].text == last.text == ours.describe("a", length=9).text
    rng = np.random.default_rng(0)
    for length in (1, 40, 1500):  # the last is read in parts side by side
        text = "".join(rng.choice(list("abcdefgh \n"), length))
        theirs = evaluate_text(model, text)["loss"]
        assert evaluate_text(ours, text)["loss"] == pytest.approx(theirs, abs=1e-3)
    assert log_probs(ours, "abba") == pytest.approx(log_probs(model, "abba"), abs=1e-3)


def test_an_export_runs_where_there_is_no_torch(captioner, cli_environment):
    """Nor any other library that only training needs."""
    script = (
        "import sys, numpy\n"
        "for name in ('torch', 'onnx', 'tokenizers', 'matplotlib'): sys.modules[name] = None\n"
        "import sightline\n"
        "model = sightline.load('export')\n"
        "print(model.describe(numpy.zeros((80, 90, 3), numpy.uint8)).text)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=captioner,
        env=cli_environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    model = sightline.load(captioner / "model")
    assert done.stdout.strip() == model.describe(np.zeros((80, 90, 3), np.uint8)).text


# ---------------------------------------------------------------------------- the folder


def test_the_folder_is_whole_and_names_no_place_of_this_machine(captioner):
    folder = captioner / "export"
    assert {path.name for path in folder.iterdir()} == {
        "encoder.onnx", "start.onnx", "step.onnx",
        "config.yaml", "vocab.json", "card.md", "export.json",
    }  # fmt: skip
    for path in folder.iterdir():
        assert str(captioner).encode() not in path.read_bytes(), path.name
    listed = json.loads((folder / EXPORT).read_text())["files"]
    assert set(listed) == {path.name for path in folder.iterdir()} - {EXPORT, "card.md"}
    assert (folder / "card.md").read_text().startswith("# export\n")


def test_a_card_is_taken_along(tmp_path):
    model = save_language_model(tmp_path / "model")
    (model / "card.md").write_text("# mine\n")
    export(model, tmp_path / "export")
    assert (tmp_path / "export" / "card.md").read_text() == "# mine\n"


def test_eight_bits_are_half_the_size_and_must_be_compared(tmp_path):
    model = save_language_model(tmp_path / "model")
    (tmp_path / "held.txt").write_text("abc def gh\n" * 20)
    with pytest.raises(UserError, match="--check"):
        export(model, tmp_path / "small", "int8")
    export(model, tmp_path / "full")
    comparison = export(model, tmp_path / "small", "int8", Check(tmp_path / "held.txt"))
    before, after = comparison.scores["loss"]
    assert before != after
    assert before == pytest.approx(after, abs=0.01)
    sizes = [(tmp_path / name / "step.onnx").stat().st_size for name in ("small", "full")]
    assert sizes[0] < 0.7 * sizes[1]  # of so small a model the rest is much


@pytest.mark.parametrize(
    ("weights", "same", "scores", "good"),
    [
        ("int8", 0.9, {"cider": (60.0, 59.8), "bleu_4": (20.0, 20.5)}, True),
        ("int8", 0.9, {"cider": (60.0, 59.6), "bleu_4": (20.0, 20.0)}, False),
        ("int8", 0.9, {"cider": (60.0, 60.0), "bleu_4": (20.0, 19.7)}, False),
        ("int8", 0.9, {"sacrebleu": (35.0, 34.9)}, True),
        ("int8", 0.9, {"sacrebleu": (35.0, 34.7)}, False),
        ("int8", 1.0, {"loss": (1.4, 1.42)}, False),
        ("int16", 0.999, {"cider": (60.0, 60.04)}, True),
        ("int16", 0.999, {"cider": (60.0, 60.2)}, False),
        ("int16", 0.99, {"cider": (60.0, 60.0)}, False),
    ],
)
def test_an_export_that_lost_too_much_is_refused(weights, same, scores, good):
    comparison = Comparison(1000, same, scores)
    if good:
        comparison.require(weights)
    else:
        with pytest.raises(UserError, match="not good enough"):
            comparison.require(weights)


def test_only_an_export_is_overwritten(tmp_path):
    model = save_language_model(tmp_path / "model")
    occupied = tmp_path / "occupied"
    occupied.mkdir()
    (occupied / "thesis.txt").write_text("years of work")
    with pytest.raises(UserError, match="is no export"):
        export(model, occupied)
    assert (occupied / "thesis.txt").read_text() == "years of work"
    export(model, tmp_path / "out")
    export(model, tmp_path / "out")
    assert sightline.load(tmp_path / "out").describe("a", length=3).text
    with pytest.raises(UserError, match="is an export already"):
        export(tmp_path / "out", tmp_path / "again")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model", "occupied", "out"]


# ---------------------------------------------------------------------------- what is refused


def refused(folder, *words):
    with pytest.raises(CheckpointError) as error:
        sightline.load(folder)
    for word in words:
        assert word in str(error.value)


@pytest.mark.parametrize("name", ["encoder.onnx", "step.onnx", "vocab.json", "config.yaml"])
def test_a_changed_cut_or_missing_file_is_refused(broken, name):
    folder, _ = broken
    content = (folder / name).read_bytes()
    middle = len(content) // 2
    flipped = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    for damaged in (flipped, content[:-1], b""):
        (folder / name).write_bytes(damaged)
        refused(folder, name, "damaged or was changed")
    (folder / name).unlink()
    refused(folder, name, "is missing")


def test_a_newer_format_is_refused(broken):
    folder, _ = broken
    about(folder, format=FORMAT + 1)
    refused(folder, "newer Sightline", "upgrade")


def test_an_older_format_is_refused(broken):
    folder, _ = broken
    about(folder, format=FORMAT - 1)
    refused(folder, "older Sightline", "make it anew")


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"format": "1", "files": {}}'])
def test_a_damaged_list_of_files_is_refused(broken, content):
    folder, _ = broken
    (folder / EXPORT).write_text(content)
    refused(folder, EXPORT, "damaged")


def test_a_list_without_graphs_is_refused(broken):
    folder, _ = broken
    about(folder, files={})
    refused(folder, "step.onnx")


@pytest.mark.parametrize("name", ["../outside.txt", "/etc/hostname", "..", "", "a\\b"])
def test_a_path_out_of_the_folder_is_refused(broken, name):
    folder, _ = broken
    content = b"elsewhere"
    (folder.parent / "outside.txt").write_bytes(content)
    listed = json.loads((folder / EXPORT).read_text())["files"]
    about(folder, files={**listed, name: hashlib.sha256(content).hexdigest()})
    refused(folder, "no file of the folder itself")


def test_a_link_is_refused(broken):
    folder, _ = broken
    target = folder.parent / "step.onnx"
    (folder / "step.onnx").rename(target)
    os.symlink(target, folder / "step.onnx")
    refused(folder, "is a link")


def graph(folder, name="step.onnx"):
    return onnx.load_from_string((folder / name).read_bytes())


def test_weights_in_another_file_are_refused(broken):
    folder, change = broken
    model = graph(folder)
    onnx.external_data_helper.convert_model_to_external_data(
        model, location="../weights.bin", size_threshold=0, convert_attribute=True
    )
    change("step.onnx", model.SerializeToString())
    refused(folder, "another file")


def test_operators_that_are_not_onnx_s_own_are_refused(broken):
    folder, change = broken
    model = graph(folder)
    model.graph.node[0].domain = "com.example"
    change("step.onnx", model.SerializeToString())
    refused(folder, "operators that are not ONNX's own")


def test_a_graph_in_an_attribute_is_refused(broken):
    folder, change = broken
    model = graph(folder)
    inner = onnx.helper.make_graph([onnx.helper.make_node("X", [], ["y"], domain="d")], "g", [], [])
    model.graph.node[0].attribute.append(onnx.helper.make_attribute("then_branch", inner))
    change("step.onnx", model.SerializeToString())
    refused(folder, "a graph in an attribute")


def test_functions_are_refused(broken):
    folder, change = broken
    model = graph(folder)
    opset = [onnx.helper.make_opsetid("", 17)]
    node = onnx.helper.make_node("Relu", ["a"], ["b"])
    model.functions.append(onnx.helper.make_function("own", "f", ["a"], ["b"], [node], opset))
    change("step.onnx", model.SerializeToString())
    refused(folder, "defines functions")


@pytest.mark.parametrize("content", [b"not a graph", b"\xff" * 9, b"", b"PK\x03\x04"])
def test_a_file_that_is_no_graph_is_refused(broken, content):
    folder, change = broken
    change("step.onnx", content)
    refused(folder, "step.onnx")


def test_graphs_of_another_kind_are_refused(broken, tmp_path):
    folder, change = broken
    export(save_language_model(tmp_path / "other"), tmp_path / "text")
    change("step.onnx", (tmp_path / "text" / "step.onnx").read_bytes())
    refused(folder)
    change("step.onnx", (folder / "encoder.onnx").read_bytes())
    refused(folder)


def test_another_vocabulary_or_task_is_refused(broken):
    folder, change = broken
    vocab = json.loads((folder / "vocab.json").read_text())
    vocab["tokens"].append("zebra")
    change("vocab.json", json.dumps(vocab).encode())
    refused(folder, "vocab.json", "tokens")
    about(folder, task="translate")
    refused(folder, "different tasks")


def test_every_prefix_of_a_graph_is_refused_without_a_crash(captioner):
    """Whatever a download cuts off, the reader of the bytes answers with its own error."""
    content = (captioner / "export" / "start.onnx").read_bytes()
    whole = 0
    for size in [*range(0, 2000, 7), *range(2000, len(content), 997)]:
        try:
            check_graph(content[:size])
            whole += 1  # cut between two fields: the hash is what tells
        except (MalformedError, RefusedError):
            pass
    assert whole < 10
    assert read_export(captioner / "export").graphs["start.onnx"] == content
