"""Clips: their frames with the right times, upright, square, in bounded memory; odd files."""

import io
import os
import random
import subprocess
import sys
import tracemalloc
from contextlib import suppress

import numpy as np
import pytest

from sightline.errors import UserError, VideoError, VideoKindError, VideoSizeError

av = pytest.importorskip("av", reason="clips need PyAV")

from films import COLOURS, plain, textured, write_film, write_sound  # noqa: E402
from sightline.media.shots import CutDetector  # noqa: E402
from sightline.media.video import chosen_frames, frames_at, read_clip, read_clips  # noqa: E402

KINDS = [("mp4", "libx264"), ("mkv", "mpeg4"), ("avi", "mpeg4"), ("ts", "libx264")]
RED, GREEN, BLUE = COLOURS.values()


@pytest.fixture(scope="module")
def three_shots(tmp_path_factory):
    """Shots of 2, 1 and 3 seconds at 8 frames a second."""
    frames = [*textured(1, 16), *textured(2, 8), *textured(3, 24)]
    return write_film(tmp_path_factory.mktemp("film") / "three.mp4", frames)


def test_frames_are_spread_evenly_with_their_times(three_shots):
    clip = read_clip(three_shots, 6, 72)
    assert clip.end == pytest.approx(6.0, abs=0.01)
    # the middles of six equal parts: a frame of 1/8 s is at most half of that away
    assert np.abs(np.array(clip.times) - [0.5, 1.5, 2.5, 3.5, 4.5, 5.5]).max() <= 1 / 16 + 1e-6
    assert all(frame.shape == (72, 96, 3) for frame in clip.frames)


def test_a_short_film_gives_the_frames_that_it_has(tmp_path):
    clip = read_clip(write_film(tmp_path / "a.mp4", plain(RED, 3)), 16, 48)
    assert len(clip) == 3
    assert clip.times == pytest.approx((0, 1 / 8, 2 / 8))
    one = read_clip(write_film(tmp_path / "b.mp4", plain(RED, 1)), 16, 48)
    assert one.times == (0.0,)


def test_pixels_are_those_of_the_film(tmp_path):
    frames = [*plain(RED, 8), *plain(GREEN, 8), *plain(BLUE, 8)]
    clip = read_clip(write_film(tmp_path / "a.mp4", frames), 3, 48)
    means = [frame.mean((0, 1)) for frame in clip.frames]
    assert np.abs(np.array(means) - [RED, GREEN, BLUE]).max() < 6


def test_shots_are_found_and_each_has_a_frame(three_shots):
    shots = list(read_clips(three_shots, 2, 72, shots=True))
    assert [(clip.start, clip.end) for clip in shots] == [
        pytest.approx(each, abs=0.01) for each in [(0, 2), (2, 3), (3, 6)]
    ]
    assert all(clip.start <= time < clip.end for clip in shots for time in clip.times)
    spread = read_clip(three_shots, 3, 72, sampling="shots")
    assert [sum(time >= edge for edge in (2, 3)) for time in spread.times] == [0, 1, 2]


