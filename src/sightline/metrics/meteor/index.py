"""METEOR's tables in one memory-mapped file, built once from pycocoevalcap's own data.

The paraphrase table is 5.3 million lines of gzip and takes Java ten seconds to read. Here words
and phrases become 64-bit hashes, so that a lookup is a binary search and opening costs
milliseconds. The file lives in the user's cache; it is written under a temporary name and
renamed, so that a killed or a second builder can do no harm, and its checksum is verified at
every opening.
"""

import gzip
import hashlib
import json
import mmap
import os
import struct
import sys
import time
import zipfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import count, islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sightline.errors import MissingPackageError, UserError, install
from sightline.metrics.meteor.normalise import java_hash, read_abbreviations
from sightline.metrics.meteor.stemming import stem
from sightline.metrics.meteor.synonyms import SynonymTable

FORMAT = 1
_MAGIC = b"SLMETEOR"
_HEAD = struct.Struct("<8sQQ")  # magic, length of the JSON that follows, its CRC-32
_ENTRIES = {
    "functions": "function/english.words",
    "abbreviations": "nonbreaking/english.prefixes",
    "exceptions": "synonym/english.exceptions",
    "synsets": "synonym/english.synsets",
}
_FACTOR = 0x9E3779B97F4A7C15  # odd, so that multiplying by it loses nothing
_BLOCK = 1 << 24

U64 = NDArray[np.uint64]
I32 = NDArray[np.int32]
Report = Callable[[float], None]  # takes the fraction that is done


@dataclass(frozen=True)
class Index:
    """Everything METEOR looks up; the arrays are views of the mapped file."""

    function_words: frozenset[str]
    abbreviations: dict[str, int]
    longest_phrase: int  # in words
    words: U64  # (V,) sorted hashes of the words below
    stems: I32  # (V,) Java hash of each word's stem
    synset_starts: I32  # (V + 1,)
    synsets: I32  # a word's synonym sets, those of its base forms included
    own_starts: I32  # (V + 1,)
    own_synsets: I32  # those listed under the word itself
    phrases: U64  # (K,) sorted hashes of the phrases that have paraphrases
    paraphrase_starts: I32  # (K + 1,)
    paraphrases: U64  # hashes of their paraphrases, in the table's order


def word_hash(word: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(word, digest_size=8).digest(), "little")


def position_factors(count: int) -> U64:
    """A phrase's hash is the sum of its words' hashes, each times the factor of its place."""
    return np.multiply.accumulate(np.full(count, _FACTOR, np.uint64))


# ---------------------------------------------------------------- opening


def open_index() -> Index:
    """The index of the installed pycocoevalcap's tables, built if need be."""
    jar, table = package_files()
    path = cache_folder() / f"meteor-{_source_key(jar, table)}.index"
    index = read_index(path)
    if index is None:
        with _progress(path) as report:
            build_index(jar, table, path, report)
        index = read_index(path)
        if index is None:
            raise UserError(f"METEOR's index {path} cannot be read back; is the disk full?")
    return index


def package_files() -> tuple[Path, Path]:
    """METEOR's jar and paraphrase table inside the installed pycocoevalcap."""
    spec = find_spec("pycocoevalcap")
    if spec is None or not spec.submodule_search_locations:
        raise MissingPackageError(
            "METEOR needs the tables of the package pycocoevalcap, which is not installed: "
            + install("meteor")
        )
    folder = Path(spec.submodule_search_locations[0]) / "meteor"
    jar, table = folder / "meteor-1.5.jar", folder / "data" / "paraphrase-en.gz"
    for path in (jar, table):
        if not path.is_file():
            raise UserError(f"{path} is missing: pip install --force-reinstall pycocoevalcap")
    return jar, table


def cache_folder() -> Path:
    own = os.environ.get("SIGHTLINE_CACHE")
    if own:
        return Path(own)
    shared = os.environ.get("XDG_CACHE_HOME")
    return (Path(shared) if shared else Path.home() / ".cache") / "sightline"


