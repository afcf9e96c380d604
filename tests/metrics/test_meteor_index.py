"""METEOR's index is built once, whole or not at all, and damage to it is noticed."""

import gzip
import os
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest

import sightline
from sightline.errors import UserError
from sightline.metrics.meteor import index as meteor_index
from sightline.metrics.meteor.index import (
    Index,
    build_index,
    cache_folder,
    open_index,
    package_files,
    position_factors,
    read_index,
    word_hash,
)
from sightline.metrics.meteor.normalise import ANY, BEFORE_NUMBER, java_hash
from sightline.metrics.meteor.synonyms import SynonymTable

FILES = {
    "function/english.words": "the\na\nof\n",
    "nonbreaking/english.prefixes": "# titles\nMr\nNo #NUMERIC_ONLY#\n\n",
    "synonym/english.exceptions": "mouse\nmice\nbe\nis was\n",
    "synonym/english.synsets": "mouse\n7 8\nrat\n7\nbe\n1\nhot_dog\n5\ndog\n5 6\nhop\n3\nhope\n4\n",
}
PARAPHRASES = [
    ("a dog", "one dog"),
    ("a dog", "a small hound"),
    ("dog", "hound"),
    ("a dog", "the dog"),
    ("because of", "due to the fact that it is"),
    ("été", "summer"),
]


@pytest.fixture
def tables(tmp_path: Path) -> tuple[Path, Path]:
    """A jar and a paraphrase table of METEOR's form, but small."""
    jar, table = tmp_path / "meteor.jar", tmp_path / "paraphrase.gz"
    with zipfile.ZipFile(jar, "w") as archive:
        for name, text in FILES.items():
            archive.writestr(name, text)
    table.write_bytes(gzip.compress("".join(f"0.5\n{a}\n{b}\n" for a, b in PARAPHRASES).encode()))
    return jar, table


@pytest.fixture
def built(tables: tuple[Path, Path], tmp_path: Path) -> Path:
    path = tmp_path / "cache" / "meteor.index"
    build_index(*tables, path)
    return path


def opened(path: Path) -> Index:
    index = read_index(path)
    assert index is not None
    return index


def phrase_hash(phrase: str) -> int:
    factors = position_factors(10).tolist()
    words = [word_hash(word.encode()) for word in phrase.split()]
    return sum(w * f for w, f in zip(words, factors, strict=False)) % 2**64


def start_builder(tables: tuple[Path, Path], path: Path, before: str = "") -> subprocess.Popen[str]:
    code = (
        f"import os, sys, time\n{before}\nfrom pathlib import Path\n"
        "from sightline.metrics.meteor.index import build_index\n"
        "build_index(*map(Path, sys.argv[1:]))\n"
    )
    source = str(Path(sightline.__file__).parents[1])
    return subprocess.Popen(
        [sys.executable, "-c", code, *map(str, tables), str(path)],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": source},
    )


def test_paraphrases_are_found_in_the_tables_order(built: Path) -> None:
    index = opened(built)
    assert index.longest_phrase == 7
    assert len(index.phrases) == len({phrase for phrase, _ in PARAPHRASES})
    for phrase in {phrase for phrase, _ in PARAPHRASES}:
        row = int(np.searchsorted(index.phrases, np.uint64(phrase_hash(phrase))))
        start, end = index.paraphrase_starts[row : row + 2]
        expected = [phrase_hash(other) for key, other in PARAPHRASES if key == phrase]
        assert index.paraphrases[start:end].tolist() == expected, phrase


def test_words_have_their_stems_and_synonym_sets(built: Path) -> None:
    index = opened(built)

    def facts(word: str) -> tuple[int, list[int], list[int]]:
        row = int(np.searchsorted(index.words, np.uint64(word_hash(word.encode()))))
        assert index.words[row] == word_hash(word.encode())
        return (
            int(index.stems[row]),
            index.synsets[index.synset_starts[row] : index.synset_starts[row + 1]].tolist(),
            index.own_synsets[index.own_starts[row] : index.own_starts[row + 1]].tolist(),
        )

    assert facts("mice") == (java_hash("mice"), [7, 8], [])
    assert facts("dog") == (java_hash("dog"), [5, 6], [5, 6])
    assert facts("because") == (java_hash("becaus"), [], [])
    assert index.function_words == {"the", "a", "of"}
    assert index.abbreviations == {"Mr": ANY, "No": BEFORE_NUMBER}


def test_base_forms_follow_the_first_suffix_rule_that_fits() -> None:
    table = SynonymTable.parse(
        FILES["synonym/english.exceptions"], FILES["synonym/english.synsets"]
    )
    assert table.synsets("dogs") == {5, 6}
    assert table.synsets("hoping") == {4}  # `hope` is tried before `hop`
    assert table.synsets("hopping") == set()  # METEOR does not undouble letters
    assert table.synsets("was") == {1}
    assert table.synsets("dogss") == set()
    assert "hot_dog" not in table.vocabulary()