def test_nothing_is_cut_where_the_picture_only_moves():
    detector = CutDetector()
    shape = (CutDetector.HEIGHT, CutDetector.WIDTH)
    frames = textured(5, 40, 72, 96, drift=1)
    small = [
        frame[:: 72 // shape[0], :: 96 // shape[1]][: shape[0], : shape[1]] for frame in frames
    ]
    assert not any(detector.is_cut(i / 8, frame) for i, frame in enumerate(small))


def test_stretches_of_some_seconds(three_shots):
    found = list(read_clips(three_shots, 2, 72, every=2.5))
    assert [clip.start for clip in found] == pytest.approx([0, 2.5, 5])
    assert found[-1].end == pytest.approx(6)
    assert [len(clip) for clip in found] == [2, 2, 2]


def test_bytes_and_streams_are_read_as_files_are(three_shots):
    content = three_shots.read_bytes()
    clip = read_clip(three_shots, 4, 72)
    for source in (content, io.BytesIO(content), str(three_shots)):
        other = read_clip(source, 4, 72)
        assert other.times == clip.times
        assert all(np.array_equal(a, b) for a, b in zip(other.frames, clip.frames, strict=True))


@pytest.mark.parametrize("turn", [90, 180, -90])
def test_a_rotated_film_is_upright(tmp_path, turn):
    """A red half above, as stored turned by the flag."""
    upright = np.zeros((48, 64, 3), np.uint8)
    upright[:24] = RED
    stored = np.rot90(upright, -turn // 90)
    path = write_film(tmp_path / "a.mp4", [stored] * 4, rotation=turn)
    (frame, *_) = read_clip(path, 1, 64).frames
    assert frame.shape == upright.shape
    assert frame[4:20].mean((0, 1)) == pytest.approx(RED, abs=12)
    assert frame[28:44].mean() < 12


def test_pixels_that_are_not_square_become_so(tmp_path):
    path = write_film(tmp_path / "a.mp4", plain(RED, 2, 48, 64), aspect="4/3")
    (frame, *_) = read_clip(path, 1, 48).frames
    assert frame.shape[:2] in {(48, 85), (48, 86)}


def test_frames_at_uneven_times_keep_them(tmp_path):
    times = [0, 0.1, 0.2, 1.0, 3.0, 3.05]
    path = write_film(tmp_path / "a.mkv", plain(RED, 6), times=times)
    assert read_clip(path, 10, 48).times == pytest.approx(times, abs=0.002)
    # half of the time is after 1.5 s, where there is little: the nearest frames are taken
    assert read_clip(path, 2, 48).times == pytest.approx([1.0, 3.0], abs=0.002)


def test_the_frame_that_is_shown_at_a_time_or_a_mixture(tmp_path):
    path = write_film(tmp_path / "a.mp4", [*plain(RED, 1), *plain(BLUE, 1)], rate=1)
    shown = frames_at(path, [0.0, 0.5, 1.0, 9.0], 48)
    assert [frame[..., 0].mean() > 100 for frame in shown] == [True, True, False, False]
    mixed = frames_at(path, [0.25], 48, mixed=True)[0].mean((0, 1))
    assert mixed == pytest.approx(0.75 * np.array(RED) + 0.25 * np.array(BLUE), abs=6)


def test_shares_of_shots():
    times = [i / 10 for i in range(100)]
    chosen = [times[i] for i in chosen_frames(times, [0, 1, 9, 10], 6)]
    assert [sum(a <= t < b for t in chosen) for a, b in [(0, 1), (1, 9), (9, 10)]] == [1, 4, 1]
    assert chosen_frames([0.0, 0.1], [0, 5, 5.05, 6], 4) == [0, 1]  # shots without frames


def test_memory_does_not_grow_with_length(tmp_path):
    def peak(seconds):
        path = write_film(tmp_path / f"{seconds}.mp4", plain(RED, 8 * seconds))
        tracemalloc.start()
        read_clip(path, 4, 48)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    short = peak(10)
    assert peak(60) < 1.5 * short + 300_000


def test_longer_than_it_may_be(three_shots):
    with pytest.raises(VideoSizeError, match="longer than 3 seconds"):
        read_clip(three_shots, 4, 72, longest=3)


def test_what_is_no_film(tmp_path):
    cases = {
        "empty.mp4": (b"", "the file is empty"),
        "text.mp4": (b"hello " * 100, "no clip"),
        "list.m3u8": (b"#EXTM3U\n#EXTINF:1,\n/etc/passwd\n#EXT-X-ENDLIST\n", "no clip"),
        "list.ffconcat": (b"ffconcat version 1.0\nfile /etc/passwd\n", "no clip"),
    }
    for name, (content, reason) in cases.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(VideoKindError, match=reason):
            read_clip(tmp_path / name, 4, 72)
    with pytest.raises(VideoKindError, match=r"no clip|sound only"):
        read_clip(write_sound(tmp_path / "sound.avi"), 4, 72)
    with pytest.raises(VideoError, match="no such file"):
        read_clip(tmp_path / "absent.mp4", 4, 72)
    with pytest.raises(VideoError, match="folder"):
        read_clip(tmp_path, 4, 72)
    os.mkfifo(tmp_path / "pipe.mp4")
    with pytest.raises(VideoError, match="pipe"):
        read_clip(tmp_path / "pipe.mp4", 4, 72)


def test_a_film_cut_short_is_read_as_far_as_it_goes(tmp_path):
    whole = write_film(tmp_path / "a.mkv", [*textured(1, 40)]).read_bytes()
    clip = read_clip(whole[: len(whole) * 2 // 3], 4, 72)
    assert 1 <= len(clip) <= 4
    assert clip.end < 5


def test_odd_files_end_in_frames_or_one_line(tmp_path):
    """150 mutilated films of four kinds: cut, overwritten, with bytes put in or taken out."""
    seeds = [
        write_film(tmp_path / f"a.{ending}", textured(2, 10), codec=codec).read_bytes()
        for ending, codec in KINDS
    ]
    rng = random.Random(7)
    read = 0
    for _ in range(150):
        content = bytearray(rng.choice(seeds))
        for _ in range(rng.choice([1, 1, 5, 50])):
            at = rng.randrange(len(content))
            kind = rng.randrange(4)
            if kind == 0:
                content[at] = rng.randrange(256)
            elif kind == 1:
                content[at : at + rng.randrange(64)] = rng.randbytes(rng.randrange(64))
            elif kind == 2:
                del content[at : at + rng.randrange(200)]
            elif len(content) > 100:
                del content[max(100, at) :]
            if not content:
                break
        clip = None
        with suppress(UserError):  # anything else is a bug
            clip = read_clip(bytes(content), 4, 72)
        if clip is not None:
            read += 1
            assert 1 <= len(clip) <= 4
            assert list(clip.times) == sorted(clip.times)
            assert all(0 <= time <= clip.end for time in clip.times)
    assert read > 30  # most damage is survived


def test_sizes_at_the_edges(tmp_path):
    tiny = write_film(tmp_path / "a.avi", plain(RED, 2, 1, 1), codec="ffv1")
    assert read_clip(tiny, 2, 48).frames[0].shape == (1, 1, 3)
    fast = write_film(tmp_path / "b.mp4", plain(RED, 240), rate=120)
    assert read_clip(fast, 4, 48).end == pytest.approx(2, abs=0.02)


def test_without_pyav_it_says_what_to_install(tmp_path):
    script = (
        "import sys; sys.modules['av'] = None\n"
        "from sightline.errors import UserError\n"
        "from sightline.media.video import read_clip\n"
        "try: read_clip(b'x', 1, 48)\n"
        "except UserError as error: print(error)\n"
    )
    said = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert "pip install 'sightline-attention[video]'" in said.stdout
