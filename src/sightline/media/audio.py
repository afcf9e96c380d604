"""Sound files → samples at 16 kHz → the 123 numbers of every 10 ms that a model hears.

One set of functions for training, files, the service and a microphone. A recording is read block
by block, so that its length costs no memory.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from sightline.errors import SoundError, SoundKindError, SoundLengthError, UserError, install
from sightline.media.files import name_of, opened

RATE = 16_000
HOP = 0.01  # seconds from one frame to the next
STATIC = 41  # energy and 40 mel filter banks
FEATURES = 3 * STATIC  # with their first and second differences
SHORTEST = 0.03  # seconds: less is no sound that anything could be heard in
MOST_CHANNELS = 64
_RATES = (1000, 768_000)
_BLOCK = 1.0  # seconds that are decoded at a time

Floats = NDArray[np.float32]
SoundSource = Path | str | bytes | NDArray[Any]  # a file, its bytes, or samples at 16 kHz


# ---------------------------------------------------------------- decoding


def read_sound(source: SoundSource, longest: float = 600.0) -> Floats:
    """All samples of a recording of at most so many seconds: one channel at 16 kHz, (N,)."""
    parts, size = [], 0
    for block in sound_blocks(source):
        parts.append(block)
        size += len(block)
        if size > longest * RATE:
            raise SoundLengthError(
                f"{name_of(source, 'recording')}: longer than {longest:g} s, which is the limit "
                "here; give it in parts"
            )
    return np.concatenate(parts)


def sound_blocks(source: SoundSource) -> Iterator[Floats]:
    """A recording block by block: one channel at 16 kHz, values in ±1.

    A SoundError, at the first block or where the file breaks, says what is wrong with it.
    """
    name, seconds = name_of(source, "recording"), 0.0
    if isinstance(source, np.ndarray):
        given = np.atleast_1d(source).astype(np.float32)
        if given.ndim != 1:
            raise SoundError(f"{name}: samples of shape {given.shape}; give one channel at 16 kHz")
        blocks: Iterable[Floats] = iter([given])
    else:
        blocks = _decoded(source, name)
    for block in blocks:
        finite: Floats = np.nan_to_num(block, nan=0.0, posinf=1.0, neginf=-1.0).astype(np.float32)
        seconds += len(finite) / RATE
        if len(finite):
            yield finite
    if seconds < SHORTEST:
        raise SoundError(f"{name}: {seconds:.3f} s of sound; there is nothing to hear in it")


def raw_blocks(stream: BinaryIO, rate: int) -> Iterator[Floats]:
    """A stream of 16-bit samples, one channel, little-endian: what `arecord -t raw` writes."""
    _check_rate(rate, "raw sound")
    size = 2 * int(_BLOCK * rate)

    def blocks() -> Iterator[Floats]:
        while data := stream.read(size):
            whole = data[: len(data) // 2 * 2]
            yield (np.frombuffer(whole, "<i2")[:, None] / 32768).astype(np.float32)

    return _resampled(blocks(), rate)


def write_sound(path: Path, samples: Floats) -> None:
    """Samples at 16 kHz as a FLAC file of 16 bits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    clipped = np.clip(samples, -1, 1)
    _library("soundfile").write(path, clipped, RATE, format="FLAC", subtype="PCM_16")


def _decoded(source: Path | str | bytes, name: str) -> Iterator[Floats]:
    soundfile = _library("soundfile")
    with opened(source, name, "recording", SoundError) as file:
        try:
            sound = soundfile.SoundFile(file)
        except (soundfile.LibsndfileError, RuntimeError, OSError):
            file.seek(0)
            yield from _by_pyav(file, name)
            return
        with sound:
            _check_rate(sound.samplerate, name)
            if sound.channels > MOST_CHANNELS:
                raise SoundError(f"{name}: {sound.channels} channels; at most {MOST_CHANNELS}")
            yield from _resampled(_blocks_of(sound, name), sound.samplerate)


def _blocks_of(sound: Any, name: str) -> Iterator[Floats]:
    """Blocks (n, channels) up to the end, or to where the file is cut short."""
    some = False
    while True:
        try:
            block = sound.read(int(_BLOCK * sound.samplerate), dtype="float32", always_2d=True)
        except RuntimeError as error:  # LibsndfileError among others
            if not some:
                raise SoundError(f"{name}: damaged: {error}") from None
            return
        if not len(block):
            return
        some = True
        yield block


