"""Text files → strings: UTF-8, plain or compressed, with one kind of line end."""

from __future__ import annotations

import gzip
import lzma
import zlib
from pathlib import Path

from sightline.errors import DataError


def read_text(path: Path | str) -> str:
    """The text of a file (.gz and .xz are unpacked); line ends become \\n, a BOM is dropped."""
    path = Path(path)
    try:
        raw = _unpack(path)
    except FileNotFoundError:
        raise DataError(f"no text file at {path}") from None
    except IsADirectoryError:
        raise DataError(f"{path} is a folder; give a text file") from None
    except (lzma.LZMAError, zlib.error, EOFError, gzip.BadGzipFile) as error:
        raise DataError(f"{path} cannot be unpacked ({error}); is the file whole?") from None
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    if b"\0" in raw:
        raise DataError(f"{path} is binary, not text (it has a zero byte); give UTF-8 text")
    try:
        text = raw.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not UTF-8: byte {error.start} is 0x{raw[error.start]:02x}; "
            "convert it first, for instance with `iconv -f latin1 -t utf-8`"
        ) from None
    if not text.strip():
        raise DataError(f"{path} is empty; give a file with text in it")
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _unpack(path: Path) -> bytes:
    suffix = path.suffix.lower()
    if suffix == ".gz":
        return gzip.decompress(path.read_bytes())
    if suffix == ".xz":
        return lzma.decompress(path.read_bytes())
    return path.read_bytes()
