"""Writing figures: the ending of a name is checked first, and what cannot be written is said."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from sightline.errors import UserError


def suffix_of(path: Path | str, known: Sequence[str]) -> str:
    """The file's ending in small letters, or an error that tells which are known."""
    suffix = Path(path).suffix.lower()
    if suffix not in known:
        said = f"the ending {suffix!r} is not" if suffix else "it has no ending that is"
        raise UserError(
            f"cannot write the figure {path}: {said} one of {', '.join(known)}; give it one of them"
        )
    return suffix


def write(path: Path | str, save: Callable[[Path], object]) -> None:
    """Call `save` with the path, its folder made; what goes wrong is the user's to mend."""
    path = Path(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save(path)
    except (OSError, ValueError, KeyError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise UserError(f"cannot write the figure {path}: {reason}") from None
