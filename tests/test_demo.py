"""The demo shows any model on its task's samples, in files that are where it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sightline import zoo
from sightline.commands import demo
from sightline.commands.models import task_of
from sightline.samples import samples
from sightline.tasks import spec_of


def test_the_demo_draws_every_photo_and_prints_where(
    shapes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    demo.describe_samples(shapes[0] / "run")
    printed = capsys.readouterr().out
    page = (tmp_path / "demo" / "run.html").read_text(encoding="utf-8")
    for sample in samples():
        assert (tmp_path / "demo" / "run" / f"{sample.path.stem}.png").is_file()
        assert sample.name in printed
        assert sample.credit in page
    assert "demo/run.html" in printed
    assert (tmp_path / "demo" / "run" / f"{samples()[0].path.stem}.gif").is_file()


@pytest.mark.parametrize("name", zoo.names())
def test_every_model_that_ships_has_something_to_show(name: str) -> None:
    spec = spec_of(task_of(name))
    assert spec.demo is not None or spec.samples is not None
