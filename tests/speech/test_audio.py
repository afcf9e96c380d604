"""Any sound file becomes samples at 16 kHz and 123 numbers a frame, or one clear line."""

import io

import numpy as np
import pytest
import soundfile

from sightline.errors import SoundError, SoundKindError, SoundLengthError
from sightline.media.audio import (
    FEATURES,
    RATE,
    differences,
    features,
    filter_banks,
    frame_times,
    raw_blocks,
    read_sound,
    sound_blocks,
)


def tone(seconds=1.0, rate=RATE, pitch=440.0):
    return 0.5 * np.sin(2 * np.pi * pitch * np.arange(int(seconds * rate)) / rate)


def file_of(samples, rate, kind, subtype=None):
    buffer = io.BytesIO()
    soundfile.write(buffer, samples, rate, format=kind, subtype=subtype)
    return buffer.getvalue()


def pitch_of(samples):
    spectrum = np.abs(np.fft.rfft(samples * np.hanning(len(samples))))
    return spectrum.argmax() * RATE / len(samples)


@pytest.mark.parametrize(
    ("kind", "subtype"),
    [("WAV", "PCM_16"), ("WAV", "PCM_24"), ("WAV", "FLOAT"), ("FLAC", None), ("OGG", None),
     ("OGG", "OPUS"), ("MP3", None), ("AIFF", None)],
)  # fmt: skip
@pytest.mark.parametrize("rate", [8000, 48000])
def test_files_of_any_kind_and_rate_sound_the_same(kind, subtype, rate):
    read = read_sound(file_of(tone(rate=rate), rate, kind, subtype))
    assert read.dtype == np.float32
    assert len(read) == pytest.approx(RATE, rel=0.08)  # MP3 and Opus add silence
    assert pitch_of(read) == pytest.approx(440, abs=3)


def test_channels_are_mixed():
    five = np.stack([tone(), *[np.zeros(RATE)] * 4], axis=1)
    read = read_sound(file_of(five, RATE, "WAV"))
    np.testing.assert_allclose(read, tone() / 5, atol=1e-4)


def test_a_file_in_blocks_is_the_file():
    samples = np.random.default_rng(0).normal(size=int(2.7 * 44100)) * 0.1
    content = file_of(samples, 44100, "WAV", "FLOAT")
    soxr = pytest.importorskip("soxr")
    whole = soxr.resample(samples.astype(np.float32), 44100, RATE)
    blocks = np.concatenate(list(sound_blocks(content)))
    assert abs(len(blocks) - len(whole)) <= 1
    size = min(len(blocks), len(whole))
    np.testing.assert_allclose(blocks[:size], whole[:size], atol=1e-3)


def test_raw_samples_are_a_stream():
    samples = (tone(2.5, 8000) * 32767).astype("<i2")
    read = np.concatenate(list(raw_blocks(io.BytesIO(samples.tobytes() + b"\1"), 8000)))
    assert len(read) == pytest.approx(2.5 * RATE, abs=2)
    assert pitch_of(read[:RATE]) == pytest.approx(440, abs=2)


def test_what_cannot_be_heard_is_one_clear_line(tmp_path):
    (tmp_path / "text.wav").write_text("no sound at all, but text\n" * 30)
    (tmp_path / "empty.wav").write_bytes(b"")
    (tmp_path / "none.wav").write_bytes(file_of(np.zeros(0), RATE, "WAV"))
    wrong = {
        "text.wav": (SoundKindError, "not"),
        "empty.wav": (SoundError, "empty"),
        "none.wav": (SoundError, "nothing to hear"),
        "absent.wav": (SoundError, "no such file"),
        ".": (SoundError, "it is a folder"),
    }
    for name, (error, message) in wrong.items():
        with pytest.raises(error, match=message) as caught:
            read_sound(tmp_path / name)
        assert "\n" not in str(caught.value)
    with pytest.raises(SoundLengthError, match="longer than 2 s"):
        read_sound(tone(3.0), longest=2.0)


def test_a_file_that_is_cut_short_is_read_as_far_as_it_goes():
    for kind in ("WAV", "FLAC"):
        content = file_of(tone(3.0), RATE, kind)
        assert 0.5 * RATE < len(read_sound(content[: len(content) * 2 // 3])) < 3 * RATE


def test_samples_that_are_no_numbers_are_silence():
    samples = tone()
    samples[100:200] = np.nan
    samples[300:400] = np.inf
    read = read_sound(file_of(samples, RATE, "WAV", "FLOAT"))
    assert np.isfinite(read).all()
    assert np.isfinite(features(filter_banks(read))).all()


def test_filter_banks_follow_the_tone():
    rows = filter_banks(read_sound(tone(1.0, pitch=1000.0)))
    assert rows.shape == (100, 41)
    low, high = (filter_banks(read_sound(tone(1.0, pitch=p)))[50, 1:].argmax() for p in (300, 3000))
    assert low < rows[50, 1:].argmax() < high


def test_differences_are_those_of_kaldi():
    values = np.random.default_rng(1).normal(size=(9, 3)).astype(np.float32)
    edged = np.concatenate([values[:1], values[:1], values, values[-1:], values[-1:]])
    for t in range(9):
        expected = sum(n * (edged[t + 2 + n] - edged[t + 2 - n]) for n in (1, 2)) / 10
        np.testing.assert_allclose(differences(values)[t], expected, atol=1e-6)


def test_features_are_normal_over_the_utterance():
    static = np.random.default_rng(2).normal(3, 5, size=(80, 41)).astype(np.float32)
    made = features(static)
    assert made.shape == (80, FEATURES)
    np.testing.assert_allclose(made.mean(0), 0, atol=1e-4)
    np.testing.assert_allclose(made.std(0), 1, atol=1e-3)
    assert not features(np.ones((5, 41), np.float32)).any()  # of silence, zeros


def test_positions_know_their_time():
    assert frame_times(8, 4) == (0.02, 0.06)
    assert frame_times(9, 4, start=2.0) == (2.02, 2.06, 2.10)
