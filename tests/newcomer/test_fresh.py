"""The roles that start from nothing: the guide's commands in the environment that it makes.

They build the wheel, and install it as a stranger does (`make test-install`).
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from sightline.samples import samples

ROOT = Path(__file__).parents[2]
GUIDE = (ROOT / "docs/guides/getting-started.md").read_text(encoding="utf-8")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(1800)]
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}


def shell(script: str, folder: Path) -> str:
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script],
        cwd=folder, env=CLEAN, capture_output=True, text=True, timeout=1500,
    )  # fmt: skip
    assert done.returncode == 0, f"{script}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def clone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What a clone has, with the environment of the guide's first block, base only."""
    folder = tmp_path_factory.mktemp("clone") / "sightline"
    folder.mkdir()
    for name in ("src", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for path in ROOT.iterdir():
        if path.is_file() and not path.name.startswith(".git"):
            shutil.copy(path, folder)
    block = re.search(r"^```\n(git clone.*?)^```", GUIDE, flags=re.M | re.S)
    assert block
    lines = [line.partition("#")[0].strip() for line in block[1].splitlines()]
    base = [line for line in lines if "clone" not in line and "[train]" not in line]
    shell("\n".join(base), folder)
    return folder


def test_the_guides_commands_run_as_written(clone: Path) -> None:
    folder = clone / "photos"
    folder.mkdir()
    for photo in samples()[:2]:
        shutil.copy(photo.path, folder)
    shutil.copy(samples()[0].path, clone / "photo.jpg")
    (clone / "captions.en").write_text("A dog runs.\n")
    blocks = re.findall(r"^```bash\n(.*?)^```", GUIDE, flags=re.M | re.S)
    commands = [line for block in blocks for line in block.splitlines() if line.strip()]
    assert len(commands) >= 9
    for line in commands:
        assert shlex.split(line)[0] == "sightline"
        shell(f"source .venv/bin/activate\n{line}", clone)
    assert list(clone.glob("demo/*/*.png"))


def test_make_demo_shows_every_task_without_torch(clone: Path) -> None:
    printed = shell("make demo", clone)
    shown = ("wooden fence", "Bahnhof", "kitchen", "human", "(NP", "→ HH AH", "sample.mp4\n    →")
    assert [each for each in shown if each not in printed] == []
    shell("! .venv/bin/python -c 'import torch' 2>/dev/null", clone)
