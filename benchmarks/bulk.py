"""Very many photos: each has one outcome though driver and workers are killed; and how fast.

    python -m benchmarks.bulk --files 20000 --work /tmp/bulk

The folder is made of Flickr8k's photos, with copies and one broken file of forty. It is described
undisturbed by one local process, then by Ray and by the local engine while the driver is killed
twice and a worker five times (SIGKILL), and the rows are compared. What is finished in the work
folder is not done again. Last, `--speed` photos by one and two workers of each engine, and by two
plain processes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.data import data_path
from benchmarks.machine import describe as machine
from sightline.bulk.results import Row, read_part

SEED = 0
BROKEN = 40  # one file of so many
MARK = "SIGHTLINE_BENCHMARK"  # in the environment of what is begun here
PLAIN = """
import sys, sightline
from pathlib import Path
photos = Path(sys.argv[2]).read_text().splitlines()[int(sys.argv[3])::int(sys.argv[4])]
model = sightline.load(sys.argv[1])
for at in range(0, len(photos), 16):
    print(*(d.text for d in model.describe(photos[at:at + 16])), sep="\\n")
"""


def make(folder: Path, files: int) -> None:
    """Photos under names of their own; every fortieth file is broken in one of four ways."""
    photos = sorted(data_path("flickr8k", "images").iterdir())
    breaks = (
        lambda p: b"",
        lambda p: b"no picture\n",
        lambda p: p[: len(p) // 2],
        lambda p: p[99:],
    )
    folder.mkdir(parents=True, exist_ok=True)
    for number, photo in zip(range(files), itertools.cycle(photos), strict=False):
        path = folder / f"{number % 20:02}" / f"{number:06}.jpg"
        path.parent.mkdir(exist_ok=True)
        if path.is_symlink() or path.exists():
            continue
        if number % BROKEN:
            path.symlink_to(photo)
        else:
            path.write_bytes(breaks[number // BROKEN % len(breaks)](photo.read_bytes()))


def rows_in(output: Path) -> Iterator[Row]:
    """All that is recorded, journals too."""
    for folder in output.glob("model=*"):
        for path in sorted(folder.glob("part-*")):
            yield from read_part(path)
        for journal in folder.glob(".part-*.journal"):
            for line in journal.read_bytes().splitlines():
                try:
                    yield json.loads(line)
                except ValueError:  # cut off
                    continue


def recorded(output: Path) -> int:
    return sum(1 for _ in rows_in(output))


def command(
    source: object, output: Path, engine: str, workers: int, model: str
) -> subprocess.Popen[bytes]:
    words = ["describe", source, "--engine", engine, "--workers", workers, "-o", output]
    words += ["--model", model]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", MARK: str(output)}
    call = [sys.executable, "-m", "sightline", *map(str, words)]
    return subprocess.Popen(call, env=environment, start_new_session=True)


def descendants(process: int) -> list[int]:
    try:
        listed = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    except OSError:
        return []
    return [each for child in map(int, listed) for each in (child, *descendants(child))]


def workers_of(driver: int) -> list[int]:
    """The processes that hold a model: Ray's actors, or the local engine's."""
    found = []
    for each in descendants(driver):
        try:
            name = Path(f"/proc/{each}/cmdline").read_bytes()
        except OSError:
            continue
        if (b"ray::" in name and b"Actor" in name) or b"spawn_main" in name:
            found.append(each)
    return found


def disturbed(source: Path, output: Path, engine: str, model: str, files: int) -> Counter[str]:
    """Two workers; one is killed five times and the driver twice, evenly over the run."""
    chance, killed = random.Random(SEED), Counter[str]()
    ends = [("driver", 0.3), ("driver", 0.7), *(("worker", at) for at in (0.1, 0.2, 0.4, 0.5, 0.8))]
    begun = recorded(output) / files
    due = [each for each in sorted(ends, key=lambda each: each[1]) if each[1] > begun]
    driver = command(source, output, engine, 2, model)
    while driver.poll() is None:
        time.sleep(0.5)
        if not due or recorded(output) < due[0][1] * files:
            continue
        what, _ = due[0]
        living = workers_of(driver.pid)
        if what == "worker" and not living:
            continue
        due.pop(0)
        killed[what] += 1
        os.kill(driver.pid if what == "driver" else chance.choice(living), signal.SIGKILL)
        print(f"  {what} killed at {recorded(output):,} outcomes", flush=True)
        if what == "driver":
            driver.wait()
            time.sleep(5)
            print(f"  {len(left_over(output))} processes left behind", flush=True)
            driver = command(source, output, engine, 2, model)
    return killed


def left_over(output: Path) -> list[int]:
    """Processes that a driver began for this output, or what it began."""
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if f"{MARK}={output}".encode() in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
        except OSError:
            continue
    return found


def compare(reference: Path, output: Path, files: int) -> None:
    ours, theirs = [{r["input"]: r for r in rows_in(each)} for each in (output, reference)]
    times = Counter(Counter(row["input"] for row in rows_in(output)).values())
    same = sum(ours[key]["text"] == theirs[key]["text"] for key in theirs if key in ours)
    errors = sum(row["error"] is not None for row in ours.values())
    print(f"  {len(ours):,} of {files:,} inputs have an outcome, {times[1]:,} of them one")
    print(f"  {errors:,} failed; {same:,} texts (or failures) as in the undisturbed local run")
    assert len(ours) == files == times[1]
    assert same == files


def timed(photos: Path, work: Path, engine: str, workers: int, model: str) -> float:
    """Photos a second from the first outcome to the last: starting is not counted."""
    output = work / f"speed-{engine}-{workers}-{time.time_ns()}"
    first, count = 0.0, 0
    process = command(photos, output, engine, workers, model)
    while process.poll() is None:
        time.sleep(0.05)
        if not first and (count := recorded(output)):
            first = time.perf_counter()
        if recorded(output) == len(list(photos.iterdir())):
            break
    last = time.perf_counter()
    process.wait()
    return (recorded(output) - count) / (last - first)


def plain(photos: Path, model: str, workers: int) -> float:
    """The same of processes that share nothing, without the start of the slower."""
    names = photos.with_suffix(".txt")
    names.write_text("\n".join(map(str, sorted(photos.iterdir()))))
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    processes = []
    for number in range(workers):
        call = [sys.executable, "-c", PLAIN, model, str(names), str(number), str(workers)]
        processes.append(subprocess.Popen(call, env=environment, stdout=subprocess.PIPE, text=True))
    count = len(names.read_text().splitlines())
    outputs = [process.stdout for process in processes]
    for output in outputs:
        assert output is not None
        output.readline()
    first = time.perf_counter()
    for process in processes:
        process.communicate()
    return (count - 16 * workers) / (time.perf_counter() - first)


def speed(work: Path, count: int, model: str) -> None:
    photos = work / f"speed-{count}"
    make(photos, 0)
    for number, photo in enumerate(sorted(data_path("flickr8k", "images").iterdir())[:count]):
        path = photos / f"{number:06}.jpg"
        if not path.is_symlink():
            path.symlink_to(photo)
    print("photos a second      1 worker   2 workers   times")
    for name in ("plain", "local", "ray"):
        rates = [
            plain(photos, model, workers)
            if name == "plain"
            else timed(photos, work, name, workers, model)
            for workers in (1, 2)
        ]
        print(f"{name:16} {rates[0]:12.1f} {rates[1]:11.1f} {rates[1] / rates[0]:7.2f}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=20_000)
    parser.add_argument("--speed", type=int, default=800)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--model", default="default")
    parser.add_argument("--engines", nargs="*", default=["ray", "local"])
    asked = parser.parse_args()
    print(machine(), f"load {os.getloadavg()[0]:.1f}", flush=True)
    source, reference = asked.work / f"photos-{asked.files}", asked.work / f"one-{asked.files}"
    make(source, asked.files)
    if asked.engines:
        began = time.monotonic()
        command(source, reference, "local", 1, asked.model).wait()
        print(
            f"undisturbed, one process: {recorded(reference):,} in {time.monotonic() - began:.0f} s"
        )
    for engine in asked.engines:
        output = asked.work / f"{engine}-{asked.files}"
        began = time.monotonic()
        killed = disturbed(source, output, engine, asked.model, asked.files)
        print(f"{engine}: {dict(killed)} killed, {time.monotonic() - began:.0f} s", flush=True)
        compare(reference, output, asked.files)
    if asked.speed:
        speed(asked.work, asked.speed, asked.model)


if __name__ == "__main__":
    main()
