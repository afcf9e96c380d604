"""Checks of what a search is asked for."""

from __future__ import annotations

from sightline.search.steppers import SearchError


def require(condition: bool, message: str) -> None:
    if not condition:
        raise SearchError(message)


def check_lengths(min_length: int, max_length: int) -> None:
    require(max_length >= 1, f"max_length={max_length}; give at least 1")
    require(
        0 <= min_length <= max_length,
        f"min_length={min_length} with max_length={max_length}; give 0 to {max_length}",
    )
