"""300 odd files, of 23 kinds: each gives frames that make sense, or one clear line."""

import io
import random
from collections import Counter

import numpy as np
import pytest
from PIL import Image

from sightline.errors import VideoError

av = pytest.importorskip("av", reason="clips need PyAV")

from films import COLOURS, plain, textured, write_film, write_sound  # noqa: E402
from sightline.media.video import read_clip  # noqa: E402
from sightline.samples import samples  # noqa: E402

COUNT, SIDE = 16, 64
RED = COLOURS["red"]
BAD = {"no frames", "no picture", "sound only", "empty", "noise", "text", "picture"}  # always
WHOLE = {
    *("one frame", "one pixel", "slim", "odd sides", "fast", "rotated", "wide pixels", "uneven"),
    *("a long pause", "times begin late", "gif", "joined", "wrong duration", "large"),
}  # always read


def no_frames(path, rng):
    with av.open(str(path), "w") as container:
        stream = container.add_stream(rng.choice(["libx264", "mpeg4"]), rate=8)
        stream.width = stream.height = rng.choice([16, 64, 640])
        container.start_encoding()


def no_picture(path, rng):
    """Headers of a film, without what follows."""
    whole = write_film(path, textured(rng.randrange(99), 6)).read_bytes()
    path.write_bytes(whole[: rng.randrange(1, 40)])


def sound_only(path, rng):
    write_sound(path.with_suffix(".mkv")).rename(path)


def wrong_duration(path, rng):
    content = bytearray(write_film(path, textured(1, rng.randint(4, 20))).read_bytes())
    for name, at in ((b"mvhd", 20), (b"tkhd", 24), (b"mdhd", 20)):  # of versions without 64 bits
        place = content.find(name) + at
        content[place : place + 4] = rng.choice([b"\0\0\0\0", b"\xff" * 4, rng.randbytes(4)])
    path.write_bytes(content)


def cut(path, rng):
    ending, codec = rng.choice([("mp4", "libx264"), ("mkv", "mpeg4"), ("ts", "libx264")])
    other = path.with_suffix(f".{ending}")
    whole = write_film(other, textured(rng.randrange(99), 24), codec=codec).read_bytes()
    path.write_bytes(whole[: round(len(whole) * rng.uniform(0.1, 0.95))])


def damaged(path, rng):
    content = bytearray(write_film(path, textured(rng.randrange(99), 16)).read_bytes())
    for _ in range(rng.choice([1, 10, 100])):
        content[rng.randrange(len(content))] = rng.randrange(256)
    path.write_bytes(content)


def uneven(path, rng):
    gaps = [rng.choice([0.001, 0.04, 0.5, 3.0]) for _ in range(20)]
    write_film(path, textured(3, 20), times=np.cumsum(gaps).tolist())


def late(path, rng):
    first = rng.choice([5, 5000])
    other = path.with_suffix(".mkv")
    write_film(other, plain(RED, 3), times=[first, first + 1, first + 2], codec="mpeg4")
    other.rename(path)


def gif(path, rng):
    pictures = [Image.fromarray(pixels) for pixels in textured(rng.randrange(99), 5)]
    number = rng.randint(1, 5)
    pictures[0].save(
        path, "GIF", save_all=True, append_images=pictures[1:number], duration=rng.choice([0, 70])
    )


def joined(path, rng):
    """Pieces whose times begin anew, with a byte too many between them."""
    parts = []
    for seed in range(rng.randint(2, 4)):
        part = path.with_name(f"{seed}.ts")
        parts.append(write_film(part, textured(seed, 8)).read_bytes())
    path.write_bytes(rng.choice([b"", b"\0"]).join(parts))


def picture(path, rng):
    chosen = rng.choice(samples()).path
    out = io.BytesIO()
    Image.open(chosen).resize((40, 30)).save(out, rng.choice(["JPEG", "PNG", "WEBP", "BMP"]))
    path.write_bytes(out.getvalue())


def of(count, height, width, **options):
    """Plain frames of this shape."""
    return lambda path, rng: write_film(path, plain(RED, count, height, width), **options)


def stored(codec, choose):
    """A few frames of a size that `choose` gives, in Matroska."""

    def make(path, rng):
        height, width = choose(rng)
        other = path.with_suffix(".mkv")
        write_film(other, plain(RED, 3, height, width), codec=codec).rename(path)

    return make


KINDS = {
    "no frames": no_frames,
    "no picture": no_picture,
    "one frame": of(1, 48, 64),
    "one pixel": stored("rawvideo", lambda rng: (1, 1)),
    "slim": stored("rawvideo", lambda rng: rng.choice([(2, 600), (600, 2), (2, 90)])),
    "odd sides": stored("rawvideo", lambda rng: (rng.randint(3, 99), rng.randint(3, 99))),
    "large": stored("mpeg4", lambda rng: rng.choice([(2160, 3840), (3840, 2160)])),
    "sound only": sound_only,
    "empty": lambda path, rng: path.write_bytes(b""),
    "noise": lambda path, rng: path.write_bytes(rng.randbytes(rng.randint(1, 5000))),
    "text": lambda path, rng: path.write_bytes(b"#EXTM3U\n/etc/passwd\n" * rng.randint(1, 99)),
    "picture": picture,
    "cut": cut,
    "damaged": damaged,
    "wrong duration": wrong_duration,
    "fast": lambda path, rng: write_film(path, textured(1, 60), rate=rng.choice([120, 240])),
    "rotated": lambda path, rng: write_film(
        path, textured(1, 6), rotation=rng.choice([90, 180, -90])
    ),
    "wide pixels": lambda path, rng: write_film(
        path, textured(1, 6), aspect=rng.choice(["3/1", "1/3", "49/1"])
    ),
    "uneven": uneven,
    "a long pause": lambda path, rng: write_film(
        path, plain(RED, 3), times=[0, 1, rng.choice([100, 9000])]
    ),
    "times begin late": late,
    "gif": gif,
    "joined": joined,
}


def require_sense(clip):
    assert 1 <= len(clip) == len(clip.frames) <= COUNT
    assert list(clip.times) == sorted(clip.times)
    assert clip.times[0] >= 0
    assert clip.times[-1] <= clip.end < 1e5
    for frame in clip.frames:
        assert frame.dtype == np.uint8
        assert frame.shape[2] == 3
        assert 1 <= min(frame.shape[:2]) <= SIDE
        assert max(frame.shape[:2]) <= 8 * SIDE


@pytest.mark.slow
def test_300_odd_files_give_frames_or_one_clear_line(tmp_path):
    rng = random.Random(1)
    read, refused = Counter(), Counter()
    for number in range(300):
        kind = list(KINDS)[number % len(KINDS)]
        path = tmp_path / f"{number}.mp4"
        KINDS[kind](path, rng)
        clip, said = None, ""
        try:
            clip = read_clip(rng.choice([path, path.read_bytes()]), COUNT, SIDE)
        except VideoError as error:  # anything else is a bug
            said = str(error)
        if clip is None:
            refused[kind] += 1
            assert "\n" not in said
            assert 10 < len(said) < 300
        else:
            read[kind] += 1
            require_sense(clip)
    print(f"read: {dict(read)}; refused: {dict(refused)}")
    assert not BAD & read.keys()
    assert not WHOLE & refused.keys()
    assert read["cut"]
    assert read["damaged"]
