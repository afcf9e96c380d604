"""The service's answers: the same as the command's and Python's, whole and streamed."""

import base64
import json
import logging
import socket
import subprocess
import sys

import httpx
import numpy as np
import pytest
from live_server import PATIENCE, held, in_threads, picture_bytes, post, running, wait_for

from sightline.errors import UserError
from sightline.serve.logs import JsonLines
from sightline.serve.models import load_models
from sightline.tasks.translate.alignments import alignment_of


def python_answer(models, picture, **options):
    return models.by_name["shapes"].model.describe(picture, **options)


def same(answer, description):
    expected = json.loads(json.dumps(description.to_json()))
    for key in ("text", "tokens", "layout"):
        assert answer[key] == expected[key]
    np.testing.assert_allclose(answer["score"], expected["score"], atol=1e-4)
    np.testing.assert_allclose(answer["log_probs"], expected["log_probs"], atol=1e-4)
    np.testing.assert_allclose(answer["attention"], expected["attention"], atol=1e-5)
    assert len(answer["alternatives"]) == len(expected["alternatives"])
    for other, alternative in zip(answer["alternatives"], description.alternatives, strict=True):
        same({**other, "alternatives": []}, alternative)


def events(response):
    blocks = (block.split("\n") for block in response.text.strip().split("\n\n"))
    return [
        (name.removeprefix("event: "), json.loads(data.removeprefix("data: ")))
        for name, data in blocks
    ]


# ---------------------------------------------------------------------------- describe


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_api_command_and_python_give_the_same_caption(
    server, models, run_cli, shapes, tmp_path, kind
):
    folder, _, _ = shapes
    picture = picture_bytes("blue", "circle", 7, kind)
    path = tmp_path / "picture"
    path.write_bytes(picture)
    options = {"beam": 4, "n_best": 3, "prefix": "there", "focus": "0.1,0.1,0.6,0.6"}
    response = post(server.client, picture, **options)
    assert response.status_code == 200, response.text
    answer = response.json()
    focus = (0.1, 0.1, 0.6, 0.6)
    same(answer, python_answer(models, picture, beam=4, n_best=3, prefix="there", focus=focus))
    command = run_cli(
        "describe", path, "--model", folder / "run", "--json", "--beam", "4", "--n-best", "3",
        "--prefix", "there", "--focus", options["focus"],
    )  # fmt: skip
    assert json.loads(command.stdout)["text"] == answer["text"]
    assert answer["text"].startswith("there")
    np.testing.assert_allclose(
        json.loads(command.stdout)["attention"], answer["attention"], atol=1e-5
    )
    body = {"image": base64.b64encode(picture).decode(), **options, "focus": list(focus)}
    again = server.client.post("/v1/describe", json=body).json()
    volatile = ("request_id", "seconds")
    assert {k: v for k, v in again.items() if k not in volatile} == {
        k: v for k, v in answer.items() if k not in volatile
    }


def test_the_answer_says_what_the_picture_was(server):
    answer = post(server.client, picture_bytes()).json()
    assert set(answer) == {
        *("request_id", "model", "task", "text", "score", "tokens", "log_probs", "confidence"),
        "attention",
        *("layout", "visible_box", "alternatives", "width", "height", "seconds"),
    }
    assert (answer["width"], answer["height"]) == (96, 96)
    assert answer["model"] == "shapes"
    assert answer["task"] == "caption"
    assert answer["layout"]["kind"] == "grid"
    left, top, right, bottom = answer["visible_box"]
    assert 0 <= left < right <= 1
    assert 0 <= top < bottom <= 1


def test_a_stream_shows_the_search_and_ends_with_the_answer(server, models):
    picture = picture_bytes("green", "square", 3)
    response = post(server.client, picture, stream="true", n_best=2)
    assert response.headers["content-type"].startswith("text/event-stream")
    *steps, (name, answer) = events(response)
    assert name == "done"
    same(answer, python_answer(models, picture, n_best=2))
    expected = list(models.by_name["shapes"].model.stream(picture, n_best=2))[:-1]
    for (name, step), partial in zip(steps, expected, strict=True):
        assert name == "step"
        assert set(step) == {"step", "text", "tokens", "nodes", "alive", "best"}
        assert step["text"] == partial.text
        assert step["alive"] == [node["id"] for node in step["nodes"] if node["alive"]]
        assert {n["token"] for n in step["nodes"]} == {n.token for n in partial.nodes}


