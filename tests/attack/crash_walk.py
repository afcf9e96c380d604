"""Faults at every system call of an operation: python crash_walk.py NAME FOLDER [KIND …] → JSON.

The operation runs in a forked child under ptrace, once for each of its system calls and each kind
of fault; what is on the disk afterwards is checked, and the operation is then repeated without a
fault. Real system calls: those of safetensors' Rust code are among them.
"""

import ctypes
import errno
import json
import os
import shutil
import signal
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import numpy as np
import torch
from rich.console import Console

from sightline.data.feature_cache import FeatureCache, Header, append, writing
from sightline.errors import UserError
from sightline.training import checkpoint as files
from sightline.training.checkpoint import Checkpoint, Run
from sightline.training.journal import Journal, read_log
from sightline.training.merging import average_checkpoints

# ---------------------------------------------------------------------------------- ptrace, x86-64

TRACEME, GETREGS, SETREGS, DETACH, SYSCALL, SETOPTIONS = 0, 12, 13, 17, 24, 0x4200
GOOD_STOPS_AND_KILL_ON_EXIT = 1 | 0x100000
RAX, RDX, NUMBER = 10, 12, 15  # in user_regs_struct
WRITE = 1
# What touches files: read write open close stat fstat lstat lseek pread pwrite writev ioctl fsync
# fdatasync truncate ftruncate getdents rename mkdir rmdir creat link unlink fcntl flock getdents64
# openat mkdirat newfstatat unlinkat renameat fallocate renameat2 copy_file_range statx openat2
FILES = {
    *(0, 1, 2, 3, 4, 5, 6, 8, 16, 17, 18, 20, 40, 72, 73, 74, 75, 76, 77, 78, 82, 83, 84, 85, 86),
    *(87, 217, 257, 258, 262, 263, 264, 285, 316, 326, 332, 437),
}  # fmt: skip
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.restype = ctypes.c_long
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]

KINDS = {  # error, and whether every later call fails too
    "kill": (0, False),
    "EIO": (errno.EIO, False),
    "ENOSPC": (errno.ENOSPC, False),
    "EIO for good": (errno.EIO, True),
    "ENOSPC for good": (errno.ENOSPC, True),
    "short write": (0, False),
}
DONE, REFUSED, TRACEBACK = 0, 3, 4


def child(act):
    libc.ptrace(TRACEME, 0, None, None)
    os.kill(os.getpid(), signal.SIGSTOP)
    code = TRACEBACK
    try:
        act()
        code = DONE
    except UserError:
        code = REFUSED
    finally:
        os._exit(code)


