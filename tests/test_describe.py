"""`sightline describe` as people use it: files, folders, patterns, a pipe, and bad files."""

import json
import subprocess
import sys

import numpy as np
import pytest
from PIL import Image

import sightline


@pytest.fixture(scope="module")
def folder(shapes):
    folder, _, _ = shapes
    (folder / "notes.txt").write_text("not a picture")
    (folder / "broken.jpg").write_bytes(b"\xff\xd8\xff\xe0 cut short")
    return folder


def test_one_picture_prints_its_caption_and_nothing_else(run_cli, folder):
    done = run_cli("describe", "84.png", "--model", "run", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in {"a red square", "there is a red square"}


def test_json_has_one_object_per_file_in_order_and_a_bad_file_does_not_stop_the_rest(
    run_cli, folder
):
    files = ["85.png", "missing.png", "notes.txt", "86.png", "broken.jpg"]
    done = run_cli("describe", *files, "--model", "run", "--json", "--n-best", "2", cwd=folder)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["file"] for line in lines] == files
    for line in lines:
        if line["file"] in ("85.png", "86.png"):
            assert set(line) == {
                *("file", "text", "score", "tokens", "log_probs", "confidence"),
                *("attention", "layout", "alternatives"),
            }
            assert len(line["attention"]) == len(line["tokens"]) == len(line["log_probs"])
            assert len(line["alternatives"]) == 1
        else:
            assert set(line) == {"file", "error"}
            assert line["file"] in line["error"]


def test_patterns_folders_and_standard_input(run_cli, folder, cli_environment):
    by_pattern = run_cli("describe", "8[4-6].png", "--model", "run", cwd=folder)
    names = [line.partition(":")[0] for line in by_pattern.stdout.splitlines()]
    assert names == ["84.png", "85.png", "86.png"]
    nothing = run_cli("describe", "*.nothing", "--model", "run", cwd=folder)
    assert nothing.returncode == 2
    assert "no file matches *.nothing" in nothing.stderr
    (folder / "few").mkdir(exist_ok=True)
    Image.open(folder / "87.png").save(folder / "few" / "one.png")
    by_folder = run_cli("describe", "few", "--model", "run", "--json", cwd=folder)
    assert json.loads(by_folder.stdout)["file"].endswith("one.png")
    piped = subprocess.run(
        [sys.executable, "-m", "sightline.cli", "describe", "-", "--model", "run", "--json"],
        input=(folder / "87.png").read_bytes(),
        capture_output=True,
        cwd=folder,
        env=cli_environment,
        check=True,
    )
    assert json.loads(piped.stdout)["text"] == json.loads(by_folder.stdout)["text"]


def test_figures_are_drawn(run_cli, folder):
    done = run_cli("describe", "88.png", "--model", "run", "--figure", "drawn", cwd=folder)
    assert done.returncode == 0, done.stderr
    picture = np.asarray(Image.open(folder / "drawn" / "88.png"))
    assert picture.shape[0] > 100
    assert picture.std() > 5


def test_figures_move_if_asked_to(run_cli, folder):
    options = ["--model", "run", "--figure", "drawn", "--figure-format"]
    done = run_cli("describe", "89.png", *options, "gif", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert Image.open(folder / "drawn" / "89.gif").n_frames > 3
    wrong = run_cli("describe", "89.png", *options, "xyz", cwd=folder)
    assert wrong.returncode == 2
    assert "png" in wrong.stderr


def test_evaluate_prints_the_metrics(run_cli, folder):
    done = run_cli("evaluate", "run", "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert len(result["texts"]) == 12  # the test split
    assert result["corpus"]["cider"] > 3
    assert result["corpus"]["bleu_1"] <= result["corpus"]["bleu_1_nobp"]
    table = run_cli("evaluate", "run", "--split", "dev", "--report", "page.html", cwd=folder)
    assert "this model" in table.stdout
    assert "a red square" in (folder / "page.html").read_text()
    wrong = run_cli("evaluate", "run", "--split", "tset", cwd=folder)
    assert wrong.returncode == 2
    assert "'tset'" in wrong.stderr


def test_evaluate_takes_settings_that_win_over_the_models_own(run_cli, folder):
    short = run_cli("evaluate", "run", "search.max_length=2", "--json", cwd=folder)
    assert short.returncode == 0, short.stderr
    assert {len(text.split()) for text in json.loads(short.stdout)["texts"].values()} <= {1, 2}
    wrong = run_cli("evaluate", "run", "search.maxlength=2", cwd=folder)
    assert wrong.returncode == 2
    assert "max_length" in wrong.stderr


def test_an_ensemble_that_samples_and_a_sheet(run_cli, folder):
    """Of a model with itself, which draws what the model alone draws."""
    both = ("84.png", "85.png", "--model", "run", "--model", "run")
    draws = ("--temperature=3", "--seed=1", "--sheet", "sheet.png")
    done = run_cli("describe", *both, *draws, cwd=folder)
    assert done.returncode == 0, done.stderr
    with Image.open(folder / "sheet.png") as sheet:
        assert sheet.width > sheet.height
    model = sightline.load(folder / "run")
    files = [folder / "84.png", folder / "85.png"]
    alone = [each.text for each in model.describe(files, temperature=3.0, seed=1)]
    drawn = [line.partition(": ")[2] for line in done.stdout.splitlines()]
    assert drawn == alone
    assert drawn != [each.text for each in model.describe(files, temperature=3.0, seed=2)]


def test_models_of_other_words_are_no_ensemble(run_cli, folder):
    done = run_cli("describe", "84.png", "-m", "run", "-m", "default", cwd=folder)
    assert done.returncode == 2
    assert "model 2 reads otherwise" in done.stderr
