"""The service of `sightline judge`: blind, in an order by seed, saved at once, resumed."""

import io
import json

import pytest
from fastapi.testclient import TestClient
from PIL import Image

from sightline.data.manifest import Example
from sightline.errors import UserError
from sightline.metrics.judgements import read_judgements, shares
from sightline.serve.judging import Judging, Record, plain, questions

NAMES = [f"secret-{n}" for n in range(6)]
PEOPLE = {name: [f"a dog {name}", f"the dog {name}"] for name in NAMES}
OURS = {"soft": {name: f"soft {name}" for name in NAMES}}
BOTH = {**OURS, "hard": {name: f"hard {name}" for name in NAMES}}


@pytest.fixture
def examples(tmp_path):
    Image.new("RGB", (3000, 1500), "teal").save(tmp_path / "picture.png")
    path = tmp_path / "picture.png"
    return {name: Example(name, "test", tuple(PEOPLE[name]), "image", path) for name in NAMES}


def opened(examples, path, asked=None):
    asked = asked or questions(OURS, PEOPLE, ["m1", "m2"], None, 0)
    judging = Judging(asked, examples, Record.open(path), 0)
    return judging, TestClient(judging.guard)


def test_the_order_is_the_seeds():
    one, same, other = (questions(OURS, PEOPLE, ["m1", "m2"], 4, seed) for seed in (1, 1, 2))
    assert one == same
    assert one != other
    assert [each.kind for each in one] == ["m2"] * 8 + ["m1"] * 8  # m1 would betray m2's answers
    assert len({each.item for each in one}) == 4


def test_people_are_judged_as_often_as_machines():
    asked = questions(BOTH, PEOPLE, ["m2"], None, 0)
    assert [each.system for each in asked].count("person") == len(asked) / 2


def test_captions_lose_what_would_betray_their_writer():
    assert plain("A man's dog, isn't running.") == plain("a man 's dog is n't running")
    assert plain("A man's dog.") == "a man's dog"


def test_nothing_that_is_sent_names_the_system_or_the_file(examples, tmp_path):
    _, client = opened(
        {name: examples[name] for name in NAMES},
        tmp_path / "out.jsonl",
        questions({"soft": dict.fromkeys(NAMES, "a cat")}, PEOPLE, ["m1", "m2"], None, 0),
    )
    for at in range(24):
        shown = client.get("/v1/question", params={"judge": "anna", "at": at}).json()
        text = json.dumps({**shown, "captions": None})
        assert "secret" not in text
        assert "soft" not in text
        picture = client.get("/" + shown["picture"])
        assert picture.headers["content-type"] == "image/jpeg"
        assert Image.open(io.BytesIO(picture.content)).size == (1280, 640)


def test_answers_mean_what_the_judge_saw(examples, tmp_path):
    path = tmp_path / "out.jsonl"
    _, client = opened(examples, path)
    shown = client.get("/v1/question", params={"judge": "carl"}).json()
    sides = set()
    while shown["at"] is not None:
        if shown["kind"] == "m1":
            is_first = "soft" in shown["captions"][0]
            sides.add(is_first)
            is_ours = any("soft" in text for text in shown["captions"])
            answer = ("first" if is_first else "second") if is_ours else "equal"
        else:
            answer = "machine" if "soft" in shown["captions"][0] else "person"
        sent = {"judge": "carl", "at": shown["at"], "answer": answer, "seconds": 1.5}
        response = client.post("/v1/answers", json=sent)
        assert len(path.read_text().splitlines()) == shown["done"] + 1  # saved at once
        shown = response.json()
    assert sides == {True, False}
    found = {(row["measure"], row["system"]): row for row in shares(read_judgements(path))}
    assert found["M1", "soft"]["answers"] == {"better": 6, "equal": 0, "worse": 0}
    assert found["M1", "person"]["answers"]["equal"] == 6
    assert found["M2", "soft"]["share"] == 0
    assert found["M2", "person"]["share"] == 1
    assert all(each.seconds == 1.5 for each in read_judgements(path))


def test_a_judge_resumes_and_another_begins(examples, tmp_path):
    path = tmp_path / "out.jsonl"
    _, client = opened(examples, path)
    for _ in range(3):
        at = client.get("/v1/question", params={"judge": "anna"}).json()["at"]
        client.post("/v1/answers", json={"judge": "anna", "at": at, "answer": "person"})
    with path.open("a") as file:
        file.write('{"kind": "m1", "it')  # the machine went off
    _, client = opened(examples, path)
    assert client.get("/v1/question", params={"judge": "anna"}).json()["at"] == 3
    assert client.get("/v1/question", params={"judge": "ben"}).json()["done"] == 0
    again = client.get("/v1/question", params={"judge": "anna", "at": 1}).json()
    assert again["answer"] == "person"
    client.post("/v1/answers", json={"judge": "anna", "at": 1, "answer": "machine"})
    assert sum(each.answer == "machine" for each in read_judgements(path)) == 1


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        ({"judge": "", "at": 0, "answer": "person"}, 422),
        ({"judge": "a", "at": 99, "answer": "person"}, 404),
        ({"judge": "a", "at": -1, "answer": "person"}, 404),
        ({"judge": "a", "at": 0, "answer": "first"}, 422),
        ({"judge": "a", "at": True, "answer": "person"}, 422),
        ({"judge": "a" * 20_000, "at": 0, "answer": "person"}, 413),
        ([], 400),
    ],
)
def test_what_is_no_answer_is_refused_and_not_saved(examples, tmp_path, sent, status):
    path = tmp_path / "out.jsonl"
    _, client = opened(examples, path)
    response = client.post("/v1/answers", json=sent)
    assert response.status_code == status
    assert response.json()["error"]["message"]
    assert path.read_text() == ""


def test_pages_are_guarded(examples, tmp_path):
    _, client = opened(examples, tmp_path / "out.jsonl")
    page = client.get("/")
    assert "default-src 'none'" in page.headers["content-security-policy"]
    for name in ("judge.js", "judge.css", "style.css", "dom.js"):
        assert client.get(f"/static/{name}").status_code == 200
    assert client.get("/static/nothing.js").status_code == 404
    assert client.get("/pictures/99").status_code == 404


def test_systems_without_a_common_item_are_a_mistake():
    with pytest.raises(UserError, match="no item in common"):
        questions({"a": {"1": "x"}, "b": {"2": "x"}}, {}, ["m1"], None, 0)
