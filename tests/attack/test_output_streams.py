"""What commands print: harmless on a terminal, valid JSON, one line if it cannot be written."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from sightline.errors import UserError
from sightline.tasks.command_line import echo_json, printable

CLI = [sys.executable, "-m", "sightline.cli"]


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    (tmp_path / "h.txt").write_text("a dog\n")
    return tmp_path


COMMANDS = [
    ["--help"],
    ["recipes"],
    ["recipes", "--json"],
    ["score", "h.txt", "h.txt", "--metrics", "bleu"],
    ["score", "h.txt", "h.txt", "--metrics", "bleu", "--json"],
]


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_full_disk_is_one_line(arguments: list[str], texts: Path) -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [*CLI, *arguments], cwd=texts, stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert done.stderr == "sightline: cannot write: No space left on device\n"
    assert done.returncode == 2


@pytest.mark.parametrize("arguments", COMMANDS)
def test_a_closed_pipe_is_a_quiet_end(arguments: list[str], texts: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = subprocess.run(
        [*CLI, *arguments], cwd=texts, stdout=writing, stderr=subprocess.PIPE, text=True
    )
    os.close(writing)
    assert done.stderr == ""
    assert done.returncode == 1


def test_a_name_with_escape_codes_is_harmless(tmp_path: Path) -> None:
    name = "\x1b]0;owned\x07\x9b31m.txt"
    main_end, other_end = pty.openpty()
    done = subprocess.run([*CLI, "score", name, name], cwd=tmp_path, stderr=other_end)
    os.close(other_end)
    shown = os.read(main_end, 10_000).decode()
    os.close(main_end)
    assert done.returncode == 2
    assert "\\x1b]0;owned\\x07\\x9b31m.txt" in shown
    assert not {"\x1b", "\x07", "\x9b"} & set(shown)


def test_printable_keeps_text() -> None:
    assert printable("Grüße,\t世界\n") == "Grüße,\t世界\n"
    assert printable("\x1b[2J\r\x7f\x85") == "\\x1b[2J\\x0d\\x7f\\x85"


def test_json_is_utf8_json(capfd: pytest.CaptureFixture[str]) -> None:
    content = {"file": "\udcff\x9b", "score": float("nan"), "all": [float("-inf"), 1.5], "é": "é"}
    echo_json(content)
    out = capfd.readouterr().out
    assert json.loads(out.encode("utf-8")) == {**content, "score": None, "all": [None, 1.5]}
    assert "NaN" not in out
    assert "\x9b" not in out
    assert "é" in out


@pytest.mark.parametrize("key", ["schlüssel", "a\tb", " a", "a ", "", "a\x7f"])
def test_a_key_that_no_header_carries_is_refused(key: str) -> None:
    guard = pytest.importorskip("sightline.serve.guard")
    with pytest.raises(UserError, match="API key"):
        guard.Guard(None, None, key)
    assert guard.Guard(None, None, "s3cret key!").api_key == "s3cret key!"


@pytest.mark.parametrize("coding", [None, "chunked"])
def test_two_lengths_of_a_body_are_refused(coding: str | None) -> None:
    guard = pytest.importorskip("sightline.serve.guard")
    metrics = pytest.importorskip("sightline.serve.metrics").Metrics(lambda: 0, lambda: 0)
    headers = {"content-length": "3"} | ({"transfer-encoding": coding} if coding else {})
    sent: list[dict[str, Any]] = []

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"abc"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": "/v1/describe", "headers": raw}
    asyncio.run(guard.Guard(answer, metrics)(scope, receive, send))
    assert sent[0]["status"] == (400 if coding else 200)
    assert ((b"connection", b"close") in sent[0]["headers"]) is bool(coding)