def _by_pyav(file: BinaryIO, name: str) -> Iterator[Floats]:
    """Whatever libsndfile does not read: AAC, the sound of a video …"""
    if not file.read(1):
        raise SoundError(f"{name}: the file is empty")
    file.seek(0)
    try:
        av = importlib.import_module("av")
    except ImportError:
        raise SoundKindError(
            f"{name}: not WAV, FLAC, OGG, Opus or MP3; other kinds, and the sound of videos, "
            f"need PyAV: {install('video')}"
        ) from None
    try:
        with av.open(file, metadata_errors="ignore") as container:
            if not container.streams.audio:
                raise SoundError(f"{name}: there is no sound in it")
            stream = container.streams.audio[0]
            rate = getattr(stream, "rate", None)  # none where the codec is not known
            if not rate:
                raise SoundError(f"{name}: its sound is of a kind that cannot be decoded")
            _check_rate(rate, name)
            yield from _resampled(_av_blocks(av, container, stream), int(rate))
    except av.error.FFmpegError as error:
        raise SoundKindError(
            f"{name}: not a sound or a video that can be read ({error.strerror})"
        ) from None


def _av_blocks(av: Any, container: Any, stream: Any) -> Iterator[Floats]:
    to_floats = av.AudioResampler(format="fltp")
    some = False
    try:
        for frame in container.decode(stream):
            for part in to_floats.resample(frame):
                some = True
                yield part.to_ndarray().T.astype(np.float32)
    except av.error.FFmpegError:
        if not some:
            raise


def _resampled(blocks: Iterable[Floats], rate: int) -> Iterator[Floats]:
    """Blocks (n, channels) at any rate as one channel at 16 kHz."""
    if rate == RATE:
        for block in blocks:
            yield block.mean(1, dtype=np.float32)
        return
    stream = _library("soxr").ResampleStream(rate, RATE, 1, dtype="float32")
    for block in blocks:
        yield stream.resample_chunk(block.mean(1, dtype=np.float32))
    yield stream.resample_chunk(np.zeros(0, np.float32), last=True)


def _check_rate(rate: int, name: str) -> None:
    low, high = _RATES
    if not low <= rate <= high:
        raise SoundError(f"{name}: {rate:,} samples a second; from {low:,} to {high:,} are read")


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except (ImportError, OSError):  # OSError: soundfile without its C library
        raise UserError(f"sound needs {name}: {install('audio')}") from None


# ---------------------------------------------------------------- features


def filter_banks(samples: Floats) -> Floats:
    """Log energy and 40 log mel filter banks of every 10 ms, (T, 41)."""
    kaldi = _library("kaldi_native_fbank")
    options = kaldi.FbankOptions()
    options.frame_opts.dither = 0.0  # the same sound gives the same numbers
    options.frame_opts.snip_edges = False  # a frame for every 10 ms, the edges mirrored
    options.mel_opts.num_bins = STATIC - 1
    options.use_energy = True
    options.energy_floor = 1.0  # of digital silence, in the scale of 16-bit samples
    bank = kaldi.OnlineFbank(options)
    bank.accept_waveform(RATE, np.asarray(samples, np.float32) * 32768)
    bank.input_finished()
    return np.stack([bank.get_frame(t) for t in range(bank.num_frames_ready)])


def features(static: Floats) -> Floats:
    """The paper's 123 numbers a frame: with first and second differences, (T, 41) → (T, 123).

    Each has mean 0 and deviation 1 over the utterance.
    """
    first = differences(static)
    every = np.concatenate([static, first, differences(first)], axis=1)
    deviation = np.maximum(every.std(0), 1e-3)  # of a constant, 0
    normal: Floats = ((every - every.mean(0)) / deviation).astype(np.float32)
    return normal


def differences(values: Floats) -> Floats:
    """Kaldi's regression over two frames on either side: Σ n (x₊ₙ − x₋ₙ) / 2 Σ n²."""
    padded = np.pad(values, ((2, 2), (0, 0)), mode="edge")
    size = len(values)
    slope = padded[3 : 3 + size] - padded[1 : 1 + size] + 2 * (padded[4:] - padded[:size])
    return (slope / 10).astype(np.float32)


def frame_times(frames: int, together: int, start: float = 0.0) -> tuple[float, ...]:
    """The middle of each position, of `together` frames each, in seconds."""
    positions = -(-frames // together)
    return tuple(round(start + (i + 0.5) * together * HOP, 4) for i in range(positions))
