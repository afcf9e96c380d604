"""Writing figures: the suffix is checked before the work, and errors name the file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from sightline.errors import UserError


def suffix_of(path: Path | str, known: Sequence[str]) -> str:
    """The file's suffix in lower case, or an error that lists the known ones."""
    suffix = Path(path).suffix.lower()
    if suffix not in known:
        problem = f"the ending {suffix!r} is not" if suffix else "it has no ending that is"
        raise UserError(
            f"cannot write the figure {path}: {problem} one of {', '.join(known)}; use one of them"
        )
    return suffix


def write(path: Path | str, save: Callable[[Path], object]) -> None:
    """Call `save` with the path after making its folder; failures become a UserError."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save(path)
    except (OSError, ValueError, KeyError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UserError(f"cannot write the figure {path}: {reason}") from None
