"""The experiments that train: their data, resuming, and what they print, with tiny models."""

from __future__ import annotations

import gzip
import importlib
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from sightline.cli import app
from sightline.data.manifest import read_manifest
from sightline.data.sentences import clean, mark_words
from sightline.training.checkpoint import load_training, seal
from toy_language import sentences

TINY = [
    *("encoder.embedding=8", "encoder.hidden=8", "model.embedding=8", "model.hidden=10"),
    *("model.attention.size=8", "batching.size=400", "search.beam=2", "search.max_length=12"),
]


@pytest.fixture(scope="module")
def trainings() -> ModuleType:
    return importlib.import_module("benchmarks.trainings")


@pytest.fixture(scope="module")
def fusion() -> ModuleType:
    return importlib.import_module("benchmarks.language_model_fusion")


@pytest.fixture(scope="module")
def large() -> ModuleType:
    return importlib.import_module("benchmarks.large_vocabulary")


@pytest.fixture
def commands(monkeypatch: Any, trainings: ModuleType) -> list[list[str]]:
    """The commands that are run; they run in this process, which saves importing torch again."""
    commands: list[list[str]] = []

    def run(*arguments: str | Path) -> None:
        commands.append(list(map(str, arguments)))
        app(commands[-1], standalone_mode=False)

    monkeypatch.setattr(trainings, "sightline", run)
    return commands


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The toy language as Multi30k's files: English; German is it, Czech is it spelt backwards."""
    folder = tmp_path_factory.mktemp("data") / "multi30k"
    folder.mkdir()
    for seed, (name, count) in enumerate(
        {"train": 60, "val": 8, "test_2016_flickr": 20}.items()
    ):  # fmt: skip
        drawn = sentences(count, seed)
        sides = {
            "en": [" ".join(source) for source, _, _ in drawn],
            "de": [" ".join(target) for _, target, _ in drawn],
            "cs": [" ".join(target)[::-1] for _, target, _ in drawn],
        }
        for side, lines in sides.items():
            with gzip.open(folder / f"{name}.{side}.gz", "wt") as file:
                file.write("\n".join(lines) + "\n")
    return folder


def lines(path: Path) -> list[str]:
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode().splitlines()


# ---- commands ----------------------------------------------------------------------------------