def test_concurrent_requests_of_all_kinds_equal_those_made_alone(server, models):
    kinds = [
        {"n_best": 2},
        {"n_best": 2, "stream": "true"},
        {"n_best": 2, "focus": "0,0,0.5,0.5"},
        {"n_best": 2, "prefix": "a"},
    ]
    colours = ["red", "green", "blue"]

    def ask(number):
        with httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
            return post(
                client, picture_bytes(colours[number % 3], seed=number), **kinds[number % 4]
            )

    for number, response in enumerate(in_threads(16, ask)):
        options = kinds[number % 4]
        answer = events(response)[-1][1] if "stream" in options else response.json()
        plain = {k: v for k, v in options.items() if k != "stream"}
        if "focus" in plain:
            plain["focus"] = (0, 0, 0.5, 0.5)
        picture = picture_bytes(colours[number % 3], seed=number)
        same(answer, python_answer(models, picture, **plain))


# ---------------------------------------------------------------------------- translate


def test_translations_have_their_alignment(server, models):
    text = "the red dog sees a cat ."
    answer = server.client.post("/v1/translate", json={"text": text, "n_best": 2}).json()
    translator = models.by_name["toy"].model
    same(answer, translator.describe(text, n_best=2))
    expected = alignment_of(translator, translator.describe(text))
    assert answer["source_words"] == list(expected.source) == text.split()
    assert answer["target_words"] == list(expected.target) == answer["text"].split()
    assert len(answer["alignment"]) == len(expected.target)
    for (s, t, sure), (es, et, weight) in zip(
        answer["alignment"], sorted(expected.links()), strict=True
    ):
        assert (s, t) == (es, et)
        assert sure == pytest.approx(weight, abs=1e-3)


def test_translations_stream_too(server, models):
    text = "every bird likes the old river ."
    *steps, (_, answer) = events(
        server.client.post("/v1/translate", json={"text": text, "stream": True})
    )
    assert len(steps) > 2
    same(answer, models.by_name["toy"].model.describe(text))
    assert steps[-1][1]["text"] == answer["text"]


def test_a_text_in_parts_or_without_words_is_answered(server):
    long = "the red dog sees a cat . " * 50
    for stream in (False, True):
        body = {"text": long, "stream": stream}
        response = server.client.post("/v1/translate", json=body)
        answer = events(response)[-1][1] if stream else response.json()
        assert len(answer["target_words"]) > 200
    empty = server.client.post("/v1/translate", json={"text": "  "}).json()
    assert (empty["text"], empty["alignment"]) == ("", [])


def test_prompts_are_continued_together_as_alone():
    """A task that defines no route is served by the general one."""
    models = load_models(["shakespeare"])
    prompts = ["ROMEO", "O", "", "JULIET:", "To be, or", "O"]
    with running(models) as server:

        def ask(number):
            with httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
                body = {"text": prompts[number], "stream": number == 5}
                return client.post("/v1/language_model", json=body)

        *responses, streamed = in_threads(len(prompts), ask)
        unknown = server.client.post("/v1/language_model", json={"text": "Ω"})
    answers = [*(response.json() for response in responses), events(streamed)[-1][1]]
    for prompt, answer in zip(prompts, answers, strict=True):
        assert answer["text"] == models.by_name["shakespeare"].model.describe(prompt).text
        assert answer["text"].startswith(prompt)
    assert unknown.status_code == 422
    assert "the prompt has 'Ω'" in unknown.json()["error"]["message"]


# ---------------------------------------------------------------------------- the rest


def test_models_are_listed_with_their_default(server):
    listed = server.client.get("/v1/models").json()["models"]
    assert [(m["name"], m["task"], m["attention"], m["default"]) for m in listed] == [
        ("shapes", "caption", "soft", True),
        ("toy", "translate", "soft", True),
    ]


def test_health_readiness_and_metrics(server):
    assert server.client.get("/healthz").json() == {"status": "ok"}
    assert server.client.get("/readyz").status_code == 200
    post(server.client, picture_bytes())

    def metrics():
        return server.client.get("/metrics").text

    wait_for(lambda: 'batch_size_count{model="shapes"}' in metrics())  # after the answer
    text = metrics()
    lines = dict(line.rsplit(" ", 1) for line in text.splitlines() if not line.startswith("#"))
    assert float(lines['sightline_requests_total{route="/v1/describe",status="200"}']) >= 1
    count = float(lines['sightline_batch_size_count{model="shapes"}'])
    assert count == float(lines['sightline_batch_size_bucket{le="+Inf",model="shapes"}']) >= 1
    assert float(lines["sightline_places_taken"]) == 0


