"""What commands share."""

import json
import math
import re
import sys
from typing import Annotated, Any, BinaryIO

import typer

from sightline.errors import UserError

Device = Annotated[
    str, typer.Option(help="Where a run computes: auto, cpu, cuda, cuda:1, mps; exports: cpu.")
]
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")  # all but tab and line feed
_UNSAFE = re.compile("[\x7f-\x9f\ud800-\udfff]")  # that json.dumps leaves as they are


def printable(text: str) -> str:
    """The text with control characters, which a terminal would obey, as escapes such as \\x1b."""
    return _CONTROL.sub(lambda match: f"\\x{ord(match[0]):02x}", text)


def echo(text: str = "", *, nl: bool = True, err: bool = False) -> None:
    """Print a text; on a terminal, and on stderr always, without control characters."""
    stream = sys.stderr if err else sys.stdout
    if err or (stream is not None and stream.isatty()):
        text = printable(text)
    typer.echo(text, nl=nl, err=err)


def echo_json(content: Any, indent: int | None = None) -> None:
    """Print JSON that any parser reads: null for NaN, escapes for what is not UTF-8."""
    text = json.dumps(_finite(content), ensure_ascii=False, allow_nan=False, indent=indent)
    typer.echo(_UNSAFE.sub(lambda match: f"\\u{ord(match[0]):04x}", text))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def standard_input() -> BinaryIO:
    """The bytes of standard input; a UserError if it is closed."""
    if sys.stdin is None:
        raise UserError("standard input is closed; give it a file or a pipe")
    return sys.stdin.buffer


def one_thread() -> None:
    """One row at a time is faster on one core, and ten times so when the others are busy."""
    if "torch" in sys.modules:  # an exported model has no use for it
        sys.modules["torch"].set_num_threads(1)
