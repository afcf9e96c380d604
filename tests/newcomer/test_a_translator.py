"""A translator: sentences, pipes, tables, and text that the model does not know."""

from __future__ import annotations

import csv
import io
import json
import signal
import subprocess
import sys
import time

import pytest


@pytest.fixture
def piped(cli_environment):
    """The command in its own process, with a pipe on both sides."""

    def start(*arguments: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", "sightline", *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=cli_environment,
            # as in a terminal, where Ctrl-C is not ignored (it is in a shell's background jobs)
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    return start


def test_every_sentence_of_a_line_is_translated_and_aligned(typed, here):
    done = typed('sightline translate "A dog runs. A cat sleeps." -m en-de --align --figure drawn')
    text, links = done.out.strip().split(" ||| ")
    assert "Hund" in text
    assert "Katze" in text
    pairs = [tuple(map(int, link.split("-"))) for link in links.split()]
    assert {source for source, _ in pairs if source < 3}
    assert {source for source, _ in pairs if source >= 3}
    assert all((source < 3) == (target < 3) for source, target in pairs)
    assert (here / "drawn" / "1.png").stat().st_size > 1000


def test_bytes_that_are_no_text_end_in_one_line(piped):
    process = piped("translate", "--model", "en-de")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"A dog runs.\n")
    process.stdin.flush()
    assert b"Hund" in process.stdout.readline()
    process.stdin.write(b"not \xff so\n")
    process.stdin.flush()  # and the pipe stays open: a reader still waits for it
    assert process.wait(120) == 2
    assert process.stderr is not None
    said = process.stderr.read().decode()
    assert said.startswith("sightline: standard input:2: not UTF-8")
    assert said.count("\n") == 1
    process.stdin.close()


def test_ctrl_c_ends_it_quietly(piped):
    process = piped("translate", "--model", "en-de")
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(b"A dog runs.\n")
    process.stdin.flush()
    process.stdout.readline()
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    code = process.wait(120)
    assert process.stderr is not None
    said = process.stderr.read().decode()
    assert code == 130, said
    assert "Fatal Python error" not in said
    assert "Traceback" not in said
    process.stdin.close()


def test_a_table_of_many_lines_shows_how_far_it_is(typed, here, monkeypatch):
    from sightline.data import progress

    monkeypatch.setattr(progress, "_LOG_EVERY", 0.0)
    (here / "many.txt").write_text("A dog runs.\n\n" * 260)
    done = typed("sightline translate -i many.txt -m en-de -b 1 --csv -o table.csv")
    assert done.out == ""
    assert "translating: 520 of 520" in done.err
    rows = list(csv.DictReader(io.StringIO((here / "table.csv").read_text())))
    assert [row["line"] for row in rows] == [str(number) for number in range(1, 521)]
    assert {row["source"]: row["text"] for row in rows}[""] == ""
    assert "Hund" in rows[0]["text"]
    quiet = typed("sightline translate -i many.txt -m en-de -b 1 -o text.txt -q")
    assert quiet.err == ""
    assert len((here / "text.txt").read_text().splitlines()) == 520


def test_text_far_from_the_training_data_is_pointed_out(typed, here):
    (here / "mixed.txt").write_text(
        "A dog runs on the beach.\n"
        "The Committee on Budgetary Control has adopted the discharge procedure unanimously.\n"
    )
    done = typed("sightline translate -i mixed.txt -m en-de --json --no-attention")
    near, far = (json.loads(line) for line in done.out.splitlines())
    assert near["confidence"] > 0.5
    assert far["confidence"] < 0.1
    assert "attention" not in near
    assert "note: 1 of 2 lines is probably wrong (line 2)" in done.err
