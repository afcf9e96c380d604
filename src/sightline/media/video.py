"""A video file to a few of its frames, with their times: for training, describing and serving.

`read_clip` samples a whole file; `read_clips` cuts it into stretches, each sampled, while it is
read. Frames come upright, with square pixels, with the times at which they are shown. A file is
decoded once from its beginning to its end, its header's duration is not believed, and memory does
not grow with its length. Needs PyAV, the extra `video`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING, BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray

from sightline.errors import (
    MissingPackageError,
    VideoError,
    VideoKindError,
    VideoSizeError,
    install,
)
from sightline.media.files import Source, name_of, opened
from sightline.media.shots import CutDetector

if TYPE_CHECKING:
    from av.container import InputContainer
    from av.video.frame import VideoFrame
    from av.video.stream import VideoStream

Sampling = Literal["uniform", "shots"]
Pixels = NDArray[np.uint8]

MAX_FRAME = 36_000_000  # pixels: 8K
# Containers that hold a film in one file; playlists and image sequences open other files
_CONTAINERS = "mov,matroska,webm,avi,mpegts,mpeg,mpegvideo,h264,hevc,flv,ogg,gif,asf,ivf,m4v,mjpeg"
_SPARE = 4  # so many times the frames that are wanted are kept while a file's length is unknown
_WIDEST = 8  # how many times as long as its short side a frame that is kept may be
_BAD_PACKETS = 1000  # in a row


@dataclass(frozen=True)
class Clip:
    """A stretch of film: some frames of it, and when each is shown, in seconds."""

    start: float
    end: float
    times: tuple[float, ...]
    frames: tuple[Pixels, ...]  # (H, W, 3) each

    def __len__(self) -> int:
        return len(self.times)


def read_clip(
    source: Source,
    count: int,
    side: int,
    *,
    sampling: Sampling = "uniform",
    longest: float = math.inf,
    name: str | None = None,
) -> Clip:
    """At most `count` frames of a whole file, their short side at most `side` pixels.

    uniform: the frames nearest to the middles of `count` equal parts of its time
    shots:   the same within each shot, each having its share and at least one
    A file that is longer than `longest` seconds is an error.
    """
    return next(read_clips(source, count, side, sampling=sampling, longest=longest, name=name))


def read_clips(
    source: Source,
    count: int,
    side: int,
    *,
    every: float = math.inf,
    shots: bool = False,
    sampling: Sampling = "uniform",
    longest: float = math.inf,
    name: str | None = None,
    progress: Callable[[float, float | None], None] = lambda now, end: None,
) -> Iterator[Clip]:
    """Stretches of `every` seconds, or the shots, of a file as it is read, each sampled.

    `progress` hears the film's time, and its duration as its header has it.
    """
    detector = CutDetector() if shots or sampling == "shots" else None
    sample = _Sample(count, sampling)
    now, end = 0.0, 0.0
    for frame in _frames(source, side, name or name_of(source, "video"), longest, progress):
        now, end = frame.time, frame.end
        cut = detector is not None and detector.is_cut(now, frame.thumb())
        if sample.times and ((shots and cut) or now >= sample.start + every - 1e-6):
            yield sample.clip(now)
            sample = _Sample(count, sampling, now)
        sample.add(frame, cut)
    yield sample.clip(end)


def frames_at(
    source: Source,
    times: Sequence[float],  # ascending
    side: int,
    *,
    mixed: bool = False,
    name: str | None = None,
) -> list[Pixels]:
    """The frame that is shown at each of these times; or mixed with the next, by their times."""
    found: list[Pixels] = []
    before: _Frame | None = None
    for frame in _frames(
        source, side, name or name_of(source, "video"), math.inf, lambda now, end: None
    ):
        while len(found) < len(times) and times[len(found)] < frame.time - 1e-6:
            shown = frame if before is None else before
            share = (times[len(found)] - shown.time) / (frame.time - shown.time or 1.0)
            if mixed and 0 < share < 1 and frame.picture.shape == shown.picture.shape:
                both = shown.picture * np.float32(1 - share) + frame.picture * np.float32(share)
                found.append(np.rint(both).astype(np.uint8))
            else:
                found.append(shown.picture)
        before = frame
        if len(found) == len(times):
            return found
    assert before is not None  # or there would have been an error
    return found + [before.picture] * (len(times) - len(found))


# ---------------------------------------------------------------- frames that are kept


@dataclass
class _Sample:
    """A stretch that is being read: frames spread over its time, thinned out as it grows."""

    count: int
    sampling: Sampling = "uniform"
    start: float = 0.0
    apart: float = 0.0  # seconds at least between two that are kept
    times: list[float] = field(default_factory=list)
    frames: list[Pixels] = field(default_factory=list)
    cuts: list[float] = field(default_factory=list)

    def add(self, frame: _Frame, cut: bool) -> None:
        if cut:
            self.cuts.append(frame.time)
        if self.times and not cut and frame.time < self.times[-1] + self.apart:
            return
        self.times.append(frame.time)
        self.frames.append(frame.picture)
        if len(self.times) > _SPARE * self.count:
            self.apart = 2 * (frame.time - self.start) / (_SPARE * self.count)
            self._thin()

    def _thin(self) -> None:
        kept = [0]
        for i, time in enumerate(self.times):
            if time >= self.times[kept[-1]] + self.apart:
                kept.append(i)
        # a film whose times stand still would never become shorter
        kept = kept if len(kept) < len(self.times) else list(range(0, len(self.times), 2))
        self.times = [self.times[i] for i in kept]
        self.frames = [self.frames[i] for i in kept]

    def clip(self, end: float) -> Clip:
        edges = [self.start, *(self.cuts if self.sampling == "shots" else ()), end]
        chosen = chosen_frames(self.times, edges, self.count)
        times = tuple(self.times[i] for i in chosen)
        return Clip(self.start, end, times, tuple(self.frames[i] for i in chosen))


def chosen_frames(times: Sequence[float], edges: Sequence[float], count: int) -> list[int]:
    """At most `count` of the frames, spread evenly over the shots between the edges.

    A shot has its share of them by its length, at least one; of shots without a frame nothing is
    taken, and of more shots than `count` the longest.
    """
    if len(times) <= count:
        return list(range(len(times)))
    shots = [s for s in _spans(edges) if any(s[0] <= time < s[1] for time in times)]
    shots = shots or [(times[0], times[-1])]  # times that stand still
    shots = sorted(sorted(shots, key=lambda s: s[0] - s[1])[:count])
    chosen: set[int] = set()
    for (first, last), share in zip(shots, _shares(shots, count), strict=True):
        inside = [i for i, time in enumerate(times) if first <= time <= last]
        for part in range(share):
            wanted = first + (part + 0.5) * (last - first) / share
            chosen.add(min(inside, key=lambda i: abs(times[i] - wanted)))
    return sorted(chosen)


def _spans(edges: Sequence[float]) -> list[tuple[float, float]]:
    return [(a, b) for a, b in pairwise(edges) if b > a]


def _shares(shots: Sequence[tuple[float, float]], count: int) -> list[int]:
    """Of `count` frames, those of each shot: one, the rest to whoever has fewest a second."""
    shares = [1] * len(shots)
    for _ in range(count - len(shots)):
        most = max(range(len(shots)), key=lambda i: (shots[i][1] - shots[i][0]) / (shares[i] + 0.5))
        shares[most] += 1
    return shares


# ---------------------------------------------------------------- file → frames


@dataclass(frozen=True)
class _Frame:
    """A decoded frame; its pixels are converted only if they are asked for."""

    time: float  # seconds since the first frame
    end: float
    decoded: VideoFrame
    aspect: float  # of a pixel: width / height
    side: int

    @cached_property
    def picture(self) -> Pixels:
        """Upright, with square pixels, reduced to `side`."""
        height, width = self.decoded.height, self.decoded.width * self.aspect
        scale = min(1.0, self.side / min(height, width))
        scale = min(scale, _WIDEST * self.side / max(height, width))
        size = max(1, round(width * scale)), max(1, round(height * scale))
        pixels = self.decoded.reformat(*size, format="rgb24", interpolation="AREA").to_ndarray()
        # rotation counts counter-clockwise, as np.rot90 does
        return np.ascontiguousarray(np.rot90(pixels, round(self.decoded.rotation / 90) % 4))

    def thumb(self) -> Pixels:
        """A few pixels to tell shots apart by."""
        size = CutDetector.WIDTH, CutDetector.HEIGHT
        small = self.decoded.reformat(*size, format="rgb24", interpolation="AREA")
        return np.asarray(small.to_ndarray(), np.uint8)


def _frames(
    source: Source,
    side: int,
    name: str,
    longest: float,
    progress: Callable[[float, float | None], None],
) -> Iterator[_Frame]:
    """Every frame that can be decoded, in order; a VideoError if there is none."""
    with _container(source, name) as container:
        stream = _film_stream(container, name)
        given = stream.sample_aspect_ratio or stream.codec_context.sample_aspect_ratio or 1
        aspect = float(given) if 1 / 50 <= given <= 50 else 1.0
        usual = 1 / float(stream.average_rate or stream.guessed_rate or 25)
        header = container.duration / 1e6 if container.duration else None
        first: float | None = None
        now, gap, decoded = -usual, usual, 0
        for each in _decoded(container, stream):
            stamp = each.time
            first = (stamp or 0.0) if first is None else first
            after = stamp - first if stamp is not None else now + gap
            if decoded and after < now:  # pieces joined without care: time goes on
                first -= now + gap - after
                after = now + gap
            gap = min(after - now, 10.0) or gap
            now, decoded = after, decoded + 1
            if now > longest or decoded > 240 * longest:
                raise VideoSizeError(f"{name}: longer than {longest:g} seconds; cut it first")
            if each.width * each.height > MAX_FRAME:
                raise _too_large(name, each.width, each.height)
            progress(now, header)
            length = float(each.duration * (each.time_base or 0)) if each.duration else gap
            yield _Frame(now, now + (length if 0 < length <= 10 else gap), each, aspect, side)
        if not decoded:
            raise VideoError(f"{name}: damaged or cut short: no frame of it can be decoded")


def _decoded(container: InputContainer, stream: VideoStream) -> Iterator[VideoFrame]:
    """What can be decoded: damaged packets are left out, and what follows a torn end."""
    import av

    packets, bad = container.demux(stream), 0
    while bad < _BAD_PACKETS:
        try:
            packet = next(packets)
        except (StopIteration, av.FFmpegError, OSError, ValueError, MemoryError):
            return
        try:
            yield from packet.decode()
            bad = 0
        except (av.FFmpegError, ValueError):
            bad += 1


def _film_stream(container: InputContainer, name: str) -> VideoStream:
    """The first stream of moving pictures; a sound file's cover is none."""
    import av.stream

    cover = av.stream.Disposition.attached_pic
    streams = [each for each in container.streams.video if not each.disposition & cover]
    if not streams:
        what = "it has sound only" if container.streams.audio else "there is no film in it"
        raise VideoKindError(f"{name}: no clip that Sightline can describe: {what}")
    stream = streams[0]
    context = stream.codec_context
    if context is None:
        raise VideoKindError(f"{name}: its film is in a code that PyAV does not know")
    if context.width * context.height > MAX_FRAME:
        raise _too_large(name, context.width, context.height)
    stream.thread_type = "AUTO"
    return stream


def _too_large(name: str, width: int, height: int) -> VideoSizeError:
    return VideoSizeError(f"{name}: frames of {width} × {height} pixels are too large; reduce them")


@contextmanager
def _container(source: Source, name: str) -> Iterator[InputContainer]:
    try:
        import av
    except ModuleNotFoundError:
        raise MissingPackageError(f"clips need PyAV: {install('video')}") from None
    with opened(source, name, "video", VideoError) as file:
        try:
            # a file of ours is given, not its name, and no other may be opened from inside it
            options = {"format_whitelist": _CONTAINERS, "protocol_whitelist": "none"}
            container = av.open(file, "r", options=options, metadata_errors="ignore")
        except (av.FFmpegError, OSError, ValueError, IndexError, MemoryError) as error:
            raise VideoKindError(f"{name}: {_refusal(file, error)}") from None
        with container:
            yield container


def _refusal(file: BinaryIO, error: BaseException) -> str:
    with suppress(OSError, ValueError):
        file.seek(0)
        if not file.read(1):
            return "the file is empty"
    reason = str(getattr(error, "strerror", "") or error)
    return f"no clip that Sightline reads, or damaged ({reason.splitlines()[0] if reason else ''})"
