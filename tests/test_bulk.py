"""Very many inputs: every one has exactly one outcome, whatever dies on the way."""

import gzip
import io
import os
import re
import signal
import subprocess
import sys
import tarfile
import time
from collections import Counter
from contextlib import suppress

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import dying_workers
import sightline
from sightline.bulk import local, results, sources
from sightline.bulk.results import Results, Seen, read_part
from sightline.bulk.run import Plan, run
from sightline.bulk.sources import Item, Kind, shards
from sightline.bulk.worker import Job
from sightline.cli import app
from sightline.errors import DataError, UserError
from sightline.export.write import export
from small_models import pictures, save_captioner, save_translator

pytest.importorskip("onnx")
PICTURES, LINES = Kind("file", "image"), Kind("text", "source")
ONE = Plan(form="jsonl", workers=1)


@pytest.fixture(scope="module")
def captioner(tmp_path_factory):
    folder = tmp_path_factory.mktemp("captioner")
    export(save_captioner(folder / "run"), folder / "export")
    return folder / "export"


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    folder = tmp_path_factory.mktemp("translator")
    export(save_translator(folder / "run"), folder / "export")
    return folder / "export"


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Six pictures in two folders, one broken, and a file that is none."""
    folder = tmp_path_factory.mktemp("photos")
    (folder / "more").mkdir()
    for number, pixels in enumerate(pictures(6)):
        Image.fromarray(pixels).save(folder / ("more" if number % 2 else "") / f"{number}.png")
    (folder / "broken.jpg").write_bytes(b"\xff\xd8 no picture")
    (folder / "notes.md").write_text("not for the model")
    (folder / ".hidden.png").write_text("")
    return folder


def rows_of(summary):
    return [row for part in sorted(summary.folder.glob("part-*")) for row in read_part(part)]


def outcomes(summary):
    rows = rows_of(summary)
    assert len({row["input"] for row in rows}) == len(rows)
    return {os.path.basename(row["input"]): row for row in rows}


def archive(path, photos, more=()):
    with tarfile.open(path, "w:gz" if path.suffix == ".gz" else "w") as tar:
        for name, content in [*((p.name, p.read_bytes()) for p in photos), *more]:
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return path


# ------------------------------------------------------------------------------------- sources


def keys(named, kind):
    found = list(shards([str(each) for each in named], kind))
    listed = [item for shard in found for item in shard.items(kind)]
    counts = [shard.count(kind) for shard in found]
    assert sum(counts) == len([item for item in listed if "cannot be read on" not in item.error])
    return [os.path.basename(item.key) for item in listed]


def test_folders_patterns_and_files(photos):
    every = ["0.png", "2.png", "4.png", "broken.jpg", "1.png", "3.png", "5.png"]
    assert keys([photos], PICTURES) == every
    assert keys([photos / "*.png"], PICTURES) == ["0.png", "2.png", "4.png"]
    assert keys([photos / "**" / "[1-3].png"], PICTURES) == ["2.png", "1.png", "3.png"]
    assert keys([photos / "notes.md"], PICTURES) == ["notes.md"]  # named: the reader refuses it
    for nothing in (photos / "none", photos / "*.gif"):
        with pytest.raises(DataError, match=r"no such file|no file matches"):
            keys([nothing], PICTURES)
    with pytest.raises(DataError, match="nothing in this folder"):
        keys([photos], LINES)


@pytest.mark.parametrize("name", ["shard.tar", "shard.tar.gz"])
def test_a_shard_gives_its_pictures_and_a_cut_one_an_error(photos, tmp_path, name):
    inside = [photos / "0.png", photos / "2.png"]
    path = archive(tmp_path / name, inside, [("0.json", b"{}"), (".x.png", b"")])
    assert keys([tmp_path], PICTURES) == [f"{name}#0.png", f"{name}#2.png"]
    (shard,) = shards([str(path)], PICTURES)
    first = next(iter(shard.items(PICTURES)))
    assert first.data == inside[0].read_bytes()
    path.write_bytes(path.read_bytes()[: 1200 if name.endswith("tar") else -200])
    *_, last = shard.items(PICTURES)
    assert last.key == str(path)
    assert "cannot be read on" in last.error


def test_lines_of_texts_also_packed(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\r\n\ntwo")
    with gzip.open(tmp_path / "b.txt.gz", "wb") as file:
        file.write(b"three\n")
    assert keys([tmp_path], LINES) == ["a.txt#1", "a.txt#2", "a.txt#3", "b.txt.gz#1"]
    texts = [item.data for shard in shards([str(tmp_path)], LINES) for item in shard.items(LINES)]
    assert texts == [b"one", b"", b"two", b"three"]


def test_tables_of_bytes_paths_and_texts(photos, tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    content = (photos / "0.png").read_bytes()
    as_hugging_face = {"image": [{"bytes": content, "path": "0.png"}, None], "caption": ["a", "b"]}
    parquet.write_table(pa.table(as_hugging_face), tmp_path / "t.parquet")
    assert keys([tmp_path], PICTURES) == ["t.parquet#0", "t.parquet#1"]
    assert keys([tmp_path], LINES) == ["t.parquet#0", "t.parquet#1"]
    (shard,) = shards([str(tmp_path)], PICTURES)
    good, empty = shard.items(PICTURES)
    assert good.data == content
    assert "empty" in empty.error
    parquet.write_table(
        pa.table({"a": ["x"], "b": [str(photos / "0.png")]}), tmp_path / "t.parquet"
    )
    with pytest.raises(DataError, match="--column; there is a, b"):
        list(shard.items(PICTURES))
    (named,) = shard.items(Kind("file", "image", "b"))
    assert named.place == str(photos / "0.png")


def test_object_stores_through_pyarrow(photos, tmp_path, monkeypatch):
    fs = pytest.importorskip("pyarrow.fs")
    (tmp_path / "b").mkdir()
    archive(tmp_path / "b" / "shard.tar", [photos / "0.png"])
    (tmp_path / "b" / "1.png").write_bytes((photos / "more" / "1.png").read_bytes())
    store = fs.SubTreeFileSystem(str(tmp_path), fs.LocalFileSystem())

    class Stores:
        from_uri = staticmethod(lambda uri: (store, re.split("://(?:.*@)?|[?]", uri)[1]))

    monkeypatch.setattr(fs, "FileSystem", Stores)
    found = list(shards(["s3://b?region=x", "s3://key:secret@b/*.png?region=x"], PICTURES))
    items = [item for shard in found for item in shard.items(PICTURES)]
    assert [item.key.rpartition("/")[2] for item in items[1:]] == ["1.png"] * 2
    assert items[0].data == (photos / "0.png").read_bytes()
    assert sources.fetch(items[1].place) == (photos / "more" / "1.png").read_bytes()
    with pytest.raises(DataError, match="no such object"):
        sources.fetch("s3://b/none.png")
    assert [shard.count(PICTURES) for shard in found] == [None, 1, 1]


def test_large_inputs_travel_in_small_batches(monkeypatch):
    monkeypatch.setattr(sources, "TOGETHER", 10)
    items = [Item(str(size), data=b"x" * size) for size in (1, 1, 1, 20, 1, 6, 6, 1)]
    sizes = [[len(item.data) for item in batch] for batch in sources.batches(items, 3)]
    assert sizes == [[1, 1, 1], [20], [1, 6, 6], [1]]


# ------------------------------------------------------------------------------------- results


def test_a_set_of_keys_as_large_as_it_gets(monkeypatch):
    monkeypatch.setattr(results, "MERGED", 10)
    seen = Seen()
    assert all(seen.add(f"key {number}") for number in range(35))
    assert not seen.add("key 3")
    assert not seen.add("key 34")
    assert "key 35" not in Seen.of(seen.sorted())
    assert len(seen) == 35


def row(name, error=None):
    text = None if error else name
    return {"input": name, "text": text, "score": None, "confidence": None, "alternatives": None,
            "error": error}  # fmt: skip


@pytest.mark.parametrize("form", ["jsonl", "parquet"])
def test_a_crash_between_any_two_writes_loses_no_row_and_doubles_none(form, tmp_path, monkeypatch):
    if form == "parquet":
        pytest.importorskip("pyarrow")
    monkeypatch.setattr(results, "PART", 3)
    writes = []

    def dying(name):
        """The write of this number never happens, nor any after it."""
        real = getattr(os, name)

        def call(*arguments, **options):
            writes.append(name)
            if len(writes) >= fatal:
                raise KeyboardInterrupt
            return real(*arguments, **options)

        return call

    for fatal in range(1, 45):
        folder, writes[:] = tmp_path / str(fatal), []
        told = []
        opened = Results.open(folder, form, {}, False)
        with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
            for name in ("fsync", "replace", "unlink"):
                patch.setattr(os, name, dying(name))
            for number in range(8):
                opened.add([row(f"input {number}")])
                told.append(f"input {number}")
            opened.seal()
        found = Results.open(folder, form, {}, False)
        names = [each["input"] for part in found.parts() for each in read_part(part)]
        assert len(names) == len(set(names)) == len(found.seen)
        assert set(told) <= set(names) <= {f"input {number}" for number in range(8)}
    assert len(writes) < fatal  # the last ones ended whole


def test_failures_are_kept_until_they_are_to_be_retried(tmp_path):
    opened = Results.open(tmp_path, "jsonl", {}, False)
    opened.add([row("good"), row("bad", "broken"), row("good")])
    opened.seal()
    again = Results.open(tmp_path, "jsonl", {}, False)
    assert ("bad" in again.seen, again.failed, again.dropped) == (True, 1, 0)
    again = Results.open(tmp_path, "jsonl", {}, True)
    assert ("bad" in again.seen, "good" in again.seen, again.dropped) == (False, True, 1)
    with pytest.raises(UserError, match="go on with --format jsonl"):
        Results.open(tmp_path, "parquet", {}, False)


# ------------------------------------------------------------------------------ the local engine


def test_every_input_has_a_row_and_a_restart_does_nothing_again(captioner, photos, tmp_path):
    done = run([str(photos), str(photos / "0.png")], captioner, tmp_path, plan=ONE)
    assert (done.described, done.failed, done.before) == (6, 1, 0)
    found = outcomes(done)
    assert "broken.jpg" in found["broken.jpg"]["error"]
    model = sightline.load(captioner)
    for name in ("0.png", "more/1.png"):
        expected = model.describe(photos / name)
        assert found[os.path.basename(name)]["text"] == expected.text
        assert found[os.path.basename(name)]["score"] == pytest.approx(expected.score, abs=1e-5)
    before = {part: part.read_bytes() for part in done.folder.glob("part-*")}
    again = run([str(photos)], captioner, tmp_path, plan=ONE)
    assert (again.described, again.failed, again.before) == (0, 0, 7)
    assert {part: part.read_bytes() for part in done.folder.glob("part-*")} == before


def test_only_what_failed_is_retried_and_other_searches_are_other_outcomes(translator, tmp_path):
    texts = tmp_path / "texts.txt"
    texts.write_bytes(b"abc\n\xff\n" + b"a bad cab\n" * 3)
    output = tmp_path / "out"
    done = run([str(texts)], translator, output, task="translate", plan=ONE)
    assert (done.described, done.failed) == (4, 1)
    assert "not UTF-8" in outcomes(done)["texts.txt#2"]["error"]
    texts.write_bytes(texts.read_bytes().replace(b"\xff", b"feed"))
    retry = Plan(form="jsonl", workers=1, retry_failed=True)
    again = run([str(texts)], translator, output, task="translate", plan=retry)
    assert (again.described, again.failed, again.before, again.retried) == (1, 0, 4, 1)
    assert len(outcomes(again)) == 5
    other = run([str(texts)], translator, output, asked={"beam": 1, "n_best": 2}, plan=ONE)
    assert (other.described, other.before) == (5, 0)
    assert other.folder != again.folder
    assert len(outcomes(other)["texts.txt#1"]["alternatives"]) == 1


def test_a_changed_model_is_another_and_its_card_is_not_looked_at(captioner, tmp_path):
    folder = tmp_path / "copy"
    folder.mkdir()
    for path in captioner.iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    before = Job(folder).fingerprint()
    (folder / "card.md").write_text("more is known of it")
    assert Job(folder).fingerprint() == before == Job(captioner).fingerprint()
    config = folder / "config.yaml"
    config.write_text(config.read_text().replace("beam: 3", "beam: 4"))
    assert Job(folder).fingerprint() != before


def test_a_model_of_another_task_and_one_that_is_none_are_refused(captioner, photos, tmp_path):
    with pytest.raises(UserError, match="not for translate"):
        run([str(photos)], captioner, tmp_path, task="translate", plan=ONE)
    with pytest.raises(UserError, match="no model at"):
        run([str(photos)], tmp_path / "none", tmp_path, plan=ONE)


def test_an_input_that_kills_its_worker_is_a_failure_and_no_other_suffers(
    translator, tmp_path, monkeypatch
):
    monkeypatch.setattr(local, "work", dying_workers.fragile)
    texts = ["abc", "once", "deadly", "bed", "dad"]
    items = [Item(text, str(tmp_path), text.encode()) for text in texts]
    rows = [
        row for some in local.describe([items[:3], items[3:]], Job(translator), 2) for row in some
    ]
    assert Counter(row["input"] for row in rows) == Counter(texts)
    assert [row["input"] for row in rows if row["error"]] == ["deadly"]


def test_workers_that_cannot_begin_end_the_run(translator, monkeypatch):
    monkeypatch.setattr(local, "work", dying_workers.stillborn)
    with pytest.raises(UserError, match="die as they begin"):
        list(local.describe([[Item("a", data=b"abc")]], Job(translator), 1))


def recorded(output):
    return sum(path.read_bytes().count(b"\n") for path in output.glob("*/*part-*"))


def test_the_driver_killed_at_any_moment_loses_only_work_in_flight(
    translator, tmp_path, cli_environment
):
    lines = [" ".join("abcdefgh"[n % 8 : n % 5 + n % 8 + 1] * 3) for n in range(1200)]
    (tmp_path / "lines.txt").write_text("\n".join(lines))
    words = ["translate", "lines.txt", "--model", translator, "--engine", "local", "-o", "out"]
    words += ["--format", "jsonl", "--workers", "2", "--quiet"]
    call = [sys.executable, "-m", "sightline", *map(str, words)]
    for least in (1, 500):
        driver = subprocess.Popen(call, cwd=tmp_path, env=cli_environment)
        while driver.poll() is None and recorded(tmp_path / "out") < least:
            time.sleep(0.01)
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    there = recorded(tmp_path / "out")
    assert 500 <= there < 1200
    done = subprocess.run(call, cwd=tmp_path, env=cli_environment, timeout=120, check=True)
    assert done.returncode == 0
    (folder,) = (tmp_path / "out").iterdir()
    rows = [row for part in sorted(folder.glob("part-*")) for row in read_part(part)]
    assert Counter(row["input"] for row in rows).total() == len({r["input"] for r in rows}) == 1200
    texts = {int(row["input"].rpartition("#")[2]): row["text"] for row in rows}
    some = np.random.default_rng(0).choice(1200, 40, replace=False)
    model = sightline.load(translator)
    expected = model.describe([lines[number] for number in some])
    assert [texts[number + 1] for number in some] == [each.text for each in expected]


# ------------------------------------------------------------------------------------ the command


def test_the_commands_of_tasks_have_it_and_say_so(captioner, photos, tmp_path):
    def invoke(*arguments):
        return CliRunner().invoke(app, [str(argument) for argument in arguments])

    for command in ("describe", "translate", "transcribe", "classify"):
        assert "--engine" in invoke(command, "--help").output
    given = "describe", photos, "-o", tmp_path / "out", "--engine"
    done = invoke(*given, "local", "--model", captioner, "--workers", 1, "--format", "jsonl")
    assert done.exit_code == 2  # one is broken
    assert "6 described, 1 failed" in done.output
    assert "No such option" in invoke(*given, "local", "--figure", "x").output
    for more, message in (
        (["cloud"], "--engine is local or ray"),
        (["local", "--address", "auto"], "give --engine ray"),
        (["local", "--format", "csv"], "--format is parquet or jsonl"),
    ):
        with pytest.raises(UserError, match=message):
            raise invoke(*given, *more).exception


@pytest.mark.slow
def test_ray_gives_the_rows_of_the_local_engine(captioner, photos, tmp_path):
    pytest.importorskip("ray")
    archive(tmp_path / "shard.tar", [photos / "0.png", photos / "broken.jpg"])
    given = [str(photos), str(tmp_path / "shard.tar")]
    here = outcomes(run(given, captioner, tmp_path / "local", plan=ONE))
    on_ray = run(given, captioner, tmp_path / "ray", plan=Plan("ray", "jsonl", workers=2))
    assert (on_ray.described, on_ray.failed) == (7, 2)
    there = outcomes(on_ray)
    for name in here.keys() | there.keys():  # batches differ, and so does rounding
        score = there[name].pop("score")
        assert score == pytest.approx(here[name].pop("score"), abs=1e-5)
    assert there == here
    again = run(given, captioner, tmp_path / "ray", plan=Plan("ray", "jsonl", workers=1))
    assert (again.described, again.failed, again.before) == (0, 0, 9)
