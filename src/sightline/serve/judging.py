"""The questions of `sightline judge`, the file that their answers go to, and the page's server."""

from __future__ import annotations

import io
import json
import re
import threading
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, Response
from PIL import Image

from sightline.data.durable import write_file
from sightline.data.manifest import Example, normalise_caption
from sightline.errors import UserError
from sightline.media.image import read_image
from sightline.metrics.judgements import PERSON, Judgement, Question, read_judgements
from sightline.serve import files
from sightline.serve.app import give_errors
from sightline.serve.guard import Guard
from sightline.serve.limits import Refusal
from sightline.serve.metrics import Metrics

PAGE = Path(__file__).parent / "judge_page"
SIDE = 1280  # of a picture on the page
_BODY = 10_000  # bytes of an answer
# What the page sends, and what it means for the caption that is judged: first or second in m1
_MEANS = {
    "m1": {
        "first": ("better", "worse"),
        "equal": ("equal", "equal"),
        "second": ("worse", "better"),
    },
    "m2": {"person": ("person", "person"), "machine": ("machine", "machine")},
}
_CLITIC = re.compile(r" (n't|'(?:s|m|d|re|ve|ll))(?!\w)")


def plain(text: str) -> str:
    """A caption in the form that machines write, so that capitals and full stops betray nobody."""
    return _CLITIC.sub(r"\1", normalise_caption(text))


def questions(
    systems: Mapping[str, Mapping[str, str]],
    references: Mapping[str, Sequence[str]],
    kinds: Sequence[str],
    pictures: int | None,
    seed: int,
) -> list[Question]:
    """All questions in their order: whose captions these are first, then which is better.

    The order is random by the seed and the same for all judges, so that what two of them have
    judged overlaps. In m2 there are as many captions of people as of machines, as far as there are
    references; in m1 a second reference is judged against the first.
    """
    random = np.random.default_rng(seed)
    shared = sorted(set.intersection(*(set(texts) for texts in systems.values())))
    if not shared:
        raise UserError("the files of captions have no item in common")
    found: dict[str, list[Question]] = {kind: [] for kind in ("m2", "m1") if kind in kinds}
    for item in [shared[i] for i in random.permutation(len(shared))[:pictures]]:
        people = [references[item][i] for i in random.permutation(len(references[item]))]
        for system, texts in systems.items():
            if "m1" in found:
                found["m1"].append(Question("m1", item, system, texts[item], people[0]))
            if "m2" in found:
                found["m2"].append(Question("m2", item, system, texts[item]))
        if "m1" in found and len(people) > 1:
            found["m1"].append(Question("m1", item, PERSON, people[1], people[0]))
        if "m2" in found:
            found["m2"] += [Question("m2", item, PERSON, text) for text in people[: len(systems)]]
    return [some[i] for some in found.values() for i in random.permutation(len(some))]


