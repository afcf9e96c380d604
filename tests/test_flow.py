"""docs/reference/flow.md lists the calls from a command to its result: they happen, in order."""

import re
import sys
from pathlib import Path

import pytest

import sightline
from sightline.samples import samples

ROOT = Path(__file__).parents[1]
SOURCE = Path(sightline.__file__).parent
STEP = re.compile(r"^\d+\. `([\w/]+\.py)` `([\w.]+)`", re.MULTILINE)


def listed(title):
    """The (file, function) pairs of one section of the page."""
    page = (ROOT / "docs/reference/flow.md").read_text()
    section = page.split(f"## {title}\n")[1].split("\n## ")[0]
    return STEP.findall(section)


def called(run):
    """Every function of the package in the order of its first call, as (file, qualified name)."""
    calls = {}

    def record(frame, event, argument):
        if event == "call":
            path = Path(frame.f_code.co_filename)
            if path.is_relative_to(SOURCE):
                name = (path.relative_to(SOURCE).as_posix(), frame.f_code.co_qualname)
                calls.setdefault(name, len(calls))

    sys.setprofile(record)
    try:
        run()
    finally:
        sys.setprofile(None)
    return calls


def describe():
    from sightline.commands.describe import describe

    describe([str(samples()[0].path)])


def translate():
    from sightline.tasks.translate.commands import translate

    translate(["A dog runs."], model=["en-de"])


def train(tmp_path):
    from sightline.commands.train import train

    text = tmp_path / "text.txt"
    text.write_text("to be or not to be\n" * 40)
    options = ["streams=2", "length=8", "model.hidden=8", "model.embedding=8", "training.steps=2"]
    options += [f"text={text}", "training.tensorboard=false", "sample_length=5"]
    train(Path("shakespeare-lstm"), options, out=tmp_path / "run")


@pytest.mark.parametrize("title", ["Describe a picture", "Translate a sentence", "Train a model"])
def test_the_flow_is_as_the_page_says(title, tmp_path, capsys, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # a search in another thread is not recorded
    # trial steps, from which the time of a training is estimated, would come before its own
    monkeypatch.setattr("sightline.training.opening.expected_time", lambda trainer, steps: "soon")
    run = {"Describe": describe, "Translate": translate}.get(title.split()[0])
    calls = called(run or (lambda: train(tmp_path)))
    steps = listed(title)
    assert 6 <= len(steps) <= 12
    missing = [step for step in steps if step not in calls]
    assert not missing, f"not called: {missing}"
    order = [calls[step] for step in steps]
    assert order == sorted(order), "called in another order"
