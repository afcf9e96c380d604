"""Files sent as they are, data URIs, batches, other origins, the cards, and /docs."""

import base64

import numpy as np
import pytest
from live_server import QUICK, code, held, in_threads, picture_bytes, post, running, wait_for

from sightline.errors import UserError
from sightline.runtime.card import read_card
from sightline.serve.app import Service
from sightline.serve.limits import Limits
from sightline.serve.models import load_models

VOLATILE = ("request_id", "seconds")


def stable(answer):
    return {key: value for key, value in answer.items() if key not in VOLATILE}


def same(one, other):
    """Answers that came out of different batches: equal but for rounding."""
    assert one["text"] == other["text"]
    assert one["tokens"] == other["tokens"]
    np.testing.assert_allclose(one["log_probs"], other["log_probs"], atol=1e-4)


# ---------------------------------------------------------------------------- one file


@pytest.mark.parametrize("kind", ["image/png", "Image/PNG; q=1", "application/octet-stream"])
def test_a_file_sent_as_it_is_is_described_as_in_a_form(server, kind):
    picture = picture_bytes("blue", "circle", 7)
    fields = {"beam": 4, "n_best": 2, "prefix": "there", "focus": "0.1,0.1,0.6,0.6"}
    raw = server.client.post(
        "/v1/describe", params=fields, content=picture, headers={"content-type": kind}
    )
    assert raw.status_code == 200, raw.text
    assert stable(raw.json()) == stable(post(server.client, picture, **fields).json())


def test_a_raw_file_is_held_to_the_same_limits(server):
    def ask(content=b"x", kind="image/png", path="/v1/describe"):
        return server.client.post(path, content=content, headers={"content-type": kind})

    assert code(ask()) == "unsupported_picture"
    assert code(ask(b"")) == "bad_picture"
    assert code(ask(path="/v1/describe?beam=0")) == "bad_field"
    assert code(ask(path="/v1/describe?beam=2&beam=3")) == "bad_field"
    assert code(ask(path="/v1/describe?size=2")) == "bad_field"
    refused = ask(picture_bytes(), "application/x-www-form-urlencoded")
    assert (refused.status_code, code(refused)) == (415, "unsupported_type")
    assert "image/jpeg" in refused.json()["error"]["message"]
    refused = ask(b"a text", "text/plain", "/v1/translate")
    assert refused.json()["error"]["message"] == "send application/json"
    with running(held()[1], Limits(upload_bytes=1000, **QUICK)) as small:
        too_large = small.client.post(
            "/v1/describe", content=bytes(2000), headers={"content-type": "image/png"}
        )
        assert (too_large.status_code, code(too_large)) == (413, "too_large")


def test_a_data_uri_is_its_file(server):
    picture = picture_bytes()
    plain = base64.b64encode(picture).decode()
    alone = server.client.post("/v1/describe", json={"image": plain}).json()
    for head in ("data:image/png;base64,", "DATA:;base64,", "data:text/plain;charset=x;BASE64,"):
        answer = server.client.post("/v1/describe", json={"image": head + plain})
        assert stable(answer.json()) == stable(alone)
    for wrong in ("data:image/png,%89PNG", "data:image/png;base64,!", "https://example.org/a.png"):
        refused = server.client.post("/v1/describe", json={"image": wrong})
        assert (refused.status_code, code(refused)) == (422, "bad_field")
        assert refused.json()["error"]["message"].startswith("image: ")


# ---------------------------------------------------------------------------- several


def test_a_batch_equals_its_singles_and_an_error_stands_in_its_place(server):
    pictures = [picture_bytes(colour, "circle", 3) for colour in ("red", "green", "blue")]
    bodies = [{"image": base64.b64encode(p).decode(), "n_best": 2} for p in pictures]
    broken = [{"image": base64.b64encode(b"no picture").decode()}, {**bodies[0], "model": "none"}]
    sent = [bodies[0], broken[0], bodies[1], broken[1], bodies[2]]
    answer = server.client.post("/v1/describe/batch", json={"requests": sent})
    assert answer.status_code == 200, answer.text
    assert answer.json()["request_id"] == answer.headers["x-request-id"]
    found = answer.json()["answers"]
    for place, body in zip((0, 2, 4), bodies, strict=True):
        same(found[place], server.client.post("/v1/describe", json=body).json())
    assert found[1]["error"]["code"] == "unsupported_picture"
    assert found[3]["error"]["code"] == "unknown_model"
    wait_for(lambda: server.service.taken == 0)


def test_texts_are_translated_in_a_batch(server):
    texts = ["the dog", "a red cat runs", ""]
    answer = server.client.post(
        "/v1/translate/batch", json={"requests": [{"text": text} for text in texts]}
    )
    found = answer.json()["answers"]
    for one, text in zip(found, texts, strict=True):
        alone = server.client.post("/v1/translate", json={"text": text}).json()
        if "error" in alone:
            assert one == {"error": alone["error"]}
        else:
            same(one, alone)


