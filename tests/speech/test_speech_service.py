"""`/v1/transcribe`: files and base64, whole and streamed, as the model alone."""

import base64
import io
import json
import sys
from pathlib import Path

import numpy as np
import pytest
import soundfile

pytest.importorskip("fastapi", reason="sightline[serve]")
sys.path.append(str(Path(__file__).parents[1] / "serve"))

from live_server import running
from sounds import RATE, spoken

from sightline.serve.models import load_models


@pytest.fixture(scope="module")
def served(tones):
    folder, _ = tones
    models = load_models([f"tones={folder / 'export'}"])
    with running(models) as server:
        yield server, models.by_name["tones"].model


def wav(samples):
    file = io.BytesIO()
    soundfile.write(file, samples, RATE, format="WAV")
    return file.getvalue()


SAID = spoken(["A", "C", "E", "B", "D"], np.random.default_rng(7))[0]


def test_a_recording_is_answered_as_by_the_model(served):
    server, model = served
    expected = model.describe(wav(SAID))
    file = {"file": ("a.wav", wav(SAID), "audio/wav")}
    content = base64.b64encode(wav(SAID)).decode()
    for response in (
        server.client.post("/v1/transcribe", files=file),
        server.client.post("/v1/transcribe", json={"sound": content}),
    ):
        assert response.status_code == 200, response.text
        answer = response.json()
        assert answer["text"] == expected.text
        assert [span["text"] for span in answer["spans"]] == list(expected.tokens)
        starts = [span["start"] for span in answer["spans"]]
        assert starts == sorted(starts)
        assert answer["layout"]["kind"] == "frames"


def test_it_streams(served):
    server, model = served
    file = {"file": ("a.wav", wav(SAID), "audio/wav")}
    response = server.client.post("/v1/transcribe", files=file, data={"stream": "true"})
    events = [part.split("\n") for part in response.text.strip().split("\n\n")]
    names = [event[0].removeprefix("event: ") for event in events]
    assert names[-1] == "done"
    assert names.count("step") > 2
    last = json.loads(events[-1][1].removeprefix("data: "))
    assert last["text"] == model.describe(wav(SAID)).text


def test_silence_and_what_is_no_sound(served):
    server, _ = served
    silence = {"file": ("a.wav", wav(np.zeros(RATE)), "audio/wav")}
    answer = server.client.post("/v1/transcribe", files=silence).json()
    assert (answer["text"], answer["spans"]) == ("", [])
    for content, status in ((b"text", 415), (wav(np.zeros(0)), 400), (b"", 400)):
        file = {"file": ("a.wav", content, "audio/wav")}
        response = server.client.post("/v1/transcribe", files=file)
        assert response.status_code == status, response.text
        assert "\n" not in response.json()["error"]["message"]
    long = {"file": ("a.wav", wav(np.zeros(RATE * 125)), "audio/wav")}
    assert server.client.post("/v1/transcribe", files=long).status_code == 413


def test_the_page_has_its_panel(served):
    server, _ = served
    assert 'id="speech-record"' in server.client.get("/").text
    assert server.client.get("/static/panels/transcribe/panel.js").status_code == 200
    example = server.client.get("/samples/hello.flac")
    assert (example.status_code, example.headers["content-type"][:6]) == (200, "audio/")
    assert 'id="speech-example"' in server.client.get("/").text
    assert "microphone=(self)" in server.client.get("/").headers["permissions-policy"]
