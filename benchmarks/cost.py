"""What describing costs: processor seconds of one core for a photo, a sentence, a second of sound.

    python -m benchmarks.cost [photos sentences sound around engines] [--recogniser MODEL]

Seconds are those that the processor spent (`time.process_time`), so that a busy machine shows the
same; what else a run of millions needs is measured beside them: listing, reading, recording, and
what Ray adds to a batch.
"""

from __future__ import annotations

import argparse
import io
import itertools
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import sightline
from benchmarks.data import data_path
from benchmarks.machine import describe as machine
from sightline.bulk.results import Results
from sightline.bulk.sources import Item, Kind, Shard, batches, shards
from sightline.media.text import read_lines

PHOTOS, SENTENCES, ROWS = 160, 1000, 20_000
YEAR = 365.25 * 24 * 3600
PICTURES = Kind("file", "image")


def spent(work: Callable[[], Any]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def show(what: str, seconds: float, count: int, unit: str) -> None:
    each = seconds / count
    print(
        f"{what:44} {1e3 * each:9.3f} ms a {unit:8} {1 / each:10,.1f} a second   "
        f"a million {1e6 * each / 3600:8.2f} h, a billion {1e9 * each / YEAR:7.3f} years",
        flush=True,
    )


def photos(model: str) -> None:
    from PIL import Image

    paths = sorted(data_path("flickr8k", "images").iterdir())[:PHOTOS]
    describer = sightline.load(model)
    describer.describe(paths[:16])  # what is done once
    read = [describer.reader.read(path) for path in paths]
    seconds = spent(lambda: [describer.reader.read(path) for path in paths])
    show("photo of 320 × 240: reading", seconds, PHOTOS, "photo")
    show("  encoding and search", spent(lambda: describer.describe_inputs(read)), PHOTOS, "photo")
    show("  together", spent(lambda: describer.describe(paths)), PHOTOS, "photo")
    greedy = spent(lambda: describer.describe(paths, beam=1))
    show("  together, beam 1", greedy, PHOTOS, "photo")
    large = io.BytesIO()
    with Image.open(paths[0]) as small:
        small.resize((4000, 3000), Image.Resampling.BICUBIC).save(large, "JPEG", quality=90)
    content = large.getvalue()
    seconds = spent(lambda: [describer.reader.read(content) for _ in range(8)])
    show(f"photo of 12 megapixels ({len(content) / 1e6:.1f} MB): reading", seconds, 8, "photo")
    size = sum(path.stat().st_size for path in paths) / len(paths)
    print(f"  a photo of 320 × 240 has {size / 1e3:.1f} kB")


def sentences(model: str) -> None:
    lines = read_lines(data_path("multi30k", "test_2016_flickr.en.gz"))
    describer = sightline.load(model)
    describer.describe(lines[:64])
    words = sum(len(line.split()) for line in lines) / len(lines)
    show(f"sentence of {words:.1f} words ({model})", spent(lambda: describer.describe(lines)),
         len(lines), "sentence")  # fmt: skip
    show("  beam 1", spent(lambda: describer.describe(lines, beam=1)), len(lines), "sentence")


def sound(model: str) -> None:
    import soundfile

    paths = sorted(data_path("speechocean762").rglob("*.opus"))[:60]
    describer = sightline.load(model)
    describer.describe(paths[:8])
    length = round(sum(soundfile.info(path).duration for path in paths))
    read = [describer.reader.read(path) for path in paths]
    show("sound: reading", spent(lambda: [describer.reader.read(p) for p in paths]), length,
         "second")  # fmt: skip
    show("  encoding and search", spent(lambda: describer.describe_inputs(read)), length, "second")


def around(folder: Path) -> None:
    """What is not the model."""
    (folder / "photos").mkdir()
    for number in range(ROWS):
        (folder / "photos" / f"{number:06}.jpg").touch()
    seconds = spent(lambda: [shard.count(PICTURES) for shard in _shards(folder / "photos")])
    show("listing a folder", seconds, ROWS, "file")
    content = sorted(data_path("flickr8k", "images").iterdir())[0].read_bytes()
    with tarfile.open(folder / "shard.tar", "w") as archive:
        for number in range(4000):
            member = tarfile.TarInfo(f"{number:06}.jpg")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    (shard,) = _shards(folder / "shard.tar")
    show("reading a shard", spent(lambda: sum(1 for _ in shard.items(PICTURES))), 4000, "photo")
    for form in ("parquet", "jsonl"):
        for size in (16, 256):
            results = Results.open(folder / f"{form}-{size}", form, {}, False)
            began = time.perf_counter()
            seconds = spent(lambda s=size, r=results: _record(r, s))  # type: ignore[misc]
            elapsed = time.perf_counter() - began
            show(f"recording rows ({form}, {size} a batch)", seconds, ROWS, "row")
            print(f"  with the waiting for the disk {1e3 * elapsed / ROWS:.3f} ms")
        again = spent(lambda f=form: Results.open(folder / f"{f}-16", f, {}, False))  # type: ignore[misc]
        show(f"taking up what is recorded ({form})", again, ROWS, "row")


def _shards(place: Path) -> list[Shard]:
    return list(shards([str(place)], PICTURES))


def _record(results: Results, size: int) -> None:
    row = {"text": "a brown dog runs through the grass", "score": -0.5, "confidence": 0.5,
           "alternatives": [], "error": None}  # fmt: skip
    rows = ({"input": f"/data/photos/{number:09}.jpg", **row} for number in range(ROWS))
    while some := list(itertools.islice(rows, size)):
        results.add(some)
    results.seal()


def ray_adds(folder: Path, size: int, count: int = 400) -> None:
    """A batch of items that are wrong already, so that no model works, through tasks and actor."""
    from sightline.bulk import on_ray
    from sightline.bulk.results import Seen
    from sightline.bulk.worker import Job
    from sightline.runtime.model_folder import find_model

    listed = folder / f"{size}.txt"
    listed.write_text("".join("\n" for _ in range(size * count)))  # empty sources: no search
    job = Job(find_model("en-de"))
    with on_ray.cluster("", 1):
        given = list(shards([str(listed)], Kind("text", "source"))), Kind("text", "source"), Seen()
        found = on_ray.describe(*given, job, 1, size)
        next(found)  # when the actor is there
        first, before = time.perf_counter(), time.process_time()
        rows = sum(len(some) for some in found)
        seconds, driver = time.perf_counter() - first, time.process_time() - before
    each = 1e3 * size / rows
    print(
        f"Ray, with one worker: {each * seconds:.1f} ms (elapsed) a batch of {size}, "
        f"{each * driver:.1f} ms of the driver's processor"
    )


def local_adds(folder: Path, size: int, count: int = 400) -> None:
    from sightline.bulk import local
    from sightline.bulk.worker import Job
    from sightline.runtime.model_folder import find_model

    some = batches((Item(str(n), data=b"") for n in range(size * count)), size)
    first = 0.0
    for _ in local.describe(some, Job(find_model("en-de")), 1):
        first = first or time.perf_counter()
    seconds = time.perf_counter() - first
    print(
        f"local, with one worker: {1e3 * seconds / (count - 1):.1f} ms (elapsed) a batch of {size}"
    )


def main() -> None:
    parts = ("photos", "sentences", "sound", "around", "engines")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*parts, []], default=[])
    parser.add_argument("--captioner", default="default")
    parser.add_argument("--translator", default="en-de")
    parser.add_argument("--recogniser", help="none ships")
    asked = parser.parse_args()
    wanted = asked.parts or parts
    print(machine(), flush=True)
    if "photos" in wanted:
        photos(asked.captioner)
    if "sentences" in wanted:
        sentences(asked.translator)
    if "sound" in wanted and asked.recogniser:
        sound(asked.recogniser)
    with tempfile.TemporaryDirectory() as name:
        if "around" in wanted:
            around(Path(name))
        if "engines" in wanted:
            local_adds(Path(name), 16)
            ray_adds(Path(name), 16)


if __name__ == "__main__":
    main()
