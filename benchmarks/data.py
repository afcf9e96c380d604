"""Where the development data lies: beside the project, or where SIGHTLINE_DATA says."""

from __future__ import annotations

import os
from pathlib import Path

BESIDE = Path(__file__).resolve().parents[2] / "shared" / "data"


def data_path(*names: str) -> Path:
    return Path(os.environ.get("SIGHTLINE_DATA", BESIDE)).joinpath(*names)
