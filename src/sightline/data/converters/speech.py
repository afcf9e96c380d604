"""Converters of speech: speechocean762, Kaldi folders, recordings with texts, TIMIT."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from importlib.resources import files
from pathlib import Path

import numpy as np

from sightline.data.converters.files import Prepared, read_lines, read_rows
from sightline.data.converters.tables import held_out
from sightline.data.manifest import Example, Split
from sightline.data.phones import plain_phone
from sightline.errors import DataError, SoundError
from sightline.media.audio import RATE, Floats, read_sound, write_sound

SOUNDS = (".wav", ".flac", ".ogg", ".opus", ".mp3", ".m4a")
DEV_SPEAKERS = 12  # of speechocean762's training speakers, to choose the best checkpoint on
SHOWN = 3


def speechocean(folder: Path, *, words: bool = False) -> Prepared:
    """speechocean762 as it is kept here: {train,test}.tsv and {train,test}/UTTERANCE.opus."""
    examples: list[Example] = []
    left_out: list[tuple[str, str]] = []
    splits: tuple[Split, ...] = ("train", "test")
    for split in splits:
        rows = [row for _, row in read_rows(folder / f"{split}.tsv", "\t")]
        speakers = sorted({row["speaker"] for row in rows})
        held = set(speakers[:: max(1, len(speakers) // DEV_SPEAKERS)]) if split == "train" else ()
        present = {path.name for path in (folder / split).glob("*")}
        for row in rows:
            name = row["utterance"]
            path = folder / split / f"{name}.opus"
            phones = [plain_phone(p) for p in row["phones"].split() if p != "|"]
            target = row["text"].lower() if words else " ".join(phones)
            if path.name not in present:
                left_out.append((name, "no file"))
            elif not target.strip():
                left_out.append((name, "no text"))
            else:
                place: Split = "dev" if row["speaker"] in held else split
                meta = {"speaker": row["speaker"], "text": row["text"].lower()}
                examples.append(Example(name, place, (target,), "audio", path, None, meta))
    notes = ["no dev split is published: a tenth of train's speakers are one"]
    return _prepared(examples, left_out, notes)


def kaldi(folders: Mapping[Split, Path], out: Path) -> Prepared:
    """Kaldi's wav.scp and text, with segments and utt2spk where they are.

    Recordings that `segments` cuts up are written to `out` as one FLAC each.
    """
    examples: list[Example] = []
    left_out: list[tuple[str, str]] = []
    for split, folder in folders.items():
        places = dict(_pairs(folder / "wav.scp"))
        texts = dict(_pairs(folder / "text"))
        speakers = dict(_pairs(folder / "utt2spk")) if (folder / "utt2spk").is_file() else {}
        cuts = _segments(folder / "segments") if (folder / "segments").is_file() else None
        recording, sound = "", np.zeros(0, np.float32)
        for name, text in texts.items():
            source = name if cuts is None else cuts.get(name, ("",))[0]
            place = places.get(source, "")
            why = _why_not(place, folder, text)
            if why:
                left_out.append((name, why))
                continue
            path = folder / place
            if cuts is not None:
                try:
                    if recording != source:
                        recording, sound = source, read_sound(path, longest=4 * 3600.0)
                    path = _written(sound, cuts[name][1:], out / f"{name.replace('/', '_')}.flac")
                except SoundError as error:
                    left_out.append((name, str(error)))
                    continue
            meta = {"speaker": speakers[name]} if name in speakers else {}
            examples.append(Example(name, split, (text,), "audio", path, None, meta))
        left_out += [(name, "no text") for name in (cuts or places) if name not in texts]
    return _prepared(examples, left_out, [])


def recordings(folder: Path, *, dev: float = 0.1, test: float = 0.1) -> Prepared:
    """A folder of recordings, each with its text in a file of the same name and .txt."""
    found = sorted(p for p in folder.rglob("*") if p.suffix.lower() in SOUNDS)
    texts: dict[str, str] = {}
    left_out: list[tuple[str, str]] = []
    for path in found:
        name = path.relative_to(folder).as_posix()
        beside = path.with_suffix(".txt")
        text = " ".join(read_lines(beside)) if beside.is_file() else ""
        if text:
            texts[name] = text
        else:
            left_out.append((name, "no text"))
    splits = held_out(texts, dev, test)
    examples = [
        Example(name, splits[name], (text,), "audio", folder / name) for name, text in texts.items()
    ]
    return _prepared(examples, left_out, [] if found else [f"no sound file is in {folder}"])


def _prepared(
    examples: list[Example], left_out: Iterable[tuple[str, str]], notes: list[str]
) -> Prepared:
    """With a note of what was left out, by reason."""
    left_out = list(left_out)
    for why, count in Counter(why for _, why in left_out).items():
        some = [name for name, reason in left_out if reason == why]
        more = " …" if count > SHOWN else ""
        notes.append(f"{count:,} left out: {why} ({', '.join(some[:SHOWN])}{more})")
    if not examples:
        raise DataError("\n".join(["no utterance can be used", *notes]))
    return Prepared(examples, notes)


def _pairs(path: Path) -> list[tuple[str, str]]:
    """Lines of a name and what belongs to it."""
    pairs = []
    for line in read_lines(path):
        name, _, rest = line.partition(" ") if " " in line else line.partition("\t")
        pairs.append((name, rest.strip()))
    return pairs


def _segments(path: Path) -> dict[str, tuple[str, float, float]]:
    """Utterance → its recording, start and end in seconds."""
    found = {}
    for number, line in enumerate(read_lines(path), start=1):
        try:
            name, recording, start, end = line.split()
            found[name] = recording, float(start), float(end)
        except ValueError:
            raise DataError(f"{path}:{number}: not `utterance recording start end`") from None
    return found


def _why_not(place: str, folder: Path, text: str) -> str:
    if not place:
        return "not in wav.scp"
    if place.endswith("|"):
        return "a command, which is not run: write its sound to a file"
    if not (folder / place).is_file():
        return "no file"
    return "" if text.strip() else "no text"


def _written(sound: Floats, span: tuple[float, float], path: Path) -> Path:
    start, end = (round(max(0.0, second) * RATE) for second in span)
    if not sound[start:end].size:
        raise SoundError("the segment is outside of its recording")
    write_sound(path, sound[start:end])
    return path


# ---------------------------------------------------------------- TIMIT

# Halberstadt's 50 speakers for development and the 24 of the core test (Chorowski et al. 2015)
_SPEAKERS = json.loads(files("sightline.data").joinpath("timit.json").read_text("utf-8"))
TIMIT_DEV, TIMIT_TEST = frozenset(_SPEAKERS["dev"]), frozenset(_SPEAKERS["test"])


def timit(folder: Path, fold: Callable[[list[str]], list[str]]) -> Prepared:
    """TIMIT: TRAIN and TEST with DR*/SPEAKER/SENTENCE.WAV and .PHN; without the SA sentences.

    462 speakers are trained on; 50 and 24 of TEST's are dev and test, as in Chorowski et al.
    """
    examples: list[Example] = []
    left_out: list[tuple[str, str]] = []
    for path in sorted(p for p in folder.rglob("*") if p.suffix.lower() == ".phn"):
        part, speaker, sentence = path.parts[-4].lower(), path.parts[-2].lower(), path.stem.lower()
        name = f"{speaker}-{sentence}"
        sound = next((p for p in path.parent.glob(f"{path.stem}.*") if _is_sound(p)), None)
        split: Split = "train"
        if part == "test":
            split = "dev" if speaker in TIMIT_DEV else "test"
        if sentence.startswith("sa"):
            left_out.append((name, "an SA sentence"))
        elif part == "test" and speaker not in TIMIT_DEV | TIMIT_TEST:
            left_out.append((name, "a speaker outside of the dev and core test sets"))
        elif sound is None:
            left_out.append((name, "no file"))
        else:
            rows = [line.split() for line in read_lines(path)]
            kept = [row for row in rows if len(row) == 3 and row[2] != "q"]
            spans = [[int(row[0]) / RATE, int(row[1]) / RATE] for row in kept]
            phones = " ".join(fold([row[2] for row in kept]))
            meta = {"speaker": speaker, "spans": spans}
            examples.append(Example(name, split, (phones,), "audio", sound, None, meta))
    return _prepared(examples, left_out, [])


def _is_sound(path: Path) -> bool:
    return path.suffix.lower() in (*SOUNDS, ".sph")
