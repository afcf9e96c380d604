"""`sightline judge` and `sightline judgements` as commands."""

import csv
import json
import re
import signal
import subprocess
import sys
import time
from urllib.request import Request, urlopen

import pytest
from PIL import Image


@pytest.fixture
def folder(tmp_path):
    rows = []
    for name in ("one", "two", "three"):
        Image.new("RGB", (64, 48), "teal").save(tmp_path / f"{name}.png")
        targets = [f"A {name}.", f"The {name}!"]
        rows.append({"id": name, "image": f"{name}.png", "targets": targets, "split": "test"})
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    captions = [{"image_id": row["id"], "caption": f"some {row['id']}"} for row in rows]
    (tmp_path / "ours.json").write_text(json.dumps(captions))
    return tmp_path


def test_serving_answering_ending_and_exporting(folder, cli_environment, run_cli):
    command = [sys.executable, "-m", "sightline.cli", "judge", "ours.json", "--data=data.jsonl"]
    log = folder / "log"
    with log.open("w") as out:
        process = subprocess.Popen(
            [*command, "--port=0", "--measures=m2"],
            cwd=folder,
            env=cli_environment,
            stdout=subprocess.PIPE,
            stderr=out,
            text=True,
        )
    try:
        deadline = time.monotonic() + 60
        while not (said := re.search(r"(http://\S+/)$", log.read_text(), re.M)):
            assert process.poll() is None, log.read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        for at, answer in enumerate(["person", "machine"]):
            body = json.dumps({"judge": "Zoë", "at": at, "answer": answer}).encode()
            urlopen(Request(said[1] + "v1/answers", body), timeout=30).close()
        process.send_signal(signal.SIGINT)
        out, _ = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 0, log.read_text()
    assert "2 judgements by 1 judge" in out

    done = run_cli("judgements", "judgements.jsonl", "--json", cwd=folder)
    rows = json.loads(done.stdout)["shares"]
    assert sum(row["judgements"] for row in rows) == 2
    done = run_cli("judgements", "judgements.jsonl", "--csv", "-o", "out.csv", cwd=folder)
    assert done.returncode == 0, done.stderr
    with (folder / "out.csv").open(encoding="utf-8") as file:
        assert [row["judge"] for row in csv.DictReader(file)] == ["Zoë", "Zoë"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["ours.json", "ours.json"], "the name 'ours' is taken"),
        (["person=ours.json"], "the name 'person' is taken"),
        (["ours.json", "--measures=m3"], "give m1, m2 or m1,m2"),
        (["other.json"], "item 'four' has no caption of a person"),
    ],
)
def test_mistakes_are_one_line(folder, run_cli, arguments, message):
    (folder / "other.json").write_text('[{"image_id": "four", "caption": "x"}]')
    done = run_cli("judge", *arguments, "--data=data.jsonl", cwd=folder)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1