def _source_key(jar: Path, table: Path) -> str:
    """A name for these tables: the check sums that zip and gzip carry, cheap to read."""
    with _tables_named(jar, table), zipfile.ZipFile(jar) as archive, open(table, "rb") as file:
        checks = [archive.getinfo(name).CRC for name in _ENTRIES.values()]
        file.seek(-8, os.SEEK_END)
        facts = repr((FORMAT, checks, table.stat().st_size, file.read()))
    return hashlib.blake2b(facts.encode(), digest_size=8).hexdigest()


def read_index(path: Path) -> Index | None:
    """Map the index, or None where it is absent, cut short, damaged or of another version."""
    try:
        with open(path, "rb") as file:
            data = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError):  # ValueError: an empty file cannot be mapped
        return None
    if len(data) < _HEAD.size:
        return None
    magic, length, check = _HEAD.unpack(data[: _HEAD.size])
    text = data[_HEAD.size : _HEAD.size + length]
    if magic != _MAGIC or zlib.crc32(text) != check:
        return None
    header = json.loads(bytes(text))
    body = data[_HEAD.size + length :]
    sound = len(body) == header["size"] and zlib.crc32(body) == header["check"]
    if header["format"] != FORMAT or not sound:
        return None
    arrays = {
        name: np.frombuffer(body[start : start + size], kind)
        for name, (kind, start, size) in header["arrays"].items()
    }
    return Index(
        function_words=frozenset(header["function_words"]),
        abbreviations=header["abbreviations"],
        longest_phrase=header["longest_phrase"],
        **arrays,
    )


# ---------------------------------------------------------------- building


def build_index(jar: Path, table: Path, path: Path, report: Report = lambda done: None) -> None:
    """Read METEOR's tables and write the index at `path`, all of it or nothing."""
    with _errors_named(path.parent):  # before the work, not after it
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(path)
    with _tables_named(jar, table):
        with zipfile.ZipFile(jar) as archive:
            texts = {key: archive.read(name).decode() for key, name in _ENTRIES.items()}
        vocabulary, longest, phrases = _paraphrase_arrays(table, report)
    synonyms = SynonymTable.parse(texts["exceptions"], texts["synsets"])
    vocabulary.update(synonyms.vocabulary())
    header = {
        "format": FORMAT,
        "function_words": texts["functions"].split(),
        "abbreviations": read_abbreviations(texts["abbreviations"]),
        "longest_phrase": longest,
    }
    _write(path, header, _word_arrays(vocabulary, synonyms) | phrases)
    report(1.0)


def _paraphrase_arrays(
    table: Path, report: Report
) -> tuple[set[str], int, dict[str, NDArray[np.generic]]]:
    """The table's vocabulary, its longest phrase, and its paraphrases grouped by phrase."""
    words: defaultdict[bytes, int] = defaultdict(count().__next__)
    separator = b"\0"
    words[separator]  # number 0, which hashes to nothing
    hashes = np.zeros(1, np.uint64)
    factors = position_factors(64)
    keys: list[U64] = []
    targets: list[U64] = []
    longest = 0
    for lines in _records(table, report):
        del lines[0::3]  # the probabilities
        tokens = (b" %s " % separator).join(lines).split()
        numbers = np.fromiter(map(words.__getitem__, tokens), np.int32, len(tokens))
        fresh = [word_hash(word) for word in islice(words, len(hashes), None)]
        hashes = np.concatenate([hashes, np.array(fresh, np.uint64)])
        ends = np.flatnonzero(numbers == 0)
        starts = np.concatenate([[0], ends + 1])
        lengths = np.diff(np.append(starts, len(numbers) + 1)) - 1
        place = np.arange(len(numbers)) - np.repeat(starts, lengths + 1)[: len(numbers)]
        longest = max(longest, int(lengths.max()))
        # at a separator the place is past the phrase's end, and its hash is zero
        terms = hashes[numbers] * factors[np.minimum(place, len(factors) - 1)]
        sums = np.add.reduceat(terms, starts)
        keys.append(sums[0::2])
        targets.append(sums[1::2])
    if longest >= len(factors):
        raise ValueError(f"a phrase of {longest} words")
    key = np.concatenate(keys)
    order = np.argsort(key, kind="stable")
    unique, first = np.unique(key[order], return_index=True)
    arrays: dict[str, NDArray[np.generic]] = {
        "phrases": unique,
        "paraphrase_starts": np.append(first, len(key)).astype(np.int32),
        "paraphrases": np.concatenate(targets)[order],
    }
    return {word.decode() for word in words if word != separator}, longest, arrays


