"""The task from end to end, on tones that stand for phones: trained, exported, asked."""

import io
import itertools
import json
import sys
from dataclasses import replace

import numpy as np
import pytest
import soundfile
from sounds import RATE, spoken
from typer.testing import CliRunner

from sightline import tasks
from sightline.cli import app
from sightline.errors import UserError
from sightline.figures.sound import draw_sound
from sightline.media.audio import filter_banks
from sightline.metrics.error_rate import edit_alignment, edits
from sightline.runtime.batches import joined
from sightline.tasks.transcribe import demo
from sightline.tasks.transcribe.formats import FORMATS, cues_of
from sightline.tasks.transcribe.timing import LAG, REACH, Span, spans
from sightline.types import Description, Layout

PHONES = ["A", "B", "C", "D", "E", "B"]


@pytest.fixture(scope="module")
def heard(tones):
    """The export, and an utterance that it has not met."""
    folder, _ = tones
    samples, true = spoken(PHONES, np.random.default_rng(99))
    return tasks.load_model(folder / "export"), samples, true


def transcribe(*arguments, **options):
    result = CliRunner().invoke(app, ["transcribe", *map(str, arguments)], **options)
    if result.exception and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def test_it_learns_and_its_export_hears_the_same(tones):
    folder, outcome = tones
    assert outcome.progress.metrics["per"] < 0.2
    data = folder / "tones.jsonl"
    scores, texts = [], []
    for name in ("run", "export"):
        model = tasks.load_model(folder / name)
        result = tasks.spec_of("transcribe").evaluate(model, data, "test", None, intervals=False)
        scores.append(result.scores["corpus"])
        texts.append(result.texts)
    assert scores[0]["per"] < 0.2
    assert texts[0] == texts[1]


def test_together_as_alone(heard):
    model, samples, _ = heard
    some = [samples, samples[: len(samples) * 2 // 3], samples[RATE // 3 :]]
    together, alone = model.describe(some), [model.describe(each) for each in some]
    for one, other in zip(together, alone, strict=True):
        assert one.text == other.text
        np.testing.assert_allclose(one.attention, other.attention, atol=1e-4)


def test_onsets_are_read_from_attention(heard):
    model, samples, true = heard
    description = model.describe(samples)
    assert description.tokens == tuple(PHONES)
    found = spans(description)
    errors = [abs(a.start - b[0]) for a, b in zip(found, true, strict=True)]
    assert np.mean(errors) < 0.06
    for before, after in itertools.pairwise(found):
        assert before.end <= after.start + 1e-9


def test_silence_writes_nothing(heard):
    model, _, _ = heard
    assert model.describe(np.zeros(RATE * 2, np.float32)).text == ""
    assert spans(model.describe(np.zeros(RATE * 2, np.float32))) == []


def test_long_recordings_are_read_in_pieces_with_their_times(heard):
    model, samples, _ = heard
    silence = np.zeros(2 * RATE, np.float32)
    long = np.concatenate([samples, silence, samples, silence])
    found = model.describe(long)
    assert found.tokens == (*PHONES, *PHONES)
    times = [span.start for span in spans(found)]
    later = np.array(times[6:]) - np.array(times[:6])
    np.testing.assert_allclose(later, 2 + len(samples) / RATE, atol=0.05)
    assert found.layout.kind == "frames"


def test_the_command_writes_every_format_and_goes_on_after_a_bad_file(heard, tones, tmp_path):
    folder, _ = tones
    _, samples, _ = heard
    soundfile.write(tmp_path / "good.wav", samples, RATE)
    (tmp_path / "bad.wav").write_text("text")
    out = tmp_path / "out"
    formats = ",".join(FORMATS)
    files = (tmp_path / "bad.wav", tmp_path / "good.wav")
    model = ("--model", folder / "export")
    with pytest.raises(UserError, match="1 of 2"):
        transcribe(*files, *model, "--output-dir", out, "--output-format", formats)
    assert sorted(path.name for path in out.iterdir()) == [
        "good.TextGrid", "good.ctm", "good.json", "good.srt", "good.tsv", "good.txt", "good.vtt",
    ]  # fmt: skip
    content = json.loads((out / "good.json").read_text())
    assert content["text"] == " ".join(PHONES)
    result = transcribe(files[1], *model, "--reference", "A B C E E B", "--figure", tmp_path / "f")
    assert "1 errors in 6 tokens: 16.7%" in result.stdout
    assert (tmp_path / "f" / "good-1.png").stat().st_size > 3000


def test_what_comes_from_stdin(heard, tones, monkeypatch):
    folder, _ = tones
    _, samples, _ = heard
    pcm = (samples * 32767).astype("<i2").tobytes()
    wav = io.BytesIO()
    soundfile.write(wav, samples, RATE, format="WAV")
    for content, options in ((pcm, ("--pcm", "16000")), (wav.getvalue(), ())):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        result = transcribe("-", "--model", folder / "export", *options, input=content)
        assert result.stdout.strip() == " ".join(PHONES)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a.wav", "--output-format", "doc"), "--output-format"),
        (("a.wav", "--output-format", "srt,vtt"), "several formats"),
        (("x/a.wav", "y/a.wav", "--output-dir", "o"), "two files"),
        (("a.wav", "--pcm", "8000"), "stdin"),
        (("absent.wav",), "no such file"),
    ],
)
def test_wrong_requests_are_one_line(tones, arguments, message):
    folder, _ = tones
    with pytest.raises(UserError, match=message) as caught:
        transcribe(*arguments, "--model", folder / "export")
    assert "\n" not in str(caught.value)


# ---------------------------------------------------------------- times and formats