@pytest.mark.parametrize(
    ("body", "where"),
    [
        ({"requests": []}, "requests"),
        ({"requests": [{"text": "a"}] * 33}, "requests"),
        ({"requests": [{"text": "a"}, {"text": 1}]}, "requests.1.text"),
        ({"requests": [{"text": "a"}, {"text": "a", "stream": True}]}, "requests.1.stream"),
        ({"requests": [{"text": "a"}], "beam": 2}, "beam"),
        ({}, "requests"),
    ],
)
def test_a_batch_that_cannot_be_read_is_refused_whole(server, body, where):
    refused = server.client.post("/v1/translate/batch", json=body)
    assert (refused.status_code, code(refused)) == (422, "bad_field")
    assert refused.json()["error"]["message"].startswith(f"{where}: ")
    assert code(server.client.post("/v1/translate/batch", content=b"{}")) == "unsupported_type"


def test_a_batch_takes_a_place_for_each_request():
    model, models = held()
    body = {"image": base64.b64encode(b"x").decode()}
    with running(models, Limits(max_queue=4, time_limit=240, **QUICK)) as server:

        def ask(count):
            return server.client.post("/v1/describe/batch", json={"requests": [body] * count})

        too_many = ask(5)
        assert (too_many.status_code, code(too_many)) == (413, "too_large")
        assert server.service.taken == 0

        def answer(number):
            if number == 0:
                return ask(3)
            wait_for(lambda: server.service.taken == 3)
            refused = ask(2)  # there is one place
            assert server.service.taken == 3
            model.go.set()
            return refused

        done, refused = in_threads(2, answer)
        assert (refused.status_code, code(refused)) == (503, "busy")
        assert len(done.json()["answers"]) == 3
        assert sum(model.batches) == 3
        wait_for(lambda: server.service.taken == 0)


# ---------------------------------------------------------------------------- other origins


def test_pages_of_an_allowed_origin_may_use_the_api_and_others_may_not():
    ours, theirs = {"Origin": "https://example.org"}, {"Origin": "https://evil.example"}
    asks = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type,x-api-key",
    }
    models = load_models(["en-de"])
    with running(models, Limits(**QUICK), "secret", [ours["Origin"]]) as server:
        options = server.client.options("/v1/translate", headers=ours | asks)
        assert options.status_code == 200  # without the key, which a browser does not send yet
        assert options.headers["access-control-allow-origin"] == ours["Origin"]
        assert "x-api-key" in options.headers["access-control-allow-headers"].lower()
        assert server.client.options("/v1/translate", headers=theirs | asks).status_code == 400
        locked = server.client.get("/v1/models", headers=ours)
        assert code(locked) == "no_key"
        assert locked.headers["access-control-allow-origin"] == ours["Origin"]  # it may be read
        key = {"X-API-Key": "secret"}
        answer = server.client.get("/v1/models", headers=ours | key)
        assert answer.status_code == 200
        assert answer.headers["access-control-allow-origin"] == ours["Origin"]
        assert "access-control-allow-credentials" not in answer.headers
        other = server.client.get("/v1/models", headers=theirs | key)
        assert "access-control-allow-origin" not in other.headers
    with pytest.raises(UserError, match="without a path"):
        Service(models, origins=["https://example.org/"])


def test_without_the_option_no_other_origin_is_let_in(server):
    answer = server.client.get("/v1/models", headers={"Origin": "https://example.org"})
    assert not [name for name in answer.headers if name.startswith("access-control")]


# ---------------------------------------------------------------------------- what is said of it


def test_a_model_s_card_is_told(server):
    listed = {each["name"]: each for each in server.client.get("/v1/models").json()["models"]}
    assert listed["toy"]["card"] is None  # a run has none
    with running(load_models(["en-de"]), Limits(**QUICK)) as other:
        (model,) = other.client.get("/v1/models").json()["models"]
        assert model["card"]["summary"].startswith("Translates everyday English")
        assert "capitals" in model["card"]["facts"]["limits"]
        assert list(model["card"]["facts"]) == ["data", "score", "trained", "limits", "terms"]


def test_a_card_is_read_as_plain_text(tmp_path):
    assert read_card(tmp_path) is None
    (tmp_path / "card.md").write_text(
        "# mine\n\nReads **all** of\n[it](https://example.org).\n\n"
        "- **Data:** `a` and\n  b\x1b[31m\n- **Score:** …\n- **Limits:** few\n\nThe end.\n"
    )
    card = read_card(tmp_path)
    assert card.summary == "Reads all of it."
    assert card.facts == {"data": "a and b[31m", "limits": "few"}


def test_the_page_of_the_api_loads_nothing_from_elsewhere(server):
    page = server.client.get("/docs")
    assert page.status_code == 200
    assert page.headers["content-type"].startswith("text/html")
    assert "//" not in page.text
    schema = server.client.get("/openapi.json").json()
    assert {"/v1/describe/batch", "/v1/translate/batch"} <= set(schema["paths"])
    described = schema["paths"]["/v1/describe"]["post"]
    assert {each["name"] for each in described["parameters"]} >= {"beam", "focus", "prefix"}
    batch = schema["paths"]["/v1/translate/batch"]["post"]
    example = batch["requestBody"]["content"]["application/json"]["example"]
    assert "answers" in server.client.post("/v1/translate/batch", json=example).json()
