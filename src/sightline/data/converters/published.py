"""Converters of published captioning data: Flickr8k, Flickr30k, COCO, and Karpathy's splits."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from sightline.data.converters.files import (
    Prepared,
    assemble,
    read_json,
    read_lines,
    read_rows,
    read_text,
    split_of,
)
from sightline.data.manifest import SPLITS, Split
from sightline.errors import DataError

# ---------------------------------------------------------------- Flickr8k and Flickr30k


def flickr8k(folder: Path) -> Prepared:
    """The published folder: Flickr8k.token.txt, the three split files, and the photos."""
    token = _first_file(folder, ("Flickr8k.token.txt", "Flickr8k_text/Flickr8k.token.txt"))
    if token is None:
        hint = " (for captions.txt use `sightline prepare csv`)"
        raise DataError(f"{folder}: Flickr8k.token.txt is missing{hint}")
    splits: dict[str, Split] = {}
    for split in SPLITS:
        path = token.parent / f"Flickr_8k.{split}Images.txt"
        splits |= dict.fromkeys(read_lines(path), split_of(split, str(path)))
    photos = _photos(folder, ("images", "Images", "Flicker8k_Dataset", "Flickr8k_Dataset"))
    return assemble(_captions(token, _TOKEN_LINE), splits, photos)


def flickr30k(folder: Path, splits: Path | None = None) -> Prepared:
    """results_20130124.token, Kaggle's results.csv or the CSV with splits; and a split.

    `splits` is Karpathy's dataset_flickr30k.json or a folder with train.txt, val.txt and
    test.txt; None: either of them in `folder`.
    """
    usual = ("flickr30k_images/flickr30k_images", "flickr30k-images", "flickr30k_images")
    photos = _photos(folder, (*usual, "images", "Images"))
    table = _first_file(folder, ("flickr_annotations_30k.csv",))
    if table is not None and splits is None:
        return _flickr30k_annotations(table, photos)
    token = _first_file(folder, ("results_20130124.token", "flickr30k/results_20130124.token"))
    kaggle = _first_file(folder, ("results.csv", "flickr30k_images/results.csv"))
    if token is not None:
        captions = _captions(token, _TOKEN_LINE)
    elif kaggle is not None:
        captions = _captions(kaggle, _KAGGLE_LINE, first_line=2)
    else:
        raise DataError(f"{folder}: neither results_20130124.token nor results.csv exists")
    return assemble(captions, _flickr30k_splits(splits or folder), photos)


def _flickr30k_splits(source: Path) -> dict[str, Split]:
    if source.is_dir() and (source / "train.txt").exists():
        splits: dict[str, Split] = {}
        for name in ("train", "val", "test"):
            path = source / f"{name}.txt"
            ids = (line if line.endswith(".jpg") else f"{line}.jpg" for line in read_lines(path))
            splits |= dict.fromkeys(ids, split_of(name, str(path)))
        return splits
    path = source / "dataset_flickr30k.json" if source.is_dir() else source
    if not path.exists():
        raise DataError(
            f"{source}: no split found; give --splits with Karpathy's dataset_flickr30k.json or a "
            "folder with train.txt, val.txt and test.txt"
        )
    return {
        image["filename"]: split_of(image["split"], str(path)) for image in _karpathy_images(path)
    }


# What the lines of a file of captions look like: with the photo and the caption as groups, in words
_TOKEN_LINE = r"([^\t]*)#[^#\t]*\t(.*)", "photo.jpg#0<TAB>caption"
_KAGGLE_LINE = r"([^|]+)\|\s*\d+\s*\|?\s*(.*)", "photo.jpg| 0| caption"  # one lacks its second bar


def _captions(path: Path, form: tuple[str, str], first_line: int = 1) -> dict[str, list[str]]:
    captions: dict[str, list[str]] = {}
    for number, line in enumerate(read_text(path).split("\n"), start=1):
        if number < first_line or not line.strip():
            continue
        match = re.match(form[0], line)
        if match is None:
            raise DataError(f"{path}:{number}: not of the form {form[1]}")
        captions.setdefault(match[1].strip(), []).append(match[2].strip())
    return captions


def _flickr30k_annotations(path: Path, photos: Path) -> Prepared:
    """One row per photo: `raw` is a JSON list of captions, alongside `split` and `filename`."""
    captions: dict[str, list[str]] = {}
    splits: dict[str, Split] = {}
    for number, row in read_rows(path, ","):
        try:
            captions[row["filename"]] = [text.strip() for text in json.loads(row["raw"])]
            splits[row["filename"]] = split_of(row["split"], f"{path}:{number}")
        except (KeyError, ValueError, AttributeError):
            raise DataError(f"{path}:{number}: needs filename, split and raw (a list)") from None
    return assemble(captions, splits, photos)


# ---------------------------------------------------------------- COCO and Karpathy's splits


def coco(folder: Path) -> Prepared:
    """captions_train and captions_val of 2014 or 2017, with their pictures.

    train is for training. Of val (in order of image id) the first 5,000 are dev, the next 5,000
    test and the rest training, as in Karpathy's proportions; a val of at most 10,000 is halved.
    For Karpathy's own choice of pictures use `karpathy`.
    """
    for year in ("2014", "2017"):
        names = [f"captions_{part}{year}.json" for part in ("train", "val")]
        train, val = (_first_file(folder, (f"annotations/{name}", name)) for name in names)
        if train is not None and val is not None:
            break
    else:
        raise DataError(
            f"{folder}: captions_train2014.json and captions_val2014.json (or 2017) are missing, "
            "here and in annotations/"
        )
    train_part = _coco_file(train, _photos(folder, (f"train{year}", f"images/train{year}")))
    val_part = _coco_file(val, _photos(folder, (f"val{year}", f"images/val{year}")))
    part = min(5000, len(val_part.examples) // 2)
    moved = [
        replace(example, split="dev" if place < part else "test" if place < 2 * part else "train")
        for place, example in enumerate(val_part.examples)
    ]
    return Prepared(train_part.examples + moved, train_part.notes + val_part.notes)


def _coco_file(path: Path, photos: Path) -> Prepared:
    content = read_json(path)
    try:
        names = {image["id"]: str(image["file_name"]) for image in content["images"]}
        captions: dict[str, list[str]] = {names[number]: [] for number in sorted(names)}
        for annotation in content["annotations"]:
            captions[names[annotation["image_id"]]].append(annotation["caption"].strip())
    except (KeyError, TypeError, AttributeError) as error:
        raise DataError(f"{path}: not COCO captions: {error!r} is missing or wrong") from None
    return assemble(captions, dict.fromkeys(captions, "train"), photos)


def karpathy(file: Path, images: Path) -> Prepared:
    """Karpathy's dataset_flickr8k.json, dataset_flickr30k.json or dataset_coco.json."""
    captions: dict[str, list[str]] = {}
    splits: dict[str, Split] = {}
    folders: dict[str, str] = {}
    for number, image in enumerate(_karpathy_images(file), start=1):
        try:
            name = image["filename"]
            captions[name] = [sentence["raw"].strip() for sentence in image["sentences"]]
            splits[name] = split_of(image["split"], f"{file}: image {number}")
            folders[name] = image.get("filepath", "")
        except (KeyError, TypeError, AttributeError) as error:
            raise DataError(f"{file}: image {number}: {error!r} is missing or wrong") from None
    return assemble(captions, splits, images, folders)


def _karpathy_images(path: Path) -> list[dict[str, Any]]:
    content = read_json(path)
    images = content.get("images") if isinstance(content, dict) else None
    if not isinstance(images, list) or not all(
        isinstance(image, dict) and "filename" in image and "split" in image for image in images
    ):
        raise DataError(f'{path}: not one of Karpathy\'s files: a list "images" is expected')
    return images


# ---------------------------------------------------------------- finding files


def _photos(folder: Path, names: Sequence[str]) -> Path:
    """The folder of pictures, under one of its usual names, or the folder itself."""
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    return next((folder / name for name in names if (folder / name).is_dir()), folder)


def _first_file(folder: Path, names: Sequence[str]) -> Path | None:
    if not folder.is_dir():
        raise DataError(f"{folder}: no such folder")
    return next((folder / name for name in names if (folder / name).is_file()), None)
