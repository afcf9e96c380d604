"""What commands share."""

import csv
import io
import json
import math
import os
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Annotated, Any, BinaryIO

import typer

from sightline.data.progress import be_quiet, is_quiet
from sightline.errors import UserError


def _be_quiet(value: bool) -> bool:
    be_quiet(value)
    return value


def zoo_names(incomplete: str) -> list[str]:
    """For the shell's completion."""
    from sightline import zoo

    return [name for name in zoo.names() if name.startswith(incomplete)]


# Options that have the same names everywhere.
Device = Annotated[
    str, typer.Option(help="Where a run computes: auto, cpu, cuda, cuda:1, mps; exports: cpu.")
]
Model = Annotated[
    str,
    typer.Option(
        "--model", "-m", help="A run, a checkpoint or a zoo name.", autocompletion=zoo_names
    ),
]
Models = Annotated[
    list[str] | None,
    typer.Option(
        "--model",
        "-m",
        help="A run, a checkpoint or a zoo name; several: together.",
        autocompletion=zoo_names,
    ),
]
Files = Annotated[
    list[Path] | None,
    typer.Option("--input", "-i", help="A text file (.gz, .xz too), one source a line; -: stdin."),
]
Beam = Annotated[
    int | None, typer.Option("--beam", "-b", min=1, help="Hypotheses searched in parallel.")
]
NBest = Annotated[int, typer.Option("--n-best", "-n", min=1, help="Outputs per source.")]
Output = Annotated[
    Path | None,
    typer.Option("--output", "--out", "-o", help="Write here, not to standard output."),
]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object per source and line.")]
AsCsv = Annotated[bool, typer.Option("--csv", help="A table with a header.")]
NoAttention = Annotated[
    bool, typer.Option("--no-attention", help="Leave attention out of the JSON.")
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", help="No progress and no notes on standard error.", callback=_be_quiet
    ),
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


def note(text: str) -> None:
    """Something worth knowing, on stderr; not with --quiet."""
    if not is_quiet():
        echo(text, err=True)


def echo_csv(row: Sequence[Any]) -> None:
    """Print a row of a table; None is an empty cell."""
    line = io.StringIO()
    csv.writer(line, lineterminator="\n").writerow(row)
    echo(line.getvalue(), nl=False)


def counted_nouns(number: int, noun: str) -> str:
    """1 item, 2 items."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


@contextmanager
def writing_to(path: Path | None) -> Iterator[None]:
    """What is printed in this block goes to the file; to standard output if there is none."""
    if path is None:
        yield
        return
    try:
        file = path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n")
    except OSError as error:
        raise UserError(f"cannot write {path}: {error.strerror}") from None
    with file, redirect_stdout(file):
        yield


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


def lines_of(files: Sequence[Path]) -> list[str]:
    """The lines of text files; those of standard input for a `-`."""
    from sightline.media.text import decode, read_lines

    lines: list[str] = []
    for path in files:
        if str(path) == "-":
            text = decode(standard_input().read(), "standard input").removesuffix("\n")
            lines += [line.removesuffix("\r") for line in text.split("\n")]
        else:
            lines += read_lines(path)
    return lines


def apart(stream: BinaryIO) -> BinaryIO:
    """The same file for a thread of its own, so that Python, which closes its own streams when it
    exits, does not wait for a thread that still reads."""
    try:
        return os.fdopen(os.dup(stream.fileno()), "rb")
    except OSError:  # no file, in tests
        return stream


def one_thread() -> None:
    """One row at a time is faster on one core, and ten times so when the others are busy."""
    if "torch" in sys.modules:  # an exported model has no use for it
        sys.modules["torch"].set_num_threads(1)
