"""The README is true: its commands and its Python run, on small data of the same names."""

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sightline.samples import samples

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w+)\n(.*?)^```", README, flags=re.MULTILINE | re.DOTALL)
COMMANDS = [
    line.partition("  #")[0].strip()
    for language, body in BLOCKS
    if language == "bash"
    for line in body.splitlines()
    if line.startswith("sightline ")
]
# what makes a README-sized training a test-sized one
SMALL = {
    "shakespeare-lstm": [
        *("streams=4", "length=16", "model.hidden=16", "sample_length=10"),
        *("training.steps=4", "training.evaluate_every=2", "training.tensorboard=false"),
    ]
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
    (here / "photos").mkdir()
    for photo in samples()[:2]:
        shutil.copy(photo.path, here / "photos" / photo.name)
    shutil.copy(samples()[0].path, here / "photo.jpg")
    return here


def test_the_readme_has_what_this_file_tests():
    assert len(COMMANDS) >= 8
    assert sum(language == "python" for language, _ in BLOCKS) >= 2


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_run(folder, command):
    words = shlex.split(command)[1:]
    if words[0] == "train":
        words += SMALL[words[1]]
    run = subprocess.run(
        [sys.executable, "-m", "sightline.cli", *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    if words[0] == "describe" and "--json" in words:
        assert all(json.loads(line)["text"] for line in run.stdout.splitlines())
    elif words[0] == "translate":
        assert ("Hund" if "en-de" in words else "hommes") in run.stdout
    elif "--json" in words:
        assert set(json.loads(run.stdout)) >= {"corpus", "signatures", "intervals"}


@pytest.mark.parametrize("code", [body for language, body in BLOCKS if language == "python"])
def test_python_runs(code, capsys):
    exec(compile(code, "README.md", "exec"), {})
    assert capsys.readouterr().out.strip()


def test_make_targets_exist():
    makefile = (Path(__file__).parents[1] / "Makefile").read_text()
    for target in re.findall(r"`?make (\w+)", README):
        assert f"\n{target}:" in makefile


def test_links_lead_somewhere():
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (Path(__file__).parents[1] / target).exists(), target
