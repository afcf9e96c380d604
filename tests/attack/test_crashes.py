"""A crash at any system call loses no checkpoint, no `best`, no line of the log, no features."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("torch", reason="the train extra is not installed")

WALK = Path(__file__).with_name("crash_walk.py")
MEMORY = Path("/dev/shm")  # where a sync costs nothing
OPERATIONS = [
    "save and prune",
    "save the best and prune",
    "mark best",
    "fall back",
    "log",
    "feature cache",
    "average",
]


def run(*arguments):
    return subprocess.run(
        [sys.executable, WALK, *arguments], capture_output=True, text=True, timeout=280
    )


@pytest.fixture(scope="module")
def traced():
    if run("possible").returncode:
        pytest.skip("needs ptrace on x86-64 Linux")


def lost_states(operation, *kinds):
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as folder:
        result = run(operation, folder, *kinds)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    print(f"{operation}: {report['faults']} faults, {len(report['wrong'])} lost or wrong")
    assert report["faults"] > 10
    return report["wrong"]


@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize(
    ("operation", "kinds"),
    [
        ("save the best and prune", ["kill"]),
        ("mark best", []),
        ("log", []),
        ("feature cache", ["kill", "ENOSPC for good"]),
    ],
)
def test_a_fault_at_any_call_loses_nothing(operation, kinds):
    assert lost_states(operation, *kinds) == []


@pytest.mark.slow
@pytest.mark.usefixtures("traced")
@pytest.mark.parametrize("operation", OPERATIONS)
def test_every_fault_at_every_call_loses_nothing(operation):
    assert lost_states(operation) == []
