"""Text files are read as they are meant, and what is no text is refused with a reason."""

from __future__ import annotations

import gzip
import lzma
import os
from pathlib import Path

import pytest

from sightline.errors import DataError
from sightline.media.text import read_text

TEXT = "Ünïcode, a tab\tand 日本\nsecond line\n" * 50


def refused(path: Path, reason: str) -> str:
    with pytest.raises(DataError, match=reason) as caught:
        read_text(path)
    message = str(caught.value)
    assert str(path) in message
    assert "\n" not in message
    return message


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_text_is_read_from_a_path_or_a_string(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", TEXT.encode())
    assert read_text(path) == read_text(str(path)) == TEXT


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_line_ends_become_one_kind(tmp_path: Path, end: str) -> None:
    path = write(tmp_path / "a.txt", end.join(["one", "", "two", ""]).encode())
    assert read_text(path) == "one\n\ntwo\n"


def test_a_byte_order_mark_is_dropped_and_only_at_the_start(tmp_path: Path) -> None:
    assert read_text(write(tmp_path / "a.txt", b"\xef\xbb\xbfa\xef\xbb\xbfb")) == "a\ufeffb"


@pytest.mark.parametrize(
    ("name", "pack"),
    [("a.gz", gzip.compress), ("a.GZ", gzip.compress), ("a.xz", lzma.compress)],
)
def test_packed_text_is_unpacked(tmp_path: Path, name: str, pack: type) -> None:
    assert read_text(write(tmp_path / name, pack(TEXT.encode()))) == TEXT


@pytest.mark.parametrize(("suffix", "pack"), [(".gz", gzip.compress), (".xz", lzma.compress)])
@pytest.mark.parametrize("part", [0.1, 0.5, 0.9, 0.99])
def test_packed_text_cut_short_is_refused(
    tmp_path: Path, suffix: str, pack: type, part: float
) -> None:
    packed = pack(TEXT.encode())
    path = write(tmp_path / f"a{suffix}", packed[: int(len(packed) * part)])
    refused(path, "cannot be unpacked .*is the file whole")


@pytest.mark.parametrize("suffix", [".gz", ".xz"])
def test_plain_text_named_as_packed_is_refused(tmp_path: Path, suffix: str) -> None:
    refused(write(tmp_path / f"a{suffix}", TEXT.encode()), "cannot be unpacked")


def test_packed_text_with_a_flipped_byte_is_refused(tmp_path: Path) -> None:
    packed = bytearray(gzip.compress(bytes(range(256)).hex().encode()))
    packed[len(packed) // 2] ^= 0xFF
    refused(write(tmp_path / "a.gz", bytes(packed)), "cannot be unpacked")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    refused(tmp_path / "nope.txt", "no text file at")


def test_a_folder_is_refused(tmp_path: Path) -> None:
    refused(tmp_path, "is a folder; give a text file")


def test_a_path_through_a_file_or_too_long_is_refused(tmp_path: Path) -> None:
    refused(write(tmp_path / "file", b"a") / "b.txt", "cannot read .*Not a directory")
    refused(tmp_path / ("x" * 300), "cannot read .*too long")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_an_unreadable_file_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", b"text")
    path.chmod(0)
    refused(path, "cannot read .*Permission denied")


@pytest.mark.parametrize(
    "content", [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "utf-16".encode("utf-16"), b"a" * 99_999 + b"\0"]
)
def test_a_binary_file_is_refused(tmp_path: Path, content: bytes) -> None:
    refused(write(tmp_path / "a.txt", content), "is binary, not text")


@pytest.mark.parametrize("content", [b"", b" \n\t \r\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf \n"])
def test_an_empty_file_is_refused(tmp_path: Path, content: bytes) -> None:
    refused(write(tmp_path / "a.txt", content), "is empty")


def test_an_empty_packed_file_is_refused(tmp_path: Path) -> None:
    refused(write(tmp_path / "a.gz", gzip.compress(b"")), "is empty")


@pytest.mark.parametrize("before", [b"", b"plain ", b"\xef\xbb\xbfmarked "])
def test_text_that_is_not_utf8_is_refused_with_the_byte(tmp_path: Path, before: bytes) -> None:
    path = write(tmp_path / "a.txt", before + "é".encode("latin1") + b" after")
    refused(path, f"not UTF-8: byte {len(before)} is 0xe9; convert it first")
