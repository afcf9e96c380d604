"""Manifests of published clips, the recipes for them, and subtitles."""

import json

import pytest

from sightline.commands.recipes import SHIPPED
from sightline.data.converters.clips import msrvtt, msvd
from sightline.errors import DataError
from sightline.tasks import read_recipe, spec_of

CLIPS = sorted(path.stem for path in SHIPPED.glob("ms*.yaml"))


def make(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"")


def test_a_part_of_msrvtt(tmp_path):
    make(tmp_path, "clips/video0.mp4", "clips/video1.mp4")
    captions = {
        "video0": {"split": "val", "captions": ["a car", "a red car"]},
        "video1": {"split": "train", "captions": ["a man sings"]},
        "video2": {"split": "test", "captions": ["is not here"]},
    }
    (tmp_path / "captions.json").write_text(json.dumps(captions))
    found = msrvtt(tmp_path)
    assert [(e.id, e.split, e.targets, e.medium) for e in found.examples] == [
        ("video0.mp4", "dev", ("a car", "a red car"), "video"),
        ("video1.mp4", "train", ("a man sings",), "video"),
    ]
    assert found.examples[0].media == tmp_path / "clips/video0.mp4"
    assert "1 left out: no file" in found.notes[0]


def test_msrvtt_as_published(tmp_path):
    make(tmp_path, "TrainValVideo/video0.mp4", "TestVideo/video7.mp4")
    for name, clip, split in (("train_val", "video0", "validate"), ("test", "video7", "test")):
        content = {
            "videos": [{"video_id": clip, "split": split}],
            "sentences": [{"video_id": clip, "caption": f"of {clip}"}],
        }
        (tmp_path / f"{name}_videodatainfo.json").write_text(json.dumps(content))
    found = {e.id: e for e in msrvtt(tmp_path).examples}
    assert found["video0.mp4"].split == "dev"
    assert found["video7.mp4"].targets == ("of video7",)
    assert found["video7.mp4"].media.parent.name == "TestVideo"


def test_msvd_is_split_by_its_mapping(tmp_path):
    names = {"a_0_5": 1, "b_0_5": 1201, "c_1_9": 1301}
    make(tmp_path, *(f"YouTubeClips/{name}.avi" for name in names))
    (tmp_path / "youtube_mapping.txt").write_text(
        "".join(f"{n} vid{i}\n" for n, i in names.items())
    )
    lines = ["# clip caption", "a_0_5 a cat plays", "a_0_5 a cat", "b_0_5 a dog", "c_1_9 it rains"]
    (tmp_path / "AllVideoDescriptions.txt").write_text("\n".join(lines))
    found = {e.id: e for e in msvd(tmp_path).examples}
    assert [found[f"{n}.avi"].split for n in names] == ["train", "dev", "test"]
    assert found["a_0_5.avi"].targets == ("a cat plays", "a cat")


def test_a_folder_without_them(tmp_path):
    for prepare, missing in ((msrvtt, "captions.json"), (msvd, "AllVideoDescriptions.txt")):
        with pytest.raises(DataError, match=missing):
            prepare(tmp_path)
    (tmp_path / "captions.json").write_text("[1]")
    with pytest.raises(DataError, match="needs"):
        msrvtt(tmp_path)


def test_the_recipes_are_rows_of_table_iv():
    recipes = {name: read_recipe(SHIPPED / f"{name}.yaml") for name in CLIPS}
    assert len(recipes) == 7
    rows = {
        "msrvtt-mean": ("none", "none"),
        "msrvtt-mean-motion": ("none", "i3d"),
        "msrvtt-frames": ("content", "none"),
        "msrvtt-both": ("content", "i3d"),
    }
    for name, row in rows.items():
        assert (recipes[name].model.attention.kind, recipes[name].clip.motion) == row
    published = spec_of("clip").published["youtube2text"]
    assert published["attention over both"] == {"perplexity": 27.55, "meteor": 29.6}


@pytest.mark.slow
def test_the_clips_at_hand(shared_data):
    found = msrvtt(shared_data / "msrvtt")
    assert found.summary() == "611 items with 12,220 texts (train 471, dev 62, test 78)"
