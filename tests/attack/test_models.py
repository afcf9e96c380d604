"""Model folders from an attacker: nothing executed, read, fetched or hung, one clear line each."""

import os
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest

import sightline
from sightline.errors import CheckpointError, UserError
from sightline.runtime.graph_check import check_graph
from sightline.runtime.model_folder import STEP, Export, find_model
from sightline.tasks.translate.alignments import save_lexicon
from small_models import pictures, save_captioner, save_language_model, save_translator

onnx = pytest.importorskip("onnx")

from hostile_models import CASES, SECRET, big, change  # noqa: E402
from onnx import helper  # noqa: E402

from sightline.export.write import export  # noqa: E402

SECONDS = 5  # for the slowest case, on a busy machine


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exported")
    export(save_language_model(folder / "model"), folder / "export")
    return folder / "export"


@pytest.fixture
def hostile(exported, tmp_path, monkeypatch):
    """A copy of a sound export, and a working directory that holds a secret."""
    (tmp_path / "secret").write_text(SECRET)
    monkeypatch.chdir(tmp_path)
    return shutil.copytree(exported, tmp_path / "model")


WATCHED: list[list] = []  # where the one hook of this process writes; a hook cannot be removed
BAD = ("socket.", "subprocess.", "os.system", "os.exec", "os.posix_spawn", "urllib.")


def _hook(event, arguments):
    if WATCHED and (event.startswith(BAD) or (event == "open" and "secret" in str(arguments[0]))):
        WATCHED[-1].append((event, arguments))


@pytest.fixture(scope="module")
def hooked():
    sys.addaudithook(_hook)


@pytest.fixture
def watched(hooked):
    """What was opened, run or connected to from Python, while the test asked."""
    seen = []
    WATCHED.append(seen)
    yield seen
    WATCHED.clear()


def assert_one_line(text):
    assert text
    assert text.isprintable(), repr(text)  # no line break, no escape code
    assert len(text) < 1000
    assert SECRET not in text
    assert "Traceback" not in text


def test_there_are_100_hostile_folders():
    assert len(CASES) >= 100


