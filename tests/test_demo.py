"""The demo shows the photos with any captioner, in files that are where it says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from sightline.commands import demo
from sightline.samples import samples


def test_the_demo_draws_every_photo_and_prints_where(
    shapes: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    demo.describe_photos(shapes[0] / "run")
    printed = capsys.readouterr().out
    page = (tmp_path / "demo" / "photos.html").read_text(encoding="utf-8")
    for sample in samples():
        assert (tmp_path / "demo" / "photos" / f"{sample.path.stem}.png").is_file()
        assert sample.name in printed
        assert sample.credit in page
    for path in ("demo/photos.html", "demo/photos/dogs.gif"):
        assert path in printed
        assert (tmp_path / path).is_file()
