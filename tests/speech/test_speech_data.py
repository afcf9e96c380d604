"""Converters of speech: what is kept, what is left out and why; TIMIT's folding."""

import json
import shutil

import numpy as np
import pytest
import soundfile

from sightline.data.converters import speech, spoken
from sightline.data.phones import plain_phone, timit_39, timit_48
from sightline.errors import DataError, UserError
from sightline.media.audio import RATE, read_sound

# TIMIT's 61 phones
TIMIT = [
    "iy",
    "ih",
    "eh",
    "ey",
    "ae",
    "aa",
    "aw",
    "ay",
    "ah",
    "ao",
    "oy",
    "ow",
    "uh",
    "uw",
    "ux",
    "er",
    "ax",
    "ix",
    "axr",
    "ax-h",
    "jh",
    "ch",
    "b",
    "d",
    "g",
    "p",
    "t",
    "k",
    "dx",
    "s",
    "sh",
    "z",
    "zh",
    "f",
    "th",
    "v",
    "dh",
    "m",
    "n",
    "ng",
    "em",
    "nx",
    "en",
    "eng",
    "l",
    "r",
    "w",
    "y",
    "hh",
    "hv",
    "el",
    "bcl",
    "dcl",
    "gcl",
    "pcl",
    "tcl",
    "kcl",
    "q",
    "pau",
    "epi",
    "h#",
]


def noise(path, seconds=1.0, rate=RATE):
    path.parent.mkdir(parents=True, exist_ok=True)
    samples = np.random.default_rng(0).normal(size=int(seconds * rate)) * 0.1
    soundfile.write(path, samples, rate, format="WAV")


def test_61_phones_become_48_and_39():
    assert len(TIMIT) == 61
    assert len({*timit_48(TIMIT)}) == 48
    assert len({*timit_39(TIMIT)}) == 39
    assert timit_39(timit_48(TIMIT)) == timit_39(TIMIT)  # from either
    assert timit_39(["q", "tcl", "t", "axr", "zh", "h#"]) == ["sil", "t", "er", "sh", "sil"]


def test_stress_and_places_are_left_out():
    assert [plain_phone(p) for p in ("IY0_E", "W_B", "ax", "AA1", "zh")] == [
        "IY", "W", "AH", "AA", "ZH",
    ]  # fmt: skip


def test_speechocean(tmp_path):
    columns = "utterance\tspeaker\tage\tgender\ttext\tphones\n"
    for split, count in (("train", 30), ("test", 2)):
        rows = [
            f"{split}{i}\t{split}s{i // 2}\t9\tm\tWE CALL\tW_B IY0_E | K_B AO0_I L_E\n"
            for i in range(count)
        ]
        (tmp_path / f"{split}.tsv").write_text(columns + "".join(rows))
        (tmp_path / split).mkdir()
        for i in range(count - 1):
            (tmp_path / split / f"{split}{i}.opus").write_bytes(b"x")
    prepared = speech.speechocean(tmp_path)
    assert {e.targets for e in prepared.examples} == {("W IY K AO L",)}
    by_split = {
        s: {e.meta["speaker"] for e in prepared.examples if e.split == s}
        for s in ("train", "dev", "test")
    }
    assert len(by_split["dev"]) >= 12
    assert not by_split["dev"] & by_split["train"]
    assert len([e for e in prepared.examples if e.split == "test"]) == 1
    assert any("2 left out: no file" in note for note in prepared.notes)
    assert speech.speechocean(tmp_path, words=True).examples[0].targets == ("we call",)


def test_kaldi_folders_with_and_without_segments(tmp_path):
    noise(tmp_path / "a.wav", 3.0)
    plain, cut = tmp_path / "plain", tmp_path / "cut"
    for folder in (plain, cut):
        folder.mkdir()
    (plain / "wav.scp").write_text(
        f"u1 {tmp_path / 'a.wav'}\nu2 sox x.wav -t wav - |\n"
        f"u3 absent.wav\nu4 {tmp_path / 'a.wav'}\n"
    )
    (plain / "text").write_text("u1 one two\nu2 three\nu3 four\n")
    (plain / "utt2spk").write_text("u1 ann\n")
    (cut / "wav.scp").write_text(f"r {tmp_path / 'a.wav'}\n")
    (cut / "segments").write_text("v1 r 0.5 1.25\nv2 r 8.0 9.0\n")
    (cut / "text").write_text("v1 said\nv2 beyond\n")
    prepared = speech.kaldi({"train": plain, "test": cut}, tmp_path / "out")
    assert [(e.id, e.targets, e.split) for e in prepared.examples] == [
        ("u1", ("one two",), "train"),
        ("v1", ("said",), "test"),
    ]
    assert prepared.examples[0].meta == {"speaker": "ann"}
    assert len(read_sound(prepared.examples[1].media)) == pytest.approx(0.75 * RATE, abs=2)
    notes = "\n".join(prepared.notes)
    for why in ("a command, which is not run", "no file", "no text", "outside of its recording"):
        assert why in notes
    (cut / "segments").write_text("v1 r half 1\n")
    with pytest.raises(DataError, match="segments:1"):
        speech.kaldi({"train": cut}, tmp_path / "out")