CUES = cues_of(
    [
        ("HH AY", [Span("HH", 0.5, 0.62, 0.9), Span("AY", 0.62, 0.9, 0.8)]),
        ("", []),
        ("B AY", [Span("B", 3661.25, 3661.5, 0.7), Span("AY", 3661.5, 3662.004, 1.0)]),
    ]
)


def test_a_cue_ends_before_the_next_begins():
    close = [("A", [Span("A", 0.0, 1.2, 1.0)]), ("B", [Span("B", 1.0, 2.0, 1.0)])]
    assert [(cue.start, cue.end) for cue in cues_of(close)] == [(0.0, 1.0), (1.0, 2.0)]


def test_subtitles_read_back():
    pysubs2 = pytest.importorskip("pysubs2")
    for kind in ("srt", "vtt"):
        lines = pysubs2.SSAFile.from_string(FORMATS[kind](CUES, "x"), format_=kind)
        assert [(line.start, line.end, line.text) for line in lines] == [
            (500, 900, "HH AY"),
            (3661250, 3662004, "B AY"),
        ]


def test_textgrids_read_back(tmp_path):
    textgrid = pytest.importorskip("praatio.textgrid")
    path = tmp_path / "x.TextGrid"
    path.write_text(FORMATS["textgrid"](CUES, "x"))
    grid = textgrid.openTextgrid(str(path), includeEmptyIntervals=False)
    said = [(e.start, e.end, e.label) for e in grid.getTier("tokens").entries]
    assert said == [
        (0.5, 0.62, "HH"), (0.62, 0.9, "AY"), (3661.25, 3661.5, "B"), (3661.5, 3662.004, "AY"),
    ]  # fmt: skip


def test_tables_read_back():
    rows = [line.split("\t") for line in FORMATS["tsv"](CUES, "x").splitlines()]
    assert rows == [
        ["start", "end", "text"],
        ["500", "900", "HH AY"],
        ["3661250", "3662004", "B AY"],
    ]
    name, channel, start, length, token, sure = FORMATS["ctm"](CUES, "x").splitlines()[1].split()
    assert (name, channel, token) == ("x", "1", "AY")
    assert (float(start), float(length), float(sure)) == (0.62, 0.28, 0.8)


def test_empty_transcripts_are_valid():
    for write in FORMATS.values():
        assert isinstance(write([], "x"), str)


def description(weights, tokens, step=0.04):
    times = [round((i + 0.5) * step, 4) for i in range(len(weights[0]))]
    rows = np.array(weights, np.float32)
    return Description("", tuple(tokens), 0.0, (0.0,) * len(tokens), rows, Layout.frames(times))


def test_a_token_lies_around_the_median_of_its_attention():
    sharp = np.eye(6)[[1, 3]]
    first, second = spans(description(sharp, "AB"))
    assert (first.start, first.end) == pytest.approx((0.0, 0.1 - LAG), abs=1e-6)  # looked at 0.06
    assert (second.start, second.end) == pytest.approx((0.1 - LAG, 0.24))
    spread = description([[0, 0.5, 0.5, 0, 0, 0]], "A")
    assert spans(spread)[0].end == pytest.approx(0.08 - LAG + REACH)


def test_letters_make_words():
    rows = np.eye(8)[:5]
    found = spans(description(rows, ["h", "i", " ", "y", "o"]), "char")
    assert [span.text for span in found] == ["hi", "yo"]
    found = spans(description(rows[:3], ["▁he", "y", "▁you"]), "bpe")
    assert [span.text for span in found] == ["hey", "you"]


def test_parts_are_joined_over_time():
    one = description(np.eye(3), "ABC")
    later = replace(one, layout=Layout.frames([5.02, 5.06, 5.1]))
    both = joined([one, later])
    assert both.layout == Layout.frames([*one.layout.times, *later.layout.times])
    assert both.attention.shape == (6, 6)


def test_the_edit_alignment_has_the_edits_and_is_that_of_jiwer():
    jiwer = pytest.importorskip("jiwer")
    rng = np.random.default_rng(0)
    for _ in range(60):
        said, heard = (list(rng.choice(list("abcd"), size=rng.integers(1, 12))) for _ in range(2))
        pairs = edit_alignment(said, heard)
        assert [first for first, _ in pairs if first is not None] == said
        assert [second for _, second in pairs if second is not None] == heard
        errors = sum(first != second for first, second in pairs)
        assert errors == edits(said, heard)
        assert errors / len(said) == pytest.approx(jiwer.wer(" ".join(said), " ".join(heard)))


def test_the_figure_has_a_row_for_each_token(tmp_path, heard):
    from PIL import Image

    model, samples, true = heard
    found = model.describe(samples)
    places = [(span.start, span.end) for span in spans(found)]
    draw_sound(found, tmp_path / "a.png", filter_banks(samples), 0.0, places, true)
    with Image.open(tmp_path / "a.png") as picture:
        pixels = np.asarray(picture.convert("RGB")).astype(int)
    for colour in ((226, 88, 34), (24, 128, 96)):  # found and true boundaries
        assert (np.abs(pixels - colour).sum(-1) < 60).sum() > 20


def test_the_demo_writes_and_draws_the_recording_that_ships(tones, tmp_path, capsys, monkeypatch):
    model = tones[0] / "export"
    demo.show(model, tmp_path / "demo")
    printed = capsys.readouterr().out
    assert demo.SAID in printed
    assert printed.count("→") == len(list((tmp_path / "demo").glob("hello-*.png"))) > 0

    def deaf(source):
        raise UserError("sound needs soundfile")

    monkeypatch.setattr("sightline.media.audio.read_sound", deaf)
    demo.show(model, tmp_path / "none")
    assert "sound needs soundfile" in capsys.readouterr().out
