"""Text files → strings: UTF-8, plain or compressed, whole or by line."""

from __future__ import annotations

import gzip
import lzma
import zlib
from collections.abc import Callable
from pathlib import Path

from sightline.errors import DataError
from sightline.media.files import open_file

_UNPACK: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.decompress, ".xz": lzma.decompress}


def read_text(path: Path | str) -> str:
    """The text of a file that has some; line ends become \\n, a BOM is dropped."""
    raw = read_bytes(path)
    if b"\0" in raw:
        raise DataError(f"{path} is binary, not text (it has a zero byte); give UTF-8 text")
    text = decode(raw, str(path)).removeprefix("\ufeff")
    if not text.strip():
        raise DataError(f"{path} is empty; give a file with text in it")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def read_lines(path: Path | str) -> list[str]:
    """The lines of a file, cut at \\n and nowhere else.

    Other characters that some programs take for line ends would shift one file of a parallel pair
    against the other.
    """
    text = decode(read_bytes(path), str(path)).removeprefix("\ufeff")
    lines = text.removesuffix("\n").split("\n") if text else []
    return [line.removesuffix("\r") for line in lines]


def read_bytes(path: Path | str) -> bytes:
    """A file's content; .gz and .xz are unpacked."""
    path = Path(path)
    try:
        with open_file(path) as file:
            raw = file.read()
        return _UNPACK.get(path.suffix.lower(), bytes)(raw)
    except FileNotFoundError:
        raise DataError(f"no text file at {path}") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder; give a text file") from None
    except (lzma.LZMAError, zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise DataError(f"{path} cannot be unpacked ({error}); is the file whole?") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None


def decode(raw: bytes, where: str, line: int = 1) -> str:
    """UTF-8, or an error that names the byte; `line` is the number of the first line."""
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        at = line + raw[: error.start].count(b"\n")
        raise DataError(
            f"{where}:{at}: not UTF-8: byte {error.start} is 0x{raw[error.start]:02x}; "
            "convert it first, for instance with `iconv -f latin1 -t utf-8`"
        ) from None