def run_with_fault(act, kind, number):
    """The exit code, or None if killed; and whether there was a call of that number."""
    pid = os.fork()
    if pid == 0:
        child(act)
    os.waitpid(pid, 0)
    libc.ptrace(SETOPTIONS, pid, None, GOOD_STOPS_AND_KILL_ON_EXIT)
    error, for_good = KINDS[kind]
    registers = (ctypes.c_ulonglong * 27)()
    count, entering, failing, hit, pass_on = 0, True, False, False, 0
    while True:
        libc.ptrace(SYSCALL, pid, None, pass_on)
        _, status = os.waitpid(pid, 0)
        pass_on = 0
        if os.WIFEXITED(status):
            return os.WEXITSTATUS(status), hit
        if os.WIFSIGNALED(status):
            return None, hit
        if os.WSTOPSIG(status) != signal.SIGTRAP | 0x80:
            pass_on = os.WSTOPSIG(status)
            continue
        libc.ptrace(GETREGS, pid, None, registers)
        if not entering and failing:
            registers[RAX] = ctypes.c_ulonglong(-error).value
            libc.ptrace(SETREGS, pid, None, registers)
        entering, failing = not entering, False
        if entering:
            continue  # that was a return
        call = registers[NUMBER]
        if kind != "kill" and call not in ({WRITE} if kind == "short write" else FILES):
            continue
        count += 1
        if count != number and not (for_good and count > number):
            continue
        hit = True
        if kind == "kill":
            os.kill(pid, signal.SIGKILL)
        elif kind == "short write":
            registers[RDX] = max(1, registers[RDX] // 2)
            libc.ptrace(SETREGS, pid, None, registers)
        else:
            failing = True
            registers[NUMBER] = ctypes.c_ulonglong(-1).value  # no such call: nothing happens
            libc.ptrace(SETREGS, pid, None, registers)


# ------------------------------------------------------------------------------------- operations


def snapshot(step):
    tensors = {"w": torch.full((500,), float(step)), "b": torch.arange(3)}
    texts = {"config.yaml": f"step: {step}\n", "vocab.json": "[]"}
    return Checkpoint(step, texts, tensors, {"progress": {"step": step}}, dict(tensors))


def good(run):
    """The numbers of the checkpoints that are what was saved."""
    numbers = set()
    for path in run.checkpoints.glob("step-*"):
        files.verify(path)  # any that is listed must be good
        numbers.add(int(path.name[5:]))
        loaded = files.load_tensors(path / files.WEIGHTS)
        assert loaded["w"][0] == int(path.name[5:])
    return numbers


def clean(run):
    assert not list(run.checkpoints.glob(".*")), "leftovers"


class Save:
    """Three checkpoints, the first the best; a fourth is saved, and two are kept."""

    is_best, best_after, after = False, 1, {1, 3, 4}

    def setup(self, folder):
        run = Run(folder)
        run.create()
        for step in (1, 2, 3):
            run.save(snapshot(step), is_best=step == 1, keep=9)

    def act(self, folder):
        Run(folder).save(snapshot(4), is_best=self.is_best, keep=2)

    def check(self, folder, code):
        run = Run(folder)
        found, best = good(run), int(run.best().name[5:])
        assert len(found) >= 3 if not self.is_best or best == 1 else len(found) >= 2
        assert best in (1, self.best_after)
        assert 3 in found
        if code == DONE:
            assert 4 in found
            assert best == self.best_after

    def again(self, folder):
        self.act(folder)
        run = Run(folder)
        run.save(snapshot(5), is_best=False, keep=3)  # sweeps what is left
        assert int(run.best().name[5:]) == self.best_after
        assert {*self.after, 5} <= good(run) | {2}
        assert len(good(run)) <= 4
        clean(run)


class SaveBest(Save):
    """The same, and the fourth becomes the best; the first goes."""

    is_best, best_after, after = True, 4, {3, 4}


class MarkBest(Save):
    best_after, after = 2, {2, 3}

    def act(self, folder):
        try:
            Run(folder).mark_best(Run(folder).checkpoints / "step-00000002")
        except OSError as error:
            raise UserError(str(error)) from None

    def check(self, folder, code):
        run = Run(folder)
        assert good(run) == {1, 2, 3}
        assert int(run.best().name[5:]) in ({2} if code == DONE else {1, 2})

    def again(self, folder):
        self.act(folder)
        assert Run(folder).best().name == "step-00000002"
        assert not (folder / ".partial-best").exists()


class FallBack(Save):
    """The newest of three is damaged, and was the best."""

    def setup(self, folder):
        super().setup(folder)
        run = Run(folder)
        run.mark_best(run.newest())
        path = run.newest() / files.WEIGHTS
        content = bytearray(path.read_bytes())
        content[-1] ^= 1
        path.write_bytes(content)

    def act(self, folder):
        run = Run(folder)
        resumed, damaged = run.newest_good()
        run.fall_back(resumed, [path for path, _ in damaged], 1)

    def check(self, folder, code):
        run = Run(folder)
        there = {path.name for path in run.checkpoints.iterdir()}
        assert {"step-00000001", "step-00000002"} <= there
        assert int(run.best().name[5:]) in (1, 3)
        if code == DONE:
            assert good(run) == {1, 2}
            assert run.best().name == "step-00000001"

    def again(self, folder):
        self.act(folder)
        self.check(folder, DONE)
        assert (Run(folder).checkpoints / "damaged-step-00000003").is_dir()


class Log:
    """A resume drops the lines of step 3, then two lines are written."""

    def journal(self, folder):
        return Journal(Run(folder), Console(quiet=True), 9, tensorboard=False)

    def setup(self, folder):
        Run(folder).create()
        with self.journal(folder).opened(0):
            for step in (1, 2, 3):
                self.journal(folder).record("train", step, {"loss": 1 / step})

    def act(self, folder):
        journal = self.journal(folder)
        with journal.opened(2):
            journal.record("train", 3, {"loss": 0.25})
            journal.record("evaluation", 3, {"loss": 0.5})

    def check(self, folder, code):
        values = [(event["step"], event["loss"]) for event in read_log(Run(folder).log)]
        assert values[:2] == [(1, 1.0), (2, 0.5)]
        new = [(3, 0.25), (3, 0.5)]
        assert values[2:] == [(3, 1 / 3)] or values[2:] == new[: len(values) - 2]
        if code == DONE:
            assert values[2:] == new

    def again(self, folder):
        self.act(folder)
        self.check(folder, DONE)
        assert len(Run(folder).log.read_text().splitlines()) == 4


class Cache:
    """Items are added to a feature cache that a kill has left torn."""

    header = Header({"encoder": "none"}, 3)

    def vectors(self, number):
        return np.full((number + 1, 3), number, np.float16)

    def add(self, folder, numbers):
        with writing(folder, self.header) as known:
            numbers = [number for number in numbers if str(number) not in known]
            append(folder, [(str(n), f"stamp {n}", self.vectors(n)) for n in numbers])

    def setup(self, folder):
        self.add(folder, range(3))
        with (folder / "features.f16").open("ab") as file:
            file.write(b"torn")
        with (folder / "rows.jsonl").open("ab") as file:
            file.write(b'["7", "sta')

    def act(self, folder):
        self.add(folder, range(6))

    def check(self, folder, code):
        cache = FeatureCache(folder)
        assert {"0", "1", "2"} <= set(cache.ids)
        for name in cache.ids:
            np.testing.assert_array_equal(cache.read([name]).values[0], self.vectors(int(name)))
        assert code != DONE or len(cache) == 6

    def again(self, folder):
        self.act(folder)
        self.check(folder, DONE)
        assert (folder / "features.f16").stat().st_size == FeatureCache(folder).bytes


class Average(Save):
    """The mean of three checkpoints."""

    def act(self, folder):
        average_checkpoints(folder, folder / "mean")

    def check(self, folder, code):
        assert good(Run(folder)) == {1, 2, 3}
        assert code != DONE or (folder / "mean").is_dir()
        if (folder / "mean").exists():
            files.verify(folder / "mean")
            assert files.load_tensors(folder / "mean" / files.WEIGHTS)["w"][0] == 2

    def again(self, folder):
        if not (folder / "mean").exists():
            self.act(folder)
        self.check(folder, DONE)


OPERATIONS = {
    "save and prune": Save(),
    "save the best and prune": SaveBest(),
    "mark best": MarkBest(),
    "fall back": FallBack(),
    "log": Log(),
    "feature cache": Cache(),
    "average": Average(),
}


def fresh(template, folder):
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(template, folder)
    return folder


def walk(name, root, kinds):
    operation, template = OPERATIONS[name], root / "template"
    operation.setup(template)
    operation.again(fresh(template, root / "run"))  # works at all; and everything is imported
    faults, wrong, outcomes = 0, [], Counter()
    for kind in kinds:
        number, hit = 0, True
        while hit:
            number += 1
            folder = fresh(template, root / "run")
            code, hit = run_with_fault(partial(operation.act, folder), kind, number)
            faults += hit
            outcomes[f"{kind}: {code}"] += hit
            try:
                assert code != TRACEBACK, "an error that is not the user's"
                operation.check(folder, code)
                operation.again(folder)
            except Exception as error:
                wrong.append(f"{kind} at call {number} (exit {code}): {error!r}")
    return {"faults": faults, "wrong": wrong, "outcomes": dict(outcomes)}


if __name__ == "__main__":
    if sys.argv[1] == "possible":  # exit code 0 where a child can be traced
        sys.exit(run_with_fault(lambda: os.stat("/"), "kill", 1)[0] is not None)
    print(json.dumps(walk(sys.argv[1], Path(sys.argv[2]), sys.argv[3:] or KINDS)))
