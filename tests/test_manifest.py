"""The manifest is read as written, its faults are named by line, and captions are normalised."""

import gzip
import json
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.data.manifest import (
    Example,
    normalise_caption,
    read_manifest,
    read_split,
    write_manifest,
)
from sightline.errors import DataError

DATA = Path(os.environ.get("SIGHTLINE_DATA", Path(__file__).parents[1] / "../shared/data"))


def manifest(tmp_path: Path, *lines: object) -> Path:
    path = tmp_path / "set.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts) + "\n", encoding="utf-8")
    return path


def fault(path: Path, **options: object) -> str:
    with pytest.raises(DataError) as caught:
        read_manifest(path, **options)  # type: ignore[arg-type]
    return str(caught.value)


def test_every_medium_is_read(tmp_path: Path) -> None:
    path = manifest(
        tmp_path,
        {"id": "1", "image": "images/a.jpg", "targets": ["a dog", "a cat"], "split": "dev"},
        {"image": "/far/b.jpg", "targets": ["a bird"]},
        {"id": 7, "source": "ein Hund", "targets": ["a dog"]},
        {"id": "s", "audio": "a.wav", "targets": ["hello"], "meta": {"speaker": 3}},
        {"id": "v", "video": "a.mp4", "split": "test"},
        {"id": "q", "image": "c.jpg", "source": "what is it?", "targets": ["a cow"]},
        {"targets": ["only a text"]},
    )
    first, second, third, fourth, fifth, sixth, seventh = read_manifest(path)
    assert first == Example(
        "1", "dev", ("a dog", "a cat"), medium="image", media=tmp_path / "images/a.jpg"
    )
    assert (second.id, second.split) == ("/far/b.jpg", "train")
    assert second.media == Path("/far/b.jpg")
    assert (third.id, third.medium, third.source) == ("7", "source", "ein Hund")
    assert fourth.medium == "audio"
    assert fourth.meta == {"speaker": 3}
    assert (fifth.medium, fifth.targets) == ("video", ())
    assert (sixth.medium, sixth.source) == ("image", "what is it?")
    assert (seventh.id, seventh.medium, seventh.media) == ("line 7", None, None)


