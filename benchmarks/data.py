"""Where the development data is: next to the project, or where SIGHTLINE_DATA says."""

from __future__ import annotations

import os
from pathlib import Path

DEFAULT = Path(__file__).resolve().parents[2] / "shared" / "data"


def data_path(*names: str) -> Path:
    return Path(os.environ.get("SIGHTLINE_DATA", DEFAULT)).joinpath(*names)