def test_samples_are_listed_and_given(server):
    for sample in server.client.get("/v1/samples").json()["samples"]:
        assert sample["url"].startswith("/samples/")
        given = server.client.get(sample["url"])
        assert given.status_code == 200
        assert given.headers["content-type"].startswith("image/")


def test_head_is_answered_as_get_without_a_body(server):
    for path in ("/", "/healthz", "/readyz", "/v1/models", "/samples/dogs.jpg", "/nowhere"):
        whole, head = server.client.get(path), server.client.head(path)
        assert (head.status_code, head.content) == (whole.status_code, b"")
        volatile = ("date", "x-request-id")
        assert {k: v for k, v in head.headers.items() if k not in volatile} == {
            k: v for k, v in whole.headers.items() if k not in volatile
        }
    assert server.client.head("/v1/describe").status_code == 405


def test_every_answer_is_guarded(server):
    for path in ("/", "/v1/models", "/nowhere", "/healthz", "/static/nothing"):
        headers = server.client.get(path).headers
        policy = headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "no-referrer"
        assert "server" not in headers


def test_files_are_given_once_and_then_confirmed(server):
    page = server.client.get("/")
    assert page.headers["content-type"].startswith("text/html")
    again = server.client.get("/", headers={"If-None-Match": page.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/..%2fapp.py",
        "/static/%2e%2e/app.py",
        "/static//etc/passwd",
        "/static/%00",
        "/samples/..%2f..%2fzoo%2f__init__.py",
        "/samples/samples.json",
        "/v1/../etc/passwd",
        "/" + "a" * 5000,
    ],
)
def test_paths_lead_nowhere_else(server, path):
    with socket.create_connection(("127.0.0.1", server.port)) as raw:
        raw.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        head = raw.makefile("rb").read()
    assert head.startswith(b"HTTP/1.1 404 ")


def test_a_key_is_asked_for_where_there_is_one():
    model, models = held()
    model.go.set()
    with running(models, api_key="open sesame") as server:
        for headers in ({}, {"Authorization": "Bearer open"}, {"X-API-Key": "öpen".encode()}):
            refused = server.client.get("/v1/models", headers=headers)
            assert refused.status_code == 401
            assert refused.json()["error"]["code"] == "no_key"
        assert post(server.client).status_code == 401
        for headers in (
            {"Authorization": "Bearer open sesame"},
            {"Authorization": "bearer open sesame"},
            {"X-API-Key": "open sesame"},
        ):
            files = {"file": b"x"}
            assert (
                server.client.post("/v1/describe", files=files, headers=headers).status_code == 200
            )
        assert server.client.get("/readyz").status_code == 200


def test_logs_have_ids_and_no_content(server, caplog):
    logging.getLogger("sightline.serve").propagate = True
    with caplog.at_level("INFO", "sightline.serve"):
        picture, name = picture_bytes(), "secret-holiday.png"
        response = server.client.post(
            "/v1/describe?q=hidden-query",
            files={"file": (name, picture)},
            data={"prefix": "there is"},
            headers={"X-Request-ID": "trace-17", "User-Agent": "curious"},
        )

        def logged():
            fields = [(r, getattr(r, "fields", {})) for r in caplog.records]  # asyncio's have none
            return [r for r, each in fields if each.get("request_id") == "trace-17"]

        wait_for(logged)  # the line is written after the answer
    assert response.json()["request_id"] == response.headers["x-request-id"] == "trace-17"
    *_, record = logged()  # twice, where an earlier test configured logging in this process
    line = json.loads(JsonLines().format(record))
    assert line["request_id"] == "trace-17"
    assert (line["route"], line["status"], line["model"]) == ("/v1/describe", 200, "shapes")
    assert line["received"] > len(picture)
    for hidden in ("secret", "there", "hidden", response.json()["text"]):
        assert hidden not in json.dumps(line)


def test_a_request_id_that_could_do_harm_is_not_used(server):
    given = server.client.get("/healthz", headers={"X-Request-ID": "a b\tc<script>"})
    assert given.headers["x-request-id"].isalnum()


def test_models_can_be_named_and_wrong_ones_are_refused(shapes, toy):
    folder, _, _ = shapes
    assert [m.name for m in load_models([str(toy)])] == ["run"]
    with pytest.raises(UserError, match="two models are called 'run'"):
        load_models([str(toy), str(folder / "run")])
    with pytest.raises(UserError, match="no model at nowhere"):
        load_models(["nowhere"])


def test_serving_imports_no_torch():
    """Not imported by the service; only by a model that needs it."""
    code = (
        "import sys, sightline.serve.server, sightline.serve.models; print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
