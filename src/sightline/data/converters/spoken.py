"""`prepare spoken`: a corpus made by Debian's flite, with the true time of every phone."""

from __future__ import annotations

import hashlib
import re
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from sightline.data.converters.files import Prepared, read_lines
from sightline.data.manifest import Example, Split
from sightline.data.phones import PAUSES, plain_phone
from sightline.data.progress import counted
from sightline.errors import DataError, UserError
from sightline.media.audio import RATE, Floats, read_sound, write_sound

VOICES = {"kal16": 95, "awb": 130, "rms": 100, "slt": 175}  # and the pitch of each in Hz
STRETCH, PITCH, TRACT = (0.8, 1.3), (0.8, 1.6), (0.88, 1.2)
_TIMES = re.compile(r"(\S+):([\d.]+)")
_WORDS = re.compile(r"[A-Za-z][A-Za-z' ,.?!;:-]*")
SECONDS = 20.0  # a longer sentence is left out


@dataclass(frozen=True)
class Manner:
    """How a sentence is said."""

    voice: str
    stretch: float = 1.0  # of durations
    pitch: float = 1.0
    tract: float = 1.0  # above 1: a shorter vocal tract; sound and times are squeezed


@dataclass(frozen=True)
class Spoken:
    """A sentence's sound, and its phones with their true starts and ends in seconds."""

    samples: Floats
    phones: tuple[str, ...]
    spans: tuple[tuple[float, float], ...]


def spoken(
    text: Path,
    folder: Path,
    *,
    voices: Sequence[str] = tuple(VOICES),
    unheard: str = "slt",
    most: int = 0,
    seed: int = 1,
) -> Prepared:
    """Sentences, one a line, said by flite into `folder` as FLAC.

    A sentence of train or dev is said by one voice in a manner drawn at random; one of test by
    every voice, plainly, also by the voice `unheard`, which train and dev lack. Which sentences
    are dev and test depends on their words alone.
    """
    _require_flite(voices)
    seen = [voice for voice in voices if voice != unheard]
    if not seen:
        raise DataError("every voice is held out; name more --voices")
    lines = list(dict.fromkeys(read_lines(text)))
    usable = [line for line in lines if _WORDS.fullmatch(line)]
    kept = usable[:most] if most else usable
    if not kept:
        raise DataError(f"{text}: no line is a sentence of English letters and punctuation")
    folder.mkdir(parents=True, exist_ok=True)
    plan = [(line, manner) for line in kept for manner in _manners(line, seen, voices, seed)]
    examples, dropped = [], {"not one sentence": 0, "too long": 0}
    for line, manner in counted(plan, len(plan), "speaking"):
        said = say(line, manner)
        if said is None or len(said.samples) > SECONDS * RATE:
            dropped["not one sentence" if said is None else "too long"] += 1
            continue
        examples.append(_example(line, manner, said, folder))
    notes = [f"{len(lines) - len(usable):,} lines with other characters left out"]
    notes += [f"{count:,} left out: {why}" for why, count in dropped.items() if count]
    return Prepared(examples, notes)


def say(text: str, manner: Manner) -> Spoken | None:
    """A sentence said by flite; None where flite takes it for several."""
    mean = VOICES.get(manner.voice, 120) * manner.pitch
    command = ["flite", "-voice", manner.voice, "-psdur"]
    command += ["--setf", f"duration_stretch={manner.stretch:.3f}"]
    command += ["--setf", f"int_f0_target_mean={mean:.1f}"] if manner.pitch != 1 else []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "said.wav"
        made = subprocess.run(
            [*command, "-t", text, "-o", str(path)], capture_output=True, timeout=60, check=False
        )
        if made.returncode or not path.is_file():
            why = made.stderr.decode(errors="replace").strip()[:200]
            raise UserError(f"flite cannot say {text!r}: {why}")
        samples = read_sound(path)
    times = [(name, float(end)) for name, end in _TIMES.findall(made.stdout.decode("latin-1"))]
    ends = [end for _, end in times]
    if not ends or sorted(ends) != ends:
        return None
    if manner.tract != 1:
        import soxr

        samples = soxr.resample(samples, RATE * manner.tract, RATE)
        ends = [end / manner.tract for end in ends]
    last = len(samples) / RATE  # kal16 says that its last pause ends later
    starts = [0.0, *ends[:-1]]
    spans = zip(starts, ends, strict=True)
    kept = [
        (plain_phone(name), (min(start, last), min(end, last)))
        for (name, _), (start, end) in zip(times, spans, strict=True)
        if name.upper() not in PAUSES
    ]
    if not kept:
        return None
    phones, places = zip(*kept, strict=True)
    return Spoken(samples, phones, places)


def _require_flite(voices: Sequence[str]) -> None:
    if shutil.which("flite") is None:
        raise UserError("there is no flite here, which speaks: apt-get install flite")
    for voice in voices:
        if voice not in VOICES:
            raise UserError(f"there is no voice {voice!r}; there are {', '.join(VOICES)}")


def _split(line: str) -> Split:
    share = int.from_bytes(hashlib.sha256(line.lower().encode()).digest()[:4], "big") / 2**32
    return "dev" if share < 0.04 else "test" if share < 0.08 else "train"


def _manners(line: str, seen: Sequence[str], voices: Sequence[str], seed: int) -> list[Manner]:
    if _split(line) == "test":
        return [Manner(voice) for voice in voices]
    digest = hashlib.sha256(f"{seed} {line}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(digest[:8], "big"))
    plain = Manner(str(rng.choice(list(seen))))
    drawn = [float(rng.uniform(*span)) for span in (STRETCH, PITCH, TRACT)]
    return [replace(plain, stretch=drawn[0], pitch=drawn[1], tract=drawn[2])]


def _example(line: str, manner: Manner, said: Spoken, folder: Path) -> Example:
    name = f"{hashlib.sha256(line.encode()).hexdigest()[:12]}-{manner.voice}"
    path = folder / f"{name}.flac"
    write_sound(path, said.samples)
    spans = [[round(start, 3), round(end, 3)] for start, end in said.spans]
    meta = {"voice": manner.voice, "text": line, "spans": spans}
    return Example(name, _split(line), (" ".join(said.phones),), "audio", path, None, meta)
