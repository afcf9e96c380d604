"""Five hundred odd files: samples, or one clear line; never a traceback."""

import io

import numpy as np
import pytest
import soundfile

from sightline.errors import UserError
from sightline.media.audio import features, filter_banks, read_sound
from sightline.media.voice import segments

RNG = np.random.default_rng(0)
KINDS = [
    ("WAV", "PCM_U8"), ("WAV", "PCM_24"), ("WAV", "DOUBLE"), ("FLAC", "PCM_16"), ("OGG", "VORBIS"),
    ("OGG", "OPUS"), ("MP3", "MPEG_LAYER_III"), ("AIFF", "PCM_16"), ("W64", "PCM_16"),
]  # fmt: skip


def content(kind, subtype, rate, channels, seconds):
    samples = 0.3 * np.sin(np.arange(int(rate * seconds)) * 0.1)[:, None].repeat(channels, 1)
    samples[::7] *= 3  # clipped
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format=kind, subtype=subtype)
    return buffer.getvalue()


def odd_files():
    for kind, subtype in KINDS:
        for rate, channels in ((8000, 1), (48000, 2), (16000, 5)):
            if kind == "MP3" and channels > 2:
                continue
            whole = content(kind, subtype, rate, channels, 0.25)
            yield whole
            yield content(kind, subtype, rate, channels, 0.0)
            for _ in range(9):
                yield whole[: RNG.integers(len(whole))]
                damaged = bytearray(whole)
                for at in RNG.integers(len(whole), size=6):
                    damaged[at] = RNG.integers(256)
                yield bytes(damaged)
    for size in (1, 3, 44, 1000):
        yield RNG.bytes(size)
        yield b"RIFF" + RNG.bytes(size)
        yield b"text, not sound\n" * size


def test_odd_files_are_read_or_refused_in_one_line():
    read, messages = 0, []
    for file in odd_files():
        try:
            samples = read_sound(file, longest=100.0)
        except UserError as error:
            messages.append(str(error))
            continue
        read += 1
        assert np.isfinite(samples).all()
        for segment in segments([samples]):
            assert np.isfinite(features(filter_banks(segment.samples))).all()
    assert read + len(messages) >= 500
    assert read > 100
    assert len(messages) > 50
    assert all(message and "\n" not in message for message in messages)


def test_a_video_has_its_sound_or_says_that_it_has_none():
    av = pytest.importorskip("av")

    def video(with_sound):
        file = io.BytesIO()
        with av.open(file, "w", format="matroska") as container:
            picture = container.add_stream("mpeg4", rate=10)
            picture.width = picture.height = 32
            sound = container.add_stream("aac", rate=44100) if with_sound else None
            for _ in range(5):
                frame = av.VideoFrame.from_ndarray(np.zeros((32, 32, 3), np.uint8))
                container.mux(picture.encode(frame))
            container.mux(picture.encode())
            if sound is not None:
                wave = np.sin(np.arange(44100) * 0.05, dtype=np.float32)[None]
                part = av.AudioFrame.from_ndarray(wave, format="fltp", layout="mono")
                part.rate = 44100
                container.mux(sound.encode(part))
                container.mux(sound.encode())
        return file.getvalue()

    assert 0.8 * 16000 < len(read_sound(video(True))) < 1.2 * 16000
    with pytest.raises(UserError, match="no sound in it"):
        read_sound(video(False))
