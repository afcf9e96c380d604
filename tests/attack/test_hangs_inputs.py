"""What could wait forever: FIFOs, devices, a closed stdin, YAML aliases, a compiler."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sightline.config.files import parse_text, top_level
from sightline.data.manifest import read_manifest
from sightline.errors import ConfigError, DataError, UserError
from sightline.media.text import read_lines, read_text
from sightline.metrics import DocumentFrequencies
from sightline.metrics.files import read_hypotheses
from sightline.tasks.caption.recipe import CaptionRecipe

READERS = [
    read_text,
    read_lines,
    read_manifest,
    read_hypotheses,
    DocumentFrequencies.load,
    lambda path: top_level(path, "task"),
]


@pytest.mark.timeout(20)
@pytest.mark.parametrize("read", READERS)
def test_a_fifo_is_refused(read, tmp_path: Path) -> None:
    fifo = tmp_path / "text.txt"
    os.mkfifo(fifo)
    with pytest.raises(UserError, match="it is a FIFO, not a file"):
        read(fifo)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("read", READERS)
def test_a_device_is_refused(read) -> None:
    with pytest.raises(UserError, match="it is a device, not a file"):
        read(Path("/dev/zero"))


def test_the_shells_own_pipes_are_read() -> None:
    reading, writing = os.pipe()
    os.write(writing, b"a dog\n")
    os.close(writing)
    assert read_lines(f"/dev/fd/{reading}") == ["a dog"]
    os.close(reading)


@pytest.mark.timeout(60)
@pytest.mark.parametrize("arguments", [["translate", "-m", "en-de"], ["describe", "-"]])
def test_a_closed_stdin_is_one_line(arguments: list[str]) -> None:
    command = [sys.executable, "-m", "sightline.cli", *arguments]
    done = subprocess.run(
        ["sh", "-c", 'exec "$@" <&-', "sh", *command], capture_output=True, text=True, timeout=50
    )
    assert done.returncode == 2
    assert done.stderr.startswith("sightline: ")
    assert done.stderr.count("\n") == 1


@pytest.mark.timeout(20)
@pytest.mark.parametrize("key", ["description", "model", "bomb", "manifest"])
def test_a_yaml_bomb_fails_at_once(key: str) -> None:
    text = "task: caption\na0: &a0 [x, x, x, x, x, x, x, x, x]\n"
    for n in range(1, 12):
        text += f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n"
    with pytest.raises(ConfigError) as caught:
        parse_text(f"{text}{key}: *a11\n", CaptionRecipe)
    assert len(str(caught.value)) < 2000


@pytest.mark.timeout(60)
def test_a_compiler_that_never_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    from sightline.nn.kernels import additive

    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\nsleep 1000 &\nsleep 1000\n")
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    monkeypatch.setattr(additive, "SECONDS", 0.3, raising=False)
    began = time.monotonic()
    assert additive.compiled.__wrapped__(torch.float32) is None
    assert time.monotonic() - began < 20


def test_the_kernel_checks_what_it_is_given() -> None:
    torch = pytest.importorskip("torch")
    from sightline.nn.kernels import additive

    library = additive.compiled(torch.float32)
    if library is None:
        pytest.skip("no C compiler")
    scorer = additive.CompiledScorer(library, torch.zeros(2, 3, 4), torch.ones(4), 1)
    assert scorer(torch.zeros(2, 4)).shape == (2, 3)
    for queries in (torch.zeros(1, 4), torch.zeros(2, 6), torch.zeros(2, 4).double()):
        with pytest.raises(ValueError, match="queries must be"):
            scorer(queries)
    with pytest.raises(ValueError, match="queries must be"):
        scorer.run("score", torch.ones(4, 2).T, scorer.all, scorer.factor, torch.zeros(2, 3))
    odd = additive.CompiledScorer(library, torch.zeros(2, 3, 5), torch.ones(5), 1)
    with pytest.raises(ValueError, match="even"):
        odd(torch.zeros(2, 5))


def test_a_device_is_no_data_error_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="is a folder"):
        read_text(tmp_path)