def test_a_file_cut_short_anywhere_is_refused(built: Path) -> None:
    data = built.read_bytes()
    for length in [*range(0, len(data), 97), len(data) - 1]:
        built.write_bytes(data[:length])
        assert read_index(built) is None, length


def test_a_changed_byte_anywhere_is_noticed(built: Path) -> None:
    data = built.read_bytes()
    for at in range(0, len(data), 41):
        built.write_bytes(data[:at] + bytes([data[at] ^ 4]) + data[at + 1 :])
        assert read_index(built) is None, at


def test_another_format_is_refused(built: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(meteor_index, "FORMAT", meteor_index.FORMAT + 1)
    assert read_index(built) is None


def test_a_damaged_index_is_rebuilt(
    tables: tuple[Path, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("SIGHTLINE_CACHE", str(tmp_path / "own cache"))
    monkeypatch.setattr(meteor_index, "package_files", lambda: tables)
    open_index()
    assert capsys.readouterr().err.count("\n") == 1  # no terminal: one line
    (path,) = (tmp_path / "own cache").iterdir()
    good = path.read_bytes()
    open_index()
    assert capsys.readouterr().err == ""
    path.write_bytes(good[:-10])
    assert open_index().longest_phrase == 7
    assert path.read_bytes() == good


def test_other_tables_have_an_index_of_their_own(
    tables: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SIGHTLINE_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(meteor_index, "package_files", lambda: tables)
    open_index()
    tables[1].write_bytes(gzip.compress(b"0.5\na cat\none cat\n"))
    assert open_index().longest_phrase == 2
    assert len(list((tmp_path / "cache").iterdir())) == 2


def test_a_killed_builder_leaves_no_index(tables: tuple[Path, Path], tmp_path: Path) -> None:
    path = tmp_path / "cache" / "meteor.index"
    # stops after the data is written, before the rename
    pause = "os.fsync = lambda file: (print('written', flush=True), time.sleep(60))"
    builder = start_builder(tables, path, pause)
    assert builder.stdout is not None
    assert builder.stdout.readline() == "written\n"
    builder.kill()  # SIGKILL
    builder.wait()
    (leftover,) = path.parent.iterdir()
    assert leftover.name.endswith(".partial")
    build_index(*tables, path)
    assert opened(path).longest_phrase == 7
    assert leftover.exists()  # for all we know its builder is still at work
    os.utime(leftover, (time.time() - 7200,) * 2)
    build_index(*tables, path)
    assert list(path.parent.iterdir()) == [path]


def test_two_builders_at_once_do_no_harm(tables: tuple[Path, Path], tmp_path: Path) -> None:
    path = tmp_path / "cache" / "meteor.index"
    # each waits before its rename until the other has written too
    meet = (
        "own, other = ('a', 'b') if len(sys.argv) == 4 else ('b', 'a')\n"
        "root = os.path.dirname(sys.argv[1])\n"
        "del sys.argv[4:]\n"
        "def wait(file):\n"
        "    open(f'{root}/{own}.written', 'w').close()\n"
        "    while not os.path.exists(f'{root}/{other}.written'): time.sleep(0.01)\n"
        "os.fsync = wait\n"
    )
    first = start_builder(tables, path, meet)
    second = start_builder(tables, path, "sys.argv.append('b')\n" + meet)
    assert [first.wait(60), second.wait(60)] == [0, 0]
    assert list(path.parent.iterdir()) == [path]
    assert opened(path).longest_phrase == 7


def test_unreadable_tables_are_named(tables: tuple[Path, Path], tmp_path: Path) -> None:
    jar, table = tables
    table.write_bytes(table.read_bytes()[:-12])
    with pytest.raises(UserError, match=r"paraphrase\.gz.*cannot be read.*--force-reinstall"):
        build_index(jar, table, tmp_path / "x.index")
    assert not (tmp_path / "x.index").exists()


def test_an_unreadable_jar_is_named(
    tables: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(meteor_index, "package_files", lambda: tables)
    tables[0].write_bytes(b"not a zip")
    with pytest.raises(UserError, match=r"meteor\.jar.*cannot be read.*--force-reinstall"):
        open_index()


def test_a_cache_that_cannot_be_written_is_named(tables: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(UserError, match="set SIGHTLINE_CACHE"):
        build_index(*tables, tmp_path / "file" / "meteor.index")


def test_the_cache_folder_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SIGHTLINE_CACHE", "/own")
    monkeypatch.setenv("XDG_CACHE_HOME", "/shared")
    assert cache_folder() == Path("/own")
    monkeypatch.delenv("SIGHTLINE_CACHE")
    assert cache_folder() == Path("/shared/sightline")
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", "/home/someone")
    assert cache_folder() == Path("/home/someone/.cache/sightline")


@pytest.mark.slow
def test_the_real_tables_are_indexed_within_a_minute(tmp_path: Path) -> None:
    pytest.importorskip("pycocoevalcap")
    begin = time.perf_counter()
    build_index(*package_files(), tmp_path / "meteor.index")
    assert time.perf_counter() - begin < 60
    index = opened(tmp_path / "meteor.index")
    assert (len(index.phrases), len(index.paraphrases)) == (430_639, 5_274_084)