@dataclass
class Record:
    """The file of judgements: read once, then every answer is appended and synced."""

    path: Path
    answers: dict[tuple[str, Question], str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @staticmethod
    def open(path: Path) -> Record:
        try:
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                write_file(path, b"")
            content = path.read_bytes()
            if not content.endswith(b"\n"):  # cut off while a line was written
                write_file(path, content[: content.rfind(b"\n") + 1])
        except OSError as error:
            raise UserError(f"{path}: cannot be written: {error.strerror}") from None
        record = Record(path)
        for each in read_judgements(path):
            record.answers[each.judge, each.question] = each.answer
        return record

    def add(self, judgement: Judgement) -> None:
        line = json.dumps(judgement.to_json(), ensure_ascii=False) + "\n"
        with self._lock:
            write_file(self.path, line.encode(), "ab")
            self.answers[judgement.judge, judgement.question] = judgement.answer


class Judging:
    """What is asked of whom next; and the application that the page talks to."""

    def __init__(
        self, asked: Sequence[Question], examples: Mapping[str, Example], record: Record, seed: int
    ) -> None:
        self.asked = asked
        self.examples = examples
        self.record = record
        self.seed = seed
        self.page = files.read_files(files.PAGE) | files.read_files(PAGE)
        self.guard = Guard(_build(self), Metrics(lambda: 0, lambda: 0))
        self.picture = lru_cache(maxsize=32)(self._picture)

    def done(self, judge: str) -> list[bool]:
        return [(judge, question) in self.record.answers for question in self.asked]

    def is_second(self, judge: str, at: int) -> bool:
        """Whether the judged caption of an m1 question is shown as the second."""
        return bool(np.random.default_rng([self.seed, zlib.crc32(judge.encode()), at]).integers(2))

    def show(self, judge: str, at: int | None = None) -> dict[str, Any]:
        """A question as the page shows it: by its number, or the judge's first without an answer.

        It does not say which system wrote what, nor what the picture's file is called.
        """
        done = self.done(judge)
        waiting = [number for number, is_done in enumerate(done) if not is_done]
        shown: dict[str, Any] = {"total": len(done), "done": sum(done), "at": None}
        if at is None:
            at = next(iter(waiting), None)
        if at is None:
            return shown
        if not 0 <= at < len(done):
            raise Refusal(404, "not_found", "there is no such question")
        question = self.asked[at]
        captions = [text for text in (question.caption, question.against) if text is not None]
        second = self.is_second(judge, at)
        means = _MEANS[question.kind]
        given = self.record.answers.get((judge, question))
        shown |= {
            "at": at,
            "kind": question.kind,
            "captions": captions[::-1] if second else captions,
            "answer": next((key for key, each in means.items() if each[second] == given), None),
            **self._of(question.item, f"pictures/{at}"),
        }
        if len(waiting) > 1:
            shown["upcoming"] = self._of(self.asked[waiting[1]].item, f"pictures/{waiting[1]}")
        return shown

    def _of(self, item: str, url: str) -> dict[str, str]:
        example = self.examples[item]
        if example.medium == "image":
            return {"picture": url}
        return {"text": example.source or ""}

    def answer(self, judge: str, at: int, answer: str, seconds: float | None) -> dict[str, Any]:
        """Save an answer, and show the next question."""
        if not 0 <= at < len(self.asked):
            raise Refusal(404, "not_found", "there is no such question")
        question = self.asked[at]
        means = _MEANS[question.kind].get(answer)
        if means is None:
            raise Refusal(422, "no_answer", f"{answer!r} is no answer to this question")
        meaning = means[self.is_second(judge, at)]
        stamp = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self.record.add(Judgement(question, judge, meaning, seconds, stamp))
        return self.show(judge)

    def _picture(self, at: int) -> bytes:
        """As JPEG without what the file says of itself."""
        if not 0 <= at < len(self.asked) or (path := self.path(at)) is None:
            raise Refusal(404, "not_found", "there is no such picture")
        image = Image.fromarray(read_image(path))
        image.thumbnail((SIDE, SIDE))
        out = io.BytesIO()
        image.save(out, "JPEG", quality=88)
        return out.getvalue()

    def path(self, at: int) -> Path | None:
        example = self.examples[self.asked[at].item]
        return example.media if example.medium == "image" else None


def _judge(name: object) -> str:
    if not isinstance(name, str) or not name.strip() or len(name) > 64:
        raise Refusal(422, "no_judge", "give your name, at most 64 characters")
    return name.strip()


async def _body(request: Request) -> dict[str, Any]:
    content = b""
    async for part in request.stream():
        content += part
        if len(content) > _BODY:
            raise Refusal(413, "too_large", "that is too long for an answer", close=True)
    try:
        values = json.loads(content)
    except ValueError:
        values = None
    if not isinstance(values, dict):
        raise Refusal(400, "bad_request", "send a JSON object")
    return values


def _build(judging: Judging) -> FastAPI:
    app = FastAPI(title="Sightline: judge", docs_url=None, redoc_url=None, openapi_url=None)
    give_errors(app)

    @app.get("/v1/question")
    def question(judge: str, at: int | None = None) -> Response:
        return JSONResponse(judging.show(_judge(judge), at))

    @app.post("/v1/answers")
    async def answers(request: Request) -> Response:
        values = await _body(request)
        at, seconds = values.get("at"), values.get("seconds")
        if type(at) is not int or not (seconds is None or isinstance(seconds, int | float)):
            raise Refusal(422, "bad_request", "at is a question's number, seconds a number")
        said = judging.answer(_judge(values.get("judge")), at, str(values.get("answer")), seconds)
        return JSONResponse(said)

    @app.get("/pictures/{at}")
    def picture(at: int) -> Response:
        headers = {"cache-control": "private, max-age=3600"}
        return Response(judging.picture(at), media_type="image/jpeg", headers=headers)

    @app.get("/static/{name}")
    def file(name: str, request: Request) -> Response:
        return files.respond(judging.page, name, request)

    @app.get("/")
    def page(request: Request) -> Response:
        return files.respond(judging.page, "judge.html", request)

    return app