@pytest.mark.parametrize("name", CASES)
def test_a_hostile_folder_is_refused_in_one_line(hostile, watched, name):
    CASES[name](hostile)
    watched.clear()
    began = time.monotonic()
    with pytest.raises(UserError) as error:
        sightline.load(hostile)
    assert time.monotonic() - began < SECONDS
    assert not watched
    assert_one_line(str(error.value))
    assert not (hostile.parent / "executed").exists()


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_the_command_says_it_in_one_line(hostile, cli_environment, name):
    CASES[name](hostile)
    done = subprocess.run(
        [sys.executable, "-m", "sightline.cli", "describe", "--model", str(hostile), "a"],
        cwd=hostile.parent, env=cli_environment, capture_output=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2
    assert_one_line(done.stderr.decode().removesuffix("\n"))
    assert done.stdout == b""


# ------------------------------------------------------------------- what the check lets pass


def test_the_zoo_passes():
    for name in sightline.zoo.names():
        for path in (sightline.zoo.FOLDER / name).glob("*.onnx"):
            check_graph(path.read_bytes())


def test_onnxruntime_itself_finds_no_outside_data(tmp_path, monkeypatch):
    """A second wall: were the check to miss it, the file would not be found."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_text(SECRET)
    tensor = big([len(SECRET)], onnx.TensorProto.UINT8)
    tensor.ClearField("raw_data")
    tensor.data_location = onnx.TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="secret")
    node = helper.make_node("Identity", ["hostile"], ["y"])
    output = helper.make_tensor_value_info("y", onnx.TensorProto.UINT8, [len(SECRET)])
    graph = helper.make_graph([node], "g", [], [output], [tensor])
    opset = [helper.make_opsetid("", 17)]
    content = helper.make_model(graph, opset_imports=opset, ir_version=8).SerializeToString()
    with pytest.raises(CheckpointError, match="cannot be loaded"):
        Export(tmp_path, {}, {STEP: content}).session(STEP)


def renamed(model, output):
    """The value that was this output, under another name."""
    for node in model.graph.node:
        for names in (node.input, node.output):
            names[:] = ["hidden_value" if each == output else each for each in names]
    return "hidden_value"


@pytest.mark.parametrize(
    ("output", "operator", "number"),
    [
        ("leading_tokens", "Add", np.int64(1000)),
        ("leading_tokens", "Sub", np.int64(1000)),
        ("leading_log_probs", "Gather", np.array([0, 0], np.int64)),
        ("leading_log_probs", "Reshape", np.array([7, 7], np.int64)),
        ("leading_log_probs", "Expand", np.array([1 << 40, 1 << 10, 1, 1], np.int64)),
    ],
)
def test_a_graph_that_lies_is_an_error_when_it_is_run(hostile, output, operator, number):
    model = onnx.load_from_string((hostile / STEP).read_bytes())
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(number), "number"))
    model.graph.node.append(
        helper.make_node(operator, [renamed(model, output), "number"], [output])
    )
    change(hostile, STEP, model.SerializeToString())
    with pytest.raises(CheckpointError) as error:
        sightline.load(hostile).describe("ab", length=5, temperature=None, beam=3)
    assert_one_line(str(error.value))


def test_a_lexicon_added_to_an_export_gets_its_hash(tmp_path):
    export(save_translator(tmp_path / "model"), tmp_path / "export")
    save_lexicon(tmp_path / "export", {"a": {"dog": 1.0}})
    assert sightline.load(tmp_path / "export").codec.lexicon == {"a": {"dog": 1.0}}
    (tmp_path / "export" / "lexicon.json").write_text('{"a": {"cat": 1.0}}')
    with pytest.raises(CheckpointError, match="damaged or was changed"):
        sightline.load(tmp_path / "export")


@pytest.mark.parametrize(
    "pictures",
    [
        None, [], {}, {"spec": {}, "grid": []}, {"spec": {}, "grid": ["x", 2]},
        {"spec": {"size": 10**9}, "grid": [3, 3]}, {"spec": {"size": "a"}, "grid": [3, 3]},
        {"spec": {"size": 70}, "grid": [10**9, 10**9]}, {"spec": {"evil": 1}, "grid": [3, 3]},
        {"spec": {"size": 70, "mean": [1, 2, 3, 4]}, "grid": [3, 3]},
        {"spec": {"size": 70, "std": [1, 0, 1]}, "grid": [3, 3]},
        {"spec": {"size": 70, "scale": "\x1b[2J"}, "grid": [3, 3]},
    ],
)  # fmt: skip
def test_sizes_of_pictures_are_checked(tmp_path_factory, pictures):
    from hostile_models import about

    folder = find_small_captioner(tmp_path_factory)
    about(folder, pictures=pictures)
    with pytest.raises(UserError) as error:
        sightline.load(folder)
    assert_one_line(str(error.value))


def find_small_captioner(tmp_path_factory):
    folder = tmp_path_factory.getbasetemp() / "captioner"
    if not folder.is_dir():
        export(save_captioner(folder / "model"), folder / "export")
    return folder / "export"


# ----------------------------------------------------------------------------- runs


def with_recipe(folder, before, after):
    path = folder / "config.yaml"
    text = path.read_text()
    assert before in text
    path.write_text(text.replace(before, after))
    return folder


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("embedding: 16", "embedding: 1000000"),
        ("embedding: 16", "embedding: 1" + "0" * 18),
        ("embedding: 16", "embedding: 1" + "0" * 30),
        ("hidden: 32", "hidden: 10000000"),
        ("layers: 2", "layers: 100000000"),
    ],
)
def test_a_run_takes_no_memory_by_its_recipe(tmp_path, before, after):
    resource = pytest.importorskip("resource")
    folder = with_recipe(save_language_model(tmp_path / "run"), before, after)
    used, began = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    with pytest.raises(CheckpointError) as error:
        sightline.load(folder)
    assert time.monotonic() - began < SECONDS
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - used < 200_000  # KiB
    assert_one_line(str(error.value))


@pytest.mark.parametrize(
    "source", ["https://example.invalid/evil.pth", "hub:vgg16", "https://127.0.0.1/x\x1b[2J.pth"]
)
def test_a_run_downloads_nothing(tmp_path, monkeypatch, watched, source):
    monkeypatch.setenv("TORCH_HOME", str(tmp_path / "torch"))
    folder = save_captioner(tmp_path / "run")
    with_recipe(folder, "learning: scratch", "learning: frozen")
    from safetensors.torch import load_file, save_file

    weights = load_file(folder / "weights.safetensors")
    frozen = {n: t.clone() for n, t in weights.items() if not n.startswith("encoder.")}
    save_file(frozen, folder / "weights.safetensors")
    text = (folder / "config.yaml").read_text()
    lines = [line for line in text.splitlines() if not line.strip().startswith("weights:")]
    place = next(i for i, line in enumerate(lines) if "learning:" in line)
    quoted = source.replace("\x1b", "\\e")
    lines.insert(place, lines[place].replace("learning: frozen", f'weights: "{quoted}"'))
    (folder / "config.yaml").write_text("\n".join(lines))
    watched.clear()
    with pytest.raises(CheckpointError, match="downloads nothing") as error:
        sightline.load(folder)
    assert_one_line(str(error.value))
    assert not watched
    assert not (tmp_path / "torch").exists()


@pytest.mark.parametrize("name", ["weights.safetensors", "vocab.json", "config.yaml", "new"])
def test_a_run_with_a_fifo_or_a_link_is_refused(tmp_path, name):
    folder = save_language_model(tmp_path / "run")
    if name != "new":
        (folder / name).rename(tmp_path / "moved")
    os.mkfifo(folder / name)
    if name == "config.yaml":  # not seen as a model at all
        with pytest.raises(CheckpointError):
            find_model(folder)
        return
    with pytest.raises(CheckpointError, match="not a file"):
        sightline.load(folder)
    (folder / name).unlink()
    os.symlink(tmp_path / "moved", folder / name)
    with pytest.raises(CheckpointError, match="is a link"):
        sightline.load(folder)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("training.json", b"[" * 200_000),
        ("training.json", b'{"format": 1e999}'),
        ("weights.safetensors", b""),
        ("weights.safetensors", (1 << 62).to_bytes(8, "little") + b"{}"),
        ("weights.safetensors", b"\x02" + bytes(7) + b"{}"),
        ("best", b"../../model"),
        ("best", b"\x1b[2J"),
    ],
)
def test_a_damaged_run_is_refused_in_one_line(tmp_path, name, content):
    checkpoint = save_language_model(tmp_path / "run" / "checkpoints" / "step-00000001")
    folder = tmp_path / "run" if name == "best" else checkpoint
    (folder / name).write_bytes(content)
    with pytest.raises(CheckpointError) as error:
        sightline.load(tmp_path / "run")
    assert_one_line(str(error.value))


def test_a_tensor_s_name_is_made_printable(tmp_path):
    from safetensors.torch import load_file, save_file

    path = save_language_model(tmp_path / "run") / "weights.safetensors"
    tensors = {name: tensor.clone() for name, tensor in load_file(path).items()}
    save_file({**tensors, "\x1b[2J": tensors["decoder.embed.weight"].clone()}, path)
    with pytest.raises(CheckpointError, match="not in this model") as error:
        sightline.load(path.parent)
    assert_one_line(str(error.value))


def test_pictures_are_described_as_before(tmp_path):
    """The checks refuse nothing of a sound model."""
    export(save_captioner(tmp_path / "model"), tmp_path / "export")
    model, ours = sightline.load(tmp_path / "model"), sightline.load(tmp_path / "export")
    seen = list(pictures(2))
    assert [d.text for d in ours.describe(seen)] == [d.text for d in model.describe(seen)]
