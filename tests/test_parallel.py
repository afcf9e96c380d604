"""Parallel text files into a manifest, and everything that can be wrong with them."""

import gzip
import json

import pytest
from typer.testing import CliRunner

from sightline.commands.prepare import prepare
from sightline.data.manifest import read_manifest, write_manifest
from sightline.data.parallel import from_parallel
from sightline.errors import DataError
from sightline.media.text import read_lines


def files(folder, **contents):
    paths = []
    for name, content in contents.items():
        path = folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        paths.append(path)
    return paths


def test_line_by_line_two_files_become_pairs(tmp_path):
    train = files(tmp_path, de="ein Hund\nzwei\n", en="a dog\ntwo\n")
    dev = files(tmp_path, dev_de="drei", dev_en="three", more="3")
    prepared = from_parallel({"train": train, "dev": dev})
    assert prepared.notes == []
    assert prepared.summary() == "3 items with 4 texts (train 2, dev 1, test 0)"
    first, _, last = prepared.examples
    assert (first.id, first.source, first.targets) == ("train-1", "ein Hund", ("a dog",))
    assert last.targets == ("three", "3")
    write_manifest(tmp_path / "m.jsonl", prepared.examples)
    assert read_manifest(tmp_path / "m.jsonl", medium="source") == prepared.examples


def test_unequal_line_counts_are_an_error_with_both_counts(tmp_path):
    pair = files(tmp_path, de="a\nb\nc\n", en="a\nb\n")
    with pytest.raises(DataError, match=r"de has 3 lines and .*en has 2"):
        from_parallel({"train": pair})


def test_invalid_utf8_is_named_by_line_and_offset(tmp_path):
    pair = files(tmp_path, de=b"gut\nsch\xf6n\n", en="good\nfine\n")
    with pytest.raises(DataError, match=r"de:2: not UTF-8: byte 7 is 0xf6"):
        from_parallel({"train": pair})


def test_pairs_with_an_empty_side_are_dropped_with_a_note_and_the_rest_keep_their_lines(tmp_path):
    pair = files(tmp_path, de="eins\n\ndrei\n \nfünf\n", en="one\ntwo\n\t\nfour\nfive\n")
    prepared = from_parallel({"train": pair})
    assert [example.id for example in prepared.examples] == ["train-1", "train-5"]
    assert prepared.notes == ["train: 3 left out: a side is empty (for example line 2)"]


def test_only_newlines_end_a_line(tmp_path):
    """Python's splitlines would make four lines of the first, and shift it against the second."""
    pair = files(tmp_path, de="ein\u2028zwei\x0bdrei\rvier\x85\r\nfünf\r\n", en="one\nfive\n")
    prepared = from_parallel({"train": pair})
    assert [example.source for example in prepared.examples] == ["ein zwei drei vier", "fünf"]
    assert prepared.notes == [
        "train: 1 with control characters, replaced by spaces (for example line 1)"
    ]


def test_control_characters_and_zero_bytes_leave_a_manifest_that_can_be_read(tmp_path):
    pair = files(tmp_path, de="a\x00b\x1b[31m\n", en="\ufeffx\x07\n")
    prepared = from_parallel({"train": pair})
    write_manifest(tmp_path / "m.jsonl", prepared.examples)
    (example,) = read_manifest(tmp_path / "m.jsonl")
    assert (example.source, example.targets) == ("a b [31m", ("x",))


def test_right_to_left_and_cjk_text_and_long_lines_pass_unchanged(tmp_path):
    long = " ".join(["word"] * 10_000)
    pair = files(
        tmp_path, de=f"مرحبا بالعالم\n你好，世界\n{long}\n", en=f"שלום\nこんにちは\n{long}\n"
    )
    prepared = from_parallel({"train": pair})
    assert [e.source for e in prepared.examples] == ["مرحبا بالعالم", "你好，世界", long]
    assert prepared.notes == [
        "train: 1 with more than 1,000 words; are they sentences? (for example line 3)"
    ]


@pytest.mark.parametrize("content", ["", "\n\n", " \n"])
def test_files_without_text_are_refused(tmp_path, content):
    pair = files(tmp_path, de=content, en=content)
    with pytest.raises(DataError, match="no pair of lines with text"):
        from_parallel({"train": pair})


def test_compressed_files_are_unpacked_and_damaged_or_missing_ones_named(tmp_path):
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"ein Hund\n"))
    assert read_lines(tmp_path / "a.gz") == ["ein Hund"]
    (tmp_path / "b.gz").write_bytes(gzip.compress(b"ein Hund\n" * 500)[:30])
    with pytest.raises(DataError, match=r"b\.gz cannot be unpacked"):
        read_lines(tmp_path / "b.gz")
    with pytest.raises(DataError, match=r"no text file at .*absent"):
        read_lines(tmp_path / "absent")
    with pytest.raises(DataError, match="is a folder"):
        read_lines(tmp_path)


def test_the_command_writes_the_manifest_with_its_references(tmp_path):
    files(tmp_path, de="ein\n", en="one\n", vde="zwei\n", ven="two\n", ven2="2\n")
    names = {name: str(tmp_path / name) for name in ("de", "en", "vde", "ven", "ven2", "m.jsonl")}
    arguments = ["parallel", "--train", names["de"], names["en"], "--out", names["m.jsonl"]]
    dev = ["--dev", names["vde"], names["ven"], "--dev-reference", names["ven2"]]
    done = CliRunner().invoke(prepare, [*arguments, *dev])
    assert done.exit_code == 0, done.output
    assert "2 items with 3 texts (train 1, dev 1, test 0)" in done.output
    lines = [json.loads(line) for line in (tmp_path / "m.jsonl").read_text().splitlines()]
    dev_item = {"id": "m-dev-1", "source": "zwei", "targets": ["two", "2"], "split": "dev"}
    assert lines[1] == dev_item  # m: manifests of other names can be trained on with it
    alone = CliRunner().invoke(prepare, [*arguments, "--test-reference", names["en"]])
    assert isinstance(alone.exception, DataError)


def test_multi30k_converts_whole(shared_data):
    folder = shared_data / "multi30k"
    if not folder.is_dir():
        pytest.skip(f"{folder} is not here")
    pairs = {
        "train": [folder / "train.en.gz", folder / "train.de.gz"],
        "dev": [folder / "val.en.gz", folder / "val.de.gz"],
        "test": [folder / "test_2016_flickr.en.gz", folder / "test_2016_flickr.de.gz"],
    }
    prepared = from_parallel(pairs)
    assert (
        prepared.summary() == "31,014 items with 31,014 texts (train 29,000, dev 1,014, test 1,000)"
    )
    assert prepared.notes == []