def test_blank_lines_windows_endings_and_a_byte_order_mark_are_fine(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    line = json.dumps({"image": "a.jpg", "targets": ["un café"]}, ensure_ascii=False)
    path.write_bytes(b"\xef\xbb\xbf" + line.encode() + b"\r\n\r\n\n")
    assert [example.targets for example in read_manifest(path)] == [("un café",)]


GOOD = {"id": "good", "image": "a.jpg", "targets": ["a dog"]}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"id": "x", ', "not JSON"),
        ('["a"]', "must be an object in {}, not a list"),
        ("12", "not the number 12"),
        ({"image": "b.jpg", "captions": ["x"]}, "unknown key 'captions'; did you mean 'targets'?"),
        ({"imgae": "b.jpg", "targets": ["x"]}, "unknown key 'imgae'; did you mean 'image'?"),
        ({"image": "b.jpg", "targets": ["x"], "split": "val"}, "did you mean 'dev'?"),
        ({"image": "b.jpg", "targets": ["x"], "split": "tran"}, "did you mean 'train'?"),
        ({"image": "b.jpg", "targets": ["x"], "split": ["dev"]}, "split must be"),
        ({"image": "b.jpg", "targets": "x"}, "list of texts"),
        ({"image": "b.jpg", "targets": {"a": 1}}, "not an object"),
        ({"image": "b.jpg", "targets": ["x", "  "]}, "target 2 is empty"),
        ({"image": "b.jpg", "targets": [None]}, "target 1 must be a text, not null"),
        ({"image": "b.jpg", "targets": []}, "missing or empty"),
        ({"image": "b.jpg"}, "missing or empty"),
        ({"image": 3, "targets": ["x"]}, "image must be a text, not the number 3"),
        ({"image": "", "targets": ["x"]}, "image is empty"),
        ({"image": "b.jpg", "audio": "b.wav", "targets": ["x"]}, "image and audio in one item"),
        ({"id": "", "image": "b.jpg", "targets": ["x"]}, "id must be a text"),
        ({"id": True, "image": "b.jpg", "targets": ["x"]}, "id must be a text"),
        ({"id": "good", "image": "b.jpg", "targets": ["x"]}, "used in line 1 already"),
        ({"image": "b.jpg", "targets": ["x"], "meta": 1}, "meta must be an object"),
        ('{"image": "b.jpg", "targets": ["\\ud800"]}', "broken"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_a_fault_is_named_with_its_line(tmp_path: Path, line: object, message: str) -> None:
    path = manifest(tmp_path, GOOD, "", line)
    text = fault(path)
    assert text.startswith(f"{path}:3: ")
    assert message in text


def test_bad_utf8_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    path.write_bytes(json.dumps(GOOD).encode() + b'\n{"image": "caf\xe9.jpg"}\n')
    assert f"{path}:2: not UTF-8 at byte 15" in fault(path)


def test_all_faults_are_listed_up_to_ten(tmp_path: Path) -> None:
    path = manifest(tmp_path, *(["{}}"] * 14))
    lines = fault(path).splitlines()
    assert [line.split(":")[1] for line in lines[:10]] == [str(n) for n in range(1, 11)]
    assert lines[10] == "… and 4 more faults"


def test_a_task_can_ask_for_its_medium(tmp_path: Path) -> None:
    path = manifest(tmp_path, GOOD, {"id": "t", "source": "hallo", "targets": ["hello"]})
    assert len(read_manifest(path)) == 2
    assert ":2: 'image' is missing" in fault(path, medium="image")


def test_a_split_is_read_for_a_medium(tmp_path: Path) -> None:
    held_out = {"id": "2", "image": "b.jpg", "targets": ["a cat"], "split": "test"}
    path = manifest(tmp_path, {"id": "1", "image": "a.jpg", "targets": ["a dog"]}, held_out)
    assert [example.id for example in read_split(path, "test", "image")] == ["2"]
    with pytest.raises(DataError, match="has no item of split 'dev'"):
        read_split(path, "dev", "image")
    with pytest.raises(DataError, match="'source' is missing"):
        read_split(path, "test", "source")


def test_missing_and_empty_manifests_are_clear(tmp_path: Path) -> None:
    assert "no such manifest" in fault(tmp_path / "absent.jsonl")
    assert "is empty" in fault(manifest(tmp_path, ""))


def test_written_manifests_are_read_back_and_can_be_moved(tmp_path: Path) -> None:
    folder = tmp_path / "one"
    examples = [
        Example("a", "train", ("ein Käfer",), "image", folder / "images" / "a.jpg"),
        Example("b", "test", (), "audio", Path("/elsewhere/b.wav"), meta={"n": 1}),
        Example("c", "dev", ("x", "y"), "source", None, "z"),
    ]
    write_manifest(folder / "set.jsonl", examples)
    assert read_manifest(folder / "set.jsonl") == examples
    assert '"images/a.jpg"' in (folder / "set.jsonl").read_text(encoding="utf-8")
    folder.rename(tmp_path / "two")
    moved = read_manifest(tmp_path / "two" / "set.jsonl")
    assert moved[0].media == tmp_path / "two" / "images" / "a.jpg"
    assert moved[1].media == Path("/elsewhere/b.wav")


def test_a_write_that_fails_leaves_the_old_manifest(tmp_path: Path) -> None:
    path = tmp_path / "set.jsonl"
    old = [Example("a", "train", ("x",))]
    write_manifest(path, old)

    def failing():  # type: ignore[no-untyped-def]
        yield Example("b", "train", ("y",))
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError):
        write_manifest(path, failing())
    assert read_manifest(path) == old
    assert [file.name for file in tmp_path.iterdir()] == ["set.jsonl"]


# ---------------------------------------------------------------- captions


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("A child in a pink dress is climbing up .", "a child in a pink dress is climbing up"),
        ("The man's T-shirt isn't blue!", "the man 's t-shirt is n't blue"),
        ("The dog 's ball", "the dog 's ball"),
        ("dogs' toys, 'quoted' and \"double\"", "dogs toys quoted and double"),
        ("It’s 10:30 o'clock; 1,000 people", "it 's 10:30 o'clock 1,000 people"),
        ("They cannot -- can't -- swim...", "they can not ca n't swim"),
        ("black & white (old) photo/print", "black & white old photo print"),
        ("  two\tdogs\n\nrun  ", "two dogs run"),
        ("Ein Käfer läuft über die Straße.", "ein käfer läuft über die straße"),
        ("हिन्दी में लिखा है।", "हिन्दी में लिखा है।"),
        ("一只狗，在草地上。", "一只狗 在草地上"),
        ("...", ""),
    ],
)
def test_captions_are_normalised_as_documented(raw: str, expected: str) -> None:
    assert normalise_caption(raw) == expected


@given(st.text(alphabet=st.sampled_from("abcnstdmrevlgow0129 '’.,:/&-#\"()!ßéИ一"), max_size=40))
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise_caption(text)
    assert normalise_caption(once) == once


def test_captions_agree_with_the_coco_tokeniser() -> None:
    path = DATA / "cocoeval" / "ptb_tokenizer.jsonl.gz"
    if not path.exists():
        pytest.skip(f"{path} is not here")
    with gzip.open(path, "rt", encoding="utf-8") as file:
        pairs = [json.loads(line) for line in file]
    same = sum(normalise_caption(pair["raw"]) == pair["tok"] for pair in pairs)
    # What differs: brackets and lone signs, which are dropped here; "a/b", cut here; "St.".
    assert same / len(pairs) > 0.97
    # What the model writes goes through that tokeniser unchanged.
    kept = sum(normalise_caption(pair["tok"]) == pair["tok"] for pair in pairs)
    assert kept / len(pairs) > 0.97
