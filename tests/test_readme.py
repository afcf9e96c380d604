"""README and Getting started: their commands and Python run, on small data of the same names."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from PIL import Image

from sightline.samples import samples

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
GUIDE = (ROOT / "docs/guides/getting-started.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README + GUIDE, flags=re.MULTILINE | re.DOTALL)
LINES = [
    line.partition("  #")[0].strip()
    for language, body in BLOCKS
    if language == "bash"
    for line in body.splitlines()
    if line.startswith("sightline ")
]
LINES.remove("sightline demo")  # run by `make demo` in CI, and in tests/newcomer/test_fresh.py
COMMANDS = list(dict.fromkeys(LINES))  # each once, in order: later ones use what earlier ones wrote
PYTHON = [body for language, body in BLOCKS if language == "python"]
# overrides that shrink the README's trainings to seconds
SMALL = {
    "flickr8k-lite": [
        *("encoder.size=96", "min_count=1", "batching.size=4", "search.beam=2"),
        *("model.embedding=16", "model.hidden=16", "model.attention.size=16"),
        *("training.steps=2", "training.evaluate_every=2", "training.schedule.warmup=1"),
        "training.tensorboard=false",
    ],
    "shakespeare-lstm": [
        *("streams=4", "length=16", "model.hidden=16", "sample_length=10"),
        *("training.steps=4", "training.evaluate_every=2", "training.tensorboard=false"),
    ],
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the files that the README's commands name."""
    here = tmp_path_factory.mktemp("readme")
    line = "ROMEO: what light through yonder window breaks?\nJULIET: O Romeo, Romeo!\n"
    (here / "tinyshakespeare.txt").write_text(line * 40)
    captions = ["a dog runs on the grass", "two men talk", "a boy in a red shirt jumps"]
    for name, shift in (("captions", 0), ("other", 1)):
        results = [{"image_id": i, "caption": captions[i - shift]} for i in range(3)]
        (here / f"{name}.json").write_text(json.dumps(results))
    annotations = [
        {"image_id": i, "id": 2 * i + k, "caption": text}
        for i in range(3)
        for k, text in enumerate([captions[i] + " today", "the " + captions[i]])
    ]
    references = {"images": [{"id": i} for i in range(3)], "annotations": annotations}
    (here / "references.json").write_text(json.dumps(references))
    (here / "captions.en").write_text("Two men talk.\n\nA boy in a red shirt jumps.\n")
    for place in ("photos", "src/sightline/samples"):
        (here / place).mkdir(parents=True)
        for photo in samples()[:2]:
            shutil.copy(photo.path, here / place / photo.name)
    shutil.copy(samples()[0].path, here / "photo.jpg")
    write_pairs(here)
    return here


def write_pairs(folder):
    """pairs.csv: eight pictures of one colour each, two captions a picture."""
    rows = ["image,caption,split"]
    for number in range(8):
        colour = ("red", "blue")[number % 2]
        Image.new("RGB", (96, 96), colour).save(folder / f"{number}.png")
        split = ("train", "train", "dev", "test")[number // 2]
        rows += [f"{number}.png,a {colour} {noun},{split}" for noun in ("square", "picture")]
    (folder / "pairs.csv").write_text("\n".join(rows) + "\n")


def test_the_readme_has_what_this_file_tests():
    assert len(COMMANDS) >= 18
    assert len(PYTHON) == 3
    own_data = [
        command.split()[1] for command in COMMANDS if "pairs" in command or "runs/" in command
    ]
    assert own_data[:4] == ["prepare", "train", "evaluate", "export"]


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(folder, command, run_cli):
    words = shlex.split(command)[1:]
    if words[0] == "train":
        words += SMALL[words[1]]
    run = run_cli(*words, cwd=folder)
    assert run.returncode == 0, run.stderr
    if "src/sightline/samples/dogs.jpg" in words:
        assert f"\n```\n{run.stdout}```\n" in README  # the output that the README shows
        assert (folder / "figures/dogs.png").is_file()
    elif words[0] == "describe" and "--json" in words:
        assert all(json.loads(line)["text"] for line in run.stdout.splitlines())
    elif words[0] == "translate":
        german = "Bahnhof" if "station" in str(words) else "Hund"
        assert (german if "en-de" in words else "hommes") in run.stdout
    elif words[0] == "evaluate" and "--report" in words:
        assert "<html" in (folder / "report.html").read_text(encoding="utf-8")
    elif "--engine" in words:
        (part,) = (folder / words[-1]).glob("model=*/part-*.jsonl")
        rows = [json.loads(line) for line in part.read_text(encoding="utf-8").splitlines()]
        assert len(rows) == 2
        assert all(row["text"] and not row["error"] for row in rows)
    elif "--output" in words:
        assert (folder / words[-1]).read_text(encoding="utf-8").startswith("file,text")
    elif words[0] == "describe":
        assert run.stdout.strip()


@pytest.mark.parametrize("code", PYTHON)
def test_python_runs(folder, code, capsys, monkeypatch):
    monkeypatch.chdir(folder)
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip()


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"`?make (\w+)", README):
        assert f"\n{target}:" in makefile
