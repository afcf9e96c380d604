"""The models that ship, each a folder with its card."""

from __future__ import annotations

from pathlib import Path

FOLDER = Path(__file__).parent


def names() -> list[str]:
    """The models that come with this install."""
    return sorted(path.parent.name for path in FOLDER.glob("*/config.yaml"))