def test_a_command_is_shown_and_its_failure_ends_the_experiment(
    trainings: ModuleType, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        trainings.sightline("train", "no such recipe")
    assert ended.value.code == 2
    printed = capfd.readouterr()
    assert "$ sightline train 'no such recipe'" in printed.out
    assert "no such recipe" in printed.err


def test_a_training_begins_resumes_or_is_left_alone(
    trainings: ModuleType, commands: list[list[str]], data: Path, tmp_path: Path
) -> None:
    text = tmp_path / "text.txt"
    text.write_text("\n".join(lines(data / "train.de.gz")))
    out, longer = tmp_path / "run", "training.steps=4"
    settings = [f"text={text}", "vocabulary=400", "model.embedding=8", "model.hidden=8"]
    settings += ["training.tensorboard=false", "training.evaluate_every=2"]
    trainings.train("sentences-bpe", out, [*settings, "training.steps=2"])
    assert "--resume" not in commands[0]
    trainings.train("sentences-bpe", out, [*settings, "training.steps=2"])
    assert len(commands) == 1
    config = out / "checkpoints" / "step-00000002" / "config.yaml"
    training = load_training(config.parent)
    config.write_text(config.read_text().replace("steps: 2\n", "steps: 4\n"))  # as if stopped
    (config.parent / "training.json").unlink()
    seal(config.parent, training)
    trainings.train("sentences-bpe", out, [*settings, longer])
    assert commands[1][-1] == "--resume"
    assert (out / "checkpoints" / "step-00000004").is_dir()


# ---- fusion ------------------------------------------------------------------------------------


def test_fusion_is_tried_from_data_to_table(
    fusion: ModuleType,
    commands: list[list[str]],
    data: Path,
    tmp_path: Path,
    monkeypatch: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    short = ["training.steps=2", "training.evaluate_every=2", "training.schedule.warmup=0"]
    monkeypatch.setattr(fusion, "FEW", 40)
    monkeypatch.setattr(fusion, "WEIGHTS", [0.1, 0.2])
    monkeypatch.setattr(fusion, "SIZES", TINY)
    monkeypatch.setattr(fusion, "TRANSLATOR", ["source.size=400", "target.size=400", *short])
    tiny = ["model.embedding=8", "model.hidden=8", *short]
    monkeypatch.setattr(fusion, "LANGUAGE_MODEL", tiny)
    monkeypatch.setattr(fusion, "DEEP", short)
    monkeypatch.setenv("SIGHTLINE_DATA", str(data.parent))
    monkeypatch.setattr("sys.argv", ["", str(tmp_path / "out")])
    fusion.main()
    printed = capsys.readouterr().out
    assert [command[0] for command in commands] == ["prepare", "train", "train", "train"]
    assert all(name in printed for name in ("translator", "shallow, 0.", "deep", "tok:13a"))

    german = lines(data / "train.de.gz")
    examples = read_manifest(tmp_path / "out" / "few.jsonl", medium="source")
    trained = [e.targets[0] for e in examples if e.split == "train"]
    assert trained == german[:40]
    assert lines(tmp_path / "out" / "other.de") == german[40:]  # nothing of the parallel text
    fusion.main()
    assert len(commands) == 4  # everything was there


# ---- a large vocabulary ------------------------------------------------------------------------


def test_one_translator_writes_two_languages_with_both_softmaxes(
    large: ModuleType,
    commands: list[list[str]],
    data: Path,
    tmp_path: Path,
    monkeypatch: Any,
    capsys: pytest.CaptureFixture[str],
) -> None:
    short = ["training.steps=2", "training.evaluate_every=2", "training.tensorboard=false"]
    words = ["source.kind=word", "target.kind=word", "target.size=1000"]
    monkeypatch.setattr(large, "SETTINGS", [*TINY, *words, *short, "loss.label_smoothing=0"])
    monkeypatch.setattr(large, "KINDS", {"full": 0, "sampled": 5})
    monkeypatch.setattr(large, "BATCHES", 2)
    monkeypatch.setenv("SIGHTLINE_DATA", str(data.parent))
    monkeypatch.setattr("sys.argv", ["", str(tmp_path)])
    large.main()
    printed = capsys.readouterr().out
    assert [command[-3] for command in commands] == [
        "model.sampled_softmax=0",
        "model.sampled_softmax=5",
    ]
    both = lines(data / "train.de.gz") + lines(data / "train.cs.gz")
    distinct = {word for line in both for word in mark_words(clean(line)).split()}
    assert f"{len(distinct) + 4} words" in printed  # and the special ones
    assert "into de, 20 sentences" in printed
    assert "both, 40 sentences" in printed
    examples = read_manifest(tmp_path / "en-de-cs.jsonl", medium="source")
    assert [e.split for e in examples].count("train") == 120
    assert examples[60].source == f"cs: {lines(data / 'train.en.gz')[0]}"
    assert examples[60].targets == (lines(data / "train.cs.gz")[0],)


def test_speeds_are_tokens_over_processor_time(
    large: ModuleType, data: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    """With a clock that a step moves by one second, the speed is the tokens of a step."""
    monkeypatch.setattr(large, "BATCHES", 2)
    monkeypatch.setattr(large, "SETTINGS", [*TINY, "target.kind=word", "source.kind=word"])
    ticks = iter(np.arange(0, 100.0))
    monkeypatch.setattr(large.time, "process_time", lambda: float(next(ticks)))
    manifest = large.prepare(tmp_path, data)
    monkeypatch.setattr(large, "training_step", lambda task: lambda batch: 7)
    assert large.speeds(manifest)[1] == {"full": 7.0, "sampled": 7.0}