def _records(table: Path, report: Report) -> Iterator[list[bytes]]:
    """The table's lines in blocks of whole records: probability, phrase, paraphrase."""
    size = max(1, table.stat().st_size)
    rest = b""
    with open(table, "rb") as raw, gzip.GzipFile(fileobj=raw) as file:
        while block := file.read(_BLOCK):
            lines = (rest + block).split(b"\n")
            whole = (len(lines) - 1) // 3 * 3
            rest = b"\n".join(lines[whole:])
            del lines[whole:]
            if lines:
                yield lines
            report(0.8 * raw.tell() / size)
    if rest:
        raise ValueError("the paraphrase table ends within a record")


def _word_arrays(vocabulary: set[str], synonyms: SynonymTable) -> dict[str, NDArray[np.generic]]:
    by_hash = {word_hash(word.encode()): word for word in vocabulary}
    if len(by_hash) != len(vocabulary):
        raise RuntimeError("two words of METEOR's tables share a 64-bit hash")
    ordered = [by_hash[key] for key in sorted(by_hash)]
    arrays: dict[str, NDArray[np.generic]] = {
        "words": np.array(sorted(by_hash), np.uint64),
        "stems": np.array([java_hash(stem(word)) for word in ordered], np.int32),
    }
    arrays["synset_starts"], arrays["synsets"] = _ragged(map(synonyms.synsets, ordered))
    arrays["own_starts"], arrays["own_synsets"] = _ragged(map(synonyms.own, ordered))
    return arrays


def _ragged(rows: Iterable[frozenset[int]]) -> tuple[I32, I32]:
    values: list[int] = []
    starts = [0]
    for row in rows:
        values.extend(sorted(row))
        starts.append(len(values))
    return np.array(starts, np.int32), np.array(values, np.int32)


def _write(path: Path, header: dict[str, object], arrays: dict[str, NDArray[np.generic]]) -> None:
    layout: dict[str, tuple[str, int, int]] = {}
    pieces: list[bytes] = []
    at = check = 0
    for name, array in arrays.items():
        data = array.tobytes()
        data += bytes(-len(data) % 64)
        layout[name] = (array.dtype.str, at, array.nbytes)
        pieces.append(data)
        at += len(data)
        check = zlib.crc32(data, check)
    text = json.dumps(header | {"arrays": layout, "size": at, "check": check}).encode()
    text += b" " * (-(len(text) + _HEAD.size) % 64)
    temporary = path.with_name(f"{path.name}.{os.urandom(6).hex()}.partial")
    with _errors_named(path.parent):
        try:
            with open(temporary, "wb") as file:
                head = _HEAD.pack(_MAGIC, len(text), zlib.crc32(text))
                file.writelines([head, text, *pieces])
                file.flush()
                os.fsync(file.fileno())  # a rename must not overtake the data in a crash
            os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)


@contextmanager
def _tables_named(jar: Path, table: Path) -> Iterator[None]:
    try:
        yield
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, KeyError, ValueError) as problem:
        raise UserError(
            f"METEOR's tables {jar} and {table} cannot be read ({problem}): "
            "pip install --force-reinstall pycocoevalcap"
        ) from problem


@contextmanager
def _errors_named(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        raise UserError(
            f"METEOR's index cannot be written to {folder} ({problem.strerror}): "
            "set SIGHTLINE_CACHE to a folder with 60 MB of room"
        ) from problem


def _remove_abandoned(path: Path) -> None:
    """Delete what builders that were killed more than an hour ago left behind."""
    for leftover in path.parent.glob("*.index.*.partial"):
        with suppress(FileNotFoundError):  # another builder was quicker
            if time.time() - leftover.stat().st_mtime > 3600:
                leftover.unlink()


@contextmanager
def _progress(path: Path) -> Iterator[Report]:
    """A bar on a terminal, one line elsewhere."""
    message = "Building METEOR's index (once, some 15 s)"
    if not sys.stderr.isatty():
        print(f"{message} in {path.parent}", file=sys.stderr)
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(message, total=1.0)
        yield lambda done: progress.update(task, completed=done)
