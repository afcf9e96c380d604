"""Every converter, on small sets made in the published forms, and Flickr8k on the real one."""

import json
import os
from pathlib import Path

import pytest
from PIL import Image
from typer.testing import CliRunner

from sightline.commands.prepare import prepare
from sightline.data.converters.published import coco, flickr8k, flickr30k, karpathy
from sightline.data.converters.tables import Columns, from_csv
from sightline.data.manifest import read_manifest
from sightline.errors import DataError

DATA = Path(os.environ.get("SIGHTLINE_DATA", Path(__file__).parents[1] / "../shared/data"))


def photos(folder: Path, *names: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        Image.new("RGB", (4, 4)).save(folder / name, "JPEG")


def splits_of(prepared) -> dict[str, str]:
    return {example.id: example.split for example in prepared.examples}


# ---------------------------------------------------------------- Flickr8k


@pytest.fixture
def small_flickr8k(tmp_path: Path) -> Path:
    photos(tmp_path / "images", "1.jpg", "2.jpg", "3.jpg", "4.jpg")
    lines = [f"{n}.jpg#{k}\tA dog {n} , number {k} ." for n in (1, 2, 3, 4, 5) for k in range(2)]
    lines.append("9.jpg.1#0\tA photo that does not exist .")
    (tmp_path / "Flickr8k.token.txt").write_text("\n".join(lines) + "\n")
    for part, names in (("train", "1.jpg\n5.jpg\n"), ("dev", "2.jpg\n"), ("test", "3.jpg\n")):
        (tmp_path / f"Flickr_8k.{part}Images.txt").write_text(names)
    return tmp_path


def test_flickr8k_keeps_the_official_split(small_flickr8k: Path) -> None:
    prepared = flickr8k(small_flickr8k)
    assert splits_of(prepared) == {"1.jpg": "train", "2.jpg": "dev", "3.jpg": "test"}
    assert prepared.examples[0].targets == ("A dog 1 , number 0 .", "A dog 1 , number 1 .")
    assert prepared.examples[0].media == small_flickr8k / "images" / "1.jpg"
    assert prepared.notes == [
        "2 left out: no file (for example 5.jpg)",
        "1 left out: no split (for example 4.jpg)",
    ]
    assert prepared.summary() == "3 items with 6 texts (train 1, dev 1, test 1)"


def test_flickr8k_faults_are_named(small_flickr8k: Path) -> None:
    token = small_flickr8k / "Flickr8k.token.txt"
    token.write_text(token.read_text() + "no tab here\n")
    with pytest.raises(DataError, match=r"token\.txt:12: not of the form"):
        flickr8k(small_flickr8k)
    token.unlink()
    with pytest.raises(DataError, match="prepare csv"):
        flickr8k(small_flickr8k)
    with pytest.raises(DataError, match="no such folder"):
        flickr8k(small_flickr8k / "absent")


def test_the_real_flickr8k_has_its_published_numbers() -> None:
    folder = DATA / "flickr8k"
    if not folder.exists():
        pytest.skip(f"{folder} is not here")
    prepared = flickr8k(folder)
    assert (
        prepared.summary() == "8,000 items with 40,000 texts (train 6,000, dev 1,000, test 1,000)"
    )
    assert len(prepared.notes) == 2


# ---------------------------------------------------------------- Flickr30k

NAMES = ["100.jpg", "200.jpg", "300.jpg"]


def small_flickr30k(folder: Path) -> Path:
    photos(folder / "flickr30k-images", *NAMES)
    lines = [f"{name}#{k}\tTwo men {k} ." for name in NAMES for k in range(5)]
    (folder / "results_20130124.token").write_text("\n".join(lines))
    return folder


KARPATHY_30K = {
    "images": [
        {"filename": name, "split": split, "sentences": [{"raw": "Two men ."}]}
        for name, split in zip(NAMES, ["train", "val", "test"], strict=True)
    ]
}
SPLITS_30K = {"100.jpg": "train", "200.jpg": "dev", "300.jpg": "test"}


def test_flickr30k_with_karpathys_split(tmp_path: Path) -> None:
    folder = small_flickr30k(tmp_path / "set")
    file = tmp_path / "dataset_flickr30k.json"
    file.write_text(json.dumps(KARPATHY_30K))
    assert splits_of(flickr30k(folder, file)) == SPLITS_30K
    with pytest.raises(DataError, match="no split found; give --splits"):
        flickr30k(folder)
    file.rename(folder / file.name)
    assert splits_of(flickr30k(folder)) == SPLITS_30K


def test_flickr30k_with_lists_of_numbers(tmp_path: Path) -> None:
    folder = small_flickr30k(tmp_path)
    for name, number in (("train", "100"), ("val", "200"), ("test", "300")):
        (folder / f"{name}.txt").write_text(number + "\n")
    prepared = flickr30k(folder)
    assert splits_of(prepared) == SPLITS_30K
    assert [len(example.targets) for example in prepared.examples] == [5, 5, 5]


def test_flickr30k_in_kaggles_form_with_its_broken_line(tmp_path: Path) -> None:
    photos(tmp_path / "flickr30k_images", *NAMES)
    lines = ["image_name| comment_number| comment"]
    lines += [f"{name}| {k}| Two men , {k} | here ." for name in NAMES for k in range(2)]
    lines[-1] = "300.jpg| 1   A dog runs across the grass ."
    (tmp_path / "results.csv").write_text("\n".join(lines))
    (tmp_path / "dataset_flickr30k.json").write_text(json.dumps(KARPATHY_30K))
    prepared = flickr30k(tmp_path)
    assert prepared.examples[0].targets == ("Two men , 0 | here .", "Two men , 1 | here .")
    assert prepared.examples[2].targets[1] == "A dog runs across the grass ."


def test_flickr30k_as_a_table_with_splits(tmp_path: Path) -> None:
    photos(tmp_path / "flickr30k-images", *NAMES)
    rows = ["raw,sentids,split,filename,img_id"]
    for name, split in zip(NAMES, ["train", "val", "test"], strict=True):
        rows.append(f'"[""Two men, here."", ""Men""]","[0, 1]",{split},{name},0')
    (tmp_path / "flickr_annotations_30k.csv").write_text("\n".join(rows))
    prepared = flickr30k(tmp_path)
    assert splits_of(prepared) == SPLITS_30K
    assert prepared.examples[0].targets == ("Two men, here.", "Men")


# ---------------------------------------------------------------- COCO, Karpathy


def coco_file(path: Path, numbers: list[int], part: str) -> None:
    images = [{"id": n, "file_name": f"COCO_{part}_{n:012}.jpg"} for n in reversed(numbers)]
    notes = [
        {"image_id": n, "id": 10 * n + k, "caption": f"A cat, {k}.\n"}
        for k in (0, 1)
        for n in numbers
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps({"info": {}, "images": images, "annotations": notes}))
    photos(path.parents[1] / part, *(image["file_name"] for image in images))


def test_coco_is_trained_on_train_and_val_is_divided(tmp_path: Path) -> None:
    coco_file(tmp_path / "annotations" / "captions_train2014.json", [1, 2, 3], "train2014")
    coco_file(tmp_path / "annotations" / "captions_val2014.json", [4, 5, 6, 7, 8], "val2014")
    prepared = coco(tmp_path)
    assert list(splits_of(prepared).values()) == ["train"] * 3 + ["dev"] * 2 + ["test"] * 2 + [
        "train"
    ]
    first = prepared.examples[0]
    assert first.targets == ("A cat, 0.", "A cat, 1.")
    assert first.media == tmp_path / "train2014" / "COCO_train2014_000000000001.jpg"


def test_coco_faults_are_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"captions_train2014\.json"):
        coco(tmp_path)
    coco_file(tmp_path / "annotations" / "captions_train2014.json", [1], "train2014")
    val = tmp_path / "annotations" / "captions_val2014.json"
    val.write_text('{"images": []}')
    with pytest.raises(DataError, match="not COCO captions: KeyError"):
        coco(tmp_path)
    val.write_text("{")
    with pytest.raises(DataError, match="not JSON"):
        coco(tmp_path)