def test_recordings_with_a_text_beside_each(tmp_path):
    for i in range(12):
        noise(tmp_path / "deep" / f"{i}.wav")
        if i:
            (tmp_path / "deep" / f"{i}.txt").write_text(f"text\nnumber {i}\n")
    prepared = speech.recordings(tmp_path, dev=0.2, test=0.2)
    assert len(prepared.examples) == 11
    assert {e.split for e in prepared.examples} == {"train", "dev", "test"}
    assert "text number 3" in {e.targets[0] for e in prepared.examples}
    assert prepared.notes == ["1 left out: no text (deep/0.wav)"]
    (tmp_path / "none").mkdir()
    with pytest.raises(DataError, match="no sound file"):
        speech.recordings(tmp_path / "none")


def test_timit_has_its_speakers_and_no_sa_sentences(tmp_path):
    speakers = [("TRAIN", "FCJF0"), ("TEST", "FAKS0"), ("TEST", "MDAB0"), ("TEST", "MXXX0")]
    for part, speaker in speakers:
        folder = tmp_path / part / "DR1" / speaker
        for sentence in ("SA1", "SX37"):
            noise(folder / f"{sentence}.WAV")
            (folder / f"{sentence}.PHN").write_text(
                "0 3200 h#\n3200 8000 axr\n8000 9000 q\n9000 16000 tcl\n"
            )
    prepared = speech.timit(tmp_path, timit_48)
    assert {(e.id, e.split) for e in prepared.examples} == {
        ("fcjf0-sx37", "train"), ("faks0-sx37", "dev"), ("mdab0-sx37", "test"),
    }  # fmt: skip
    example = prepared.examples[0]
    assert example.targets == ("sil er cl",)
    assert example.meta["spans"] == [[0.0, 0.2], [0.2, 0.5], [0.5625, 1.0]]
    assert len(speech.TIMIT_DEV) == 50
    assert len(speech.TIMIT_TEST) == 24
    assert not speech.TIMIT_DEV & speech.TIMIT_TEST


@pytest.mark.skipif(shutil.which("flite") is None, reason="needs flite, which speaks")
def test_made_speech_has_true_times(tmp_path):
    text = tmp_path / "text.txt"
    text.write_text("A dog runs over the grass.\n\nDer Hund läuft.\nWe saw nobody there.\n")
    folder = tmp_path / "made"
    prepared = spoken.spoken(text, folder, voices=["kal16", "slt"], unheard="slt")
    assert any("other characters" in note for note in prepared.notes)
    for example in prepared.examples:
        assert example.meta["voice"] == "kal16" or example.split == "test"
        phones, spans = example.targets[0].split(), example.meta["spans"]
        assert len(phones) == len(spans)
        assert not {*phones} & {"PAU", "AX"}
        samples = read_sound(example.media)
        assert spans[-1][1] <= len(samples) / RATE
        assert all(a < b for a, b in spans)
        energy = [(samples[int(a * RATE) : int(b * RATE)] ** 2).mean() for a, b in spans]
        before = (samples[: int(spans[0][0] * RATE) - 800] ** 2).mean()
        assert np.median(energy) > 30 * before  # sound is where the phones are
    again = spoken.spoken(text, tmp_path / "again", voices=["kal16", "slt"], unheard="slt")
    assert [e.meta for e in again.examples] == [e.meta for e in prepared.examples]


@pytest.mark.skipif(shutil.which("flite") is None, reason="needs flite, which speaks")
def test_a_manner_changes_time_and_tract():
    plain = spoken.say("We saw nobody.", spoken.Manner("kal16"))
    slow = spoken.say("We saw nobody.", spoken.Manner("kal16", stretch=1.3))
    short = spoken.say("We saw nobody.", spoken.Manner("kal16", tract=1.1))
    assert plain.phones == slow.phones == short.phones
    assert slow.spans[-1][1] == pytest.approx(1.3 * plain.spans[-1][1], rel=0.1)
    assert short.spans[-1][1] == pytest.approx(plain.spans[-1][1] / 1.1, rel=0.01)
    assert len(short.samples) == pytest.approx(len(plain.samples) / 1.1, rel=0.01)


def test_without_flite_it_is_one_line(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    (tmp_path / "text.txt").write_text("A dog.\n")
    with pytest.raises(UserError, match="apt-get install flite"):
        spoken.spoken(tmp_path / "text.txt", tmp_path / "made")


def test_the_commands_write_manifests(tmp_path, run_cli):
    for i in range(3):
        noise(tmp_path / "rec" / f"{i}.wav")
        (tmp_path / "rec" / f"{i}.txt").write_text("a b")
    done = run_cli("prepare", "recordings", tmp_path / "rec", "--out", tmp_path / "rec.jsonl")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "rec.jsonl").read_text().splitlines()]
    assert {row["audio"] for row in rows} == {"rec/0.wav", "rec/1.wav", "rec/2.wav"}
