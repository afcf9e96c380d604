"""Clips with captions: MSR-VTT (Xu et al. 2016) and MSVD (Chen and Dolan 2011)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sightline.data.converters.files import Prepared, assemble, read_json, read_lines, split_of
from sightline.data.manifest import Split
from sightline.errors import DataError

SUFFIXES = (".mp4", ".avi", ".webm", ".mkv")
FOLDERS = ("clips", "TrainValVideo", "TestVideo", "YouTubeClips", "videos", "")
TRAIN, DEV = 1200, 100  # clips of MSVD by Venugopalan et al. (2015); the other 670 are for tests


def msrvtt(folder: Path) -> Prepared:
    """The published `*videodatainfo*.json`, or `captions.json`: {clip: {split, captions}}."""
    small = folder / "captions.json"
    if small.is_file():
        captions, splits = _by_clip(small)
    else:
        files = sorted(folder.glob("*videodatainfo*.json"))
        if not files:
            raise DataError(f"{folder}: neither captions.json nor a videodatainfo.json is here")
        captions, splits = {}, {}
        for path in files:
            some, where = _videodatainfo(path)
            captions |= some
            splits |= where
    return _assembled(captions, splits, folder)


def _by_clip(path: Path) -> tuple[dict[str, list[str]], dict[str, Split]]:
    content = read_json(path)
    try:
        captions = {
            name: [str(text) for text in clip["captions"]] for name, clip in content.items()
        }
        splits = {name: split_of(clip["split"], str(path)) for name, clip in content.items()}
    except (AttributeError, KeyError, TypeError):
        raise DataError(f"{path}: needs {{clip: {{split, captions}}}}") from None
    return captions, splits


def _videodatainfo(path: Path) -> tuple[dict[str, list[str]], dict[str, Split]]:
    content: Any = read_json(path)
    captions: dict[str, list[str]] = {}
    try:
        for sentence in content["sentences"]:
            captions.setdefault(sentence["video_id"], []).append(str(sentence["caption"]))
        names = {v["video_id"]: v["split"].replace("validate", "val") for v in content["videos"]}
        splits = {video: split_of(name, str(path)) for video, name in names.items()}
    except (AttributeError, KeyError, TypeError):
        raise DataError(f"{path}: needs videos (video_id, split) and sentences") from None
    return captions, splits


def msvd(folder: Path) -> Prepared:
    """Lines of `clip caption`, the split by the order of youtube_mapping.txt."""
    path, mapping = folder / "AllVideoDescriptions.txt", folder / "youtube_mapping.txt"
    for each in (path, mapping):
        if not each.is_file():
            raise DataError(f"{each}: no such file")
    captions: dict[str, list[str]] = {}
    for number, line in enumerate(read_lines(path), start=1):
        name, _, text = line.partition(" ")
        if line.startswith("#"):
            continue
        if not text:
            raise DataError(f"{path}:{number}: not of the form `clip caption`")
        captions.setdefault(name, []).append(text)
    splits: dict[str, Split] = {}
    for line in read_lines(mapping):  # `clip vidN`, N from 1
        name, _, place = line.partition(" ")
        if not place.startswith("vid") or not place[3:].isdigit():
            raise DataError(f"{mapping}: {line!r} is not of the form `clip vidN`")
        order = int(place[3:])
        splits[name] = "train" if order <= TRAIN else "dev" if order <= TRAIN + DEV else "test"
    return _assembled(captions, splits, folder)


def _assembled(
    captions: Mapping[str, Sequence[str]], splits: Mapping[str, Split], folder: Path
) -> Prepared:
    """Clips are found in whichever folder, by whichever ending, they were published with."""
    places = {
        path.stem: (below, path.name)
        for below in reversed(FOLDERS)
        for path in sorted((folder / below).glob("*"))
        if path.suffix.lower() in SUFFIXES
    }
    files = {name: places.get(name, ("", name))[1] for name in captions}
    return assemble(
        {files[name]: texts for name, texts in captions.items()},
        {files.get(name, name): split for name, split in splits.items()},
        folder,
        {files[name]: places[name][0] for name in captions if name in places},
        medium="video",
    )