def test_karpathys_splits_and_folders(tmp_path: Path) -> None:
    photos(tmp_path / "val2014", "a.jpg", "b.jpg", "c.jpg")
    photos(tmp_path, "d.jpg")
    images = [
        {"filename": f"{n}.jpg", "filepath": "val2014", "split": s, "sentences": [{"raw": " A . "}]}
        for n, s in (("a", "restval"), ("b", "val"), ("c", "test"))
    ]
    images.append({"filename": "d.jpg", "split": "train", "sentences": [{"raw": "B"}]})
    file = tmp_path / "dataset_coco.json"
    file.write_text(json.dumps({"images": images, "dataset": "coco"}))
    prepared = karpathy(file, tmp_path)
    assert list(splits_of(prepared).values()) == ["train", "dev", "test", "train"]
    assert prepared.examples[0].media == tmp_path / "val2014" / "a.jpg"
    assert prepared.examples[0].targets == ("A .",)
    file.write_text(json.dumps({"images": [{"filename": "a.jpg", "split": "train"}]}))
    with pytest.raises(DataError, match=r"image 1: KeyError\('sentences'\)"):
        karpathy(file, tmp_path)
    file.write_text("[]")
    with pytest.raises(DataError, match="not one of Karpathy"):
        karpathy(file, tmp_path)


# ---------------------------------------------------------------- tables


