"""What the scripts of the roles share: the command, called as it is typed."""

from __future__ import annotations

import shlex
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from sightline.cli import main
from sightline.samples import samples


@dataclass(frozen=True)
class Result:
    code: int
    out: str
    err: str


Typed = Callable[..., Result]


@pytest.fixture
def typed(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Typed:
    """`typed("sightline models")`: the command line as written, in this process and folder."""

    def run(line: str, code: int = 0) -> Result:
        monkeypatch.setattr(sys, "argv", shlex.split(line))
        capfd.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        result = Result(int(stop.value.code or 0), *capfd.readouterr())
        assert result.code == code, result.err
        assert "Traceback" not in result.err
        return result

    return run


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder, the current one."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    return tmp_path


@pytest.fixture
def photos(here: Path) -> Path:
    """A folder as people have them: folders in it, two files of one name, and what is no photo."""
    folder = here / "photos"
    for place, photo in (("beach", samples()[0]), ("town", samples()[1])):
        (folder / place).mkdir(parents=True)
        shutil.copy(photo.path, folder / place / "IMG_1.jpg")
    (folder / "beach" / "._IMG_1.jpg").write_bytes(b"\x00\x05\x16\x07Mac OS X")
    (folder / "notes.txt").write_text("no photo")
    return folder