def test_csv_groups_rows_and_keeps_its_split(tmp_path: Path) -> None:
    photos(tmp_path, "a.jpg", "b.jpg")
    file = tmp_path / "captions.csv"
    file.write_bytes(
        '\ufeffimage,caption,split\r\na.jpg,"A dog, running",train\r\n'
        'b.jpg,"Two\nlines",val\r\na.jpg,A brown dog,train\r\nb.jpg,,val\r\n'.encode()
    )
    prepared = from_csv(file)
    assert [(e.id, e.split, e.targets) for e in prepared.examples] == [
        ("a.jpg", "train", ("A dog, running", "A brown dog")),
        ("b.jpg", "dev", ("Two\nlines",)),
    ]
    assert prepared.notes == ["1 rows without image or text left out (lines 6)"]


@pytest.mark.parametrize("delimiter", ["\t", ";", "|"])
def test_other_tables_and_columns(tmp_path: Path, delimiter: str) -> None:
    photos(tmp_path / "pics", "a.jpg")
    file = tmp_path / "table.txt"
    file.write_text(f"Bild{delimiter}Satz\na.jpg{delimiter}Ein Hund\n")
    with pytest.raises(DataError, match="no column for the image; there are Bild, Satz"):
        from_csv(file)
    columns = Columns(media="Bild", text="Satz")
    [example] = from_csv(file, media_folder=tmp_path / "pics", columns=columns).examples
    assert example.targets == ("Ein Hund",)
    with pytest.raises(DataError, match="no column 'Foto'"):
        from_csv(file, columns=Columns(media="Foto"))


def test_held_out_items_are_the_same_every_time(tmp_path: Path) -> None:
    names = [f"{n}.jpg" for n in range(50)]
    photos(tmp_path, *names)
    file = tmp_path / "captions.txt"
    file.write_text("image,caption\n" + "".join(f"{name},a dog\n" for name in names * 2))
    first, second = from_csv(file), from_csv(file)
    assert splits_of(first) == splits_of(second)
    assert "train 40, dev 5, test 5" in first.summary()
    assert "train 50, dev 0, test 0" in from_csv(file, dev=0, test=0).summary()
    with pytest.raises(DataError, match="leave some to train on"):
        from_csv(file, dev=0.5, test=0.5)


def test_table_of_sentence_pairs(tmp_path: Path) -> None:
    file = tmp_path / "pairs.tsv"
    file.write_text("source\ttranslation\tsplit\nein Hund\ta dog\ttrain\neine Katze\ta cat\ttest\n")
    first, second = from_csv(file, medium="source").examples
    assert (first.source, first.targets, first.split) == ("ein Hund", ("a dog",), "train")
    assert (second.medium, second.media) == ("source", None)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image,caption\na.jpg,x,y\n", r":2: more columns"),
        ("image,caption,split\na.jpg,x,trian\n", r":2: unknown split 'trian'"),
        ("image,caption,split\na.jpg,x,train\na.jpg,y,test\n", ":3: a.jpg is in train and in test"),
        ('image,caption\na.jpg,"open\n', r"t\.csv:\d: "),
        ("image,caption\nz.jpg,x\n", "none of the 1 files"),
        ("", "no rows"),
        ("image,caption\n", "no rows"),
    ],
)
def test_faults_of_tables_are_named(tmp_path: Path, text: str, message: str) -> None:
    photos(tmp_path, "a.jpg")
    file = tmp_path / "t.csv"
    file.write_text(text)
    with pytest.raises(DataError, match=message):
        from_csv(file)


def test_table_that_is_not_utf8_is_named_with_its_line(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_bytes(b"image,caption\na.jpg,caf\xe9\n")
    with pytest.raises(DataError, match=r"t\.csv:2: not UTF-8"):
        from_csv(file)


# ---------------------------------------------------------------- the command


def test_the_command_writes_a_manifest_that_is_read_back(small_flickr8k: Path) -> None:
    out = small_flickr8k / "set.jsonl"
    result = CliRunner().invoke(prepare, ["flickr8k", str(small_flickr8k), "-o", str(out)])
    assert result.exit_code == 0, result.output
    assert "3 items with 6 texts (train 1, dev 1, test 1)" in result.output
    assert "note: 2 left out: no file (for example 5.jpg)" in result.output
    assert [example.split for example in read_manifest(out)] == ["train", "dev", "test"]


def test_the_csv_command_takes_its_options(tmp_path: Path) -> None:
    photos(tmp_path / "p", "a.jpg")
    (tmp_path / "t.tsv").write_text("bild\tsatz\na.jpg\tEin Hund\n")
    arguments = ["csv", str(tmp_path / "t.tsv"), "--media", str(tmp_path / "p"), "--dev", "0"]
    arguments += [
        "--media-column",
        "bild",
        "--text-column",
        "satz",
        "-o",
        str(tmp_path / "o.jsonl"),
    ]
    result = CliRunner().invoke(prepare, arguments)
    assert result.exit_code == 0, result.output
    assert read_manifest(tmp_path / "o.jsonl", medium="image")[0].targets == ("Ein Hund",)
