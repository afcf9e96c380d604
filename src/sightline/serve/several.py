"""Several requests in one body: each is answered, or refused, as it would be alone."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from contextlib import AsyncExitStack, ExitStack
from typing import TYPE_CHECKING, Any

from fastapi import Request
from fastapi.responses import JSONResponse, Response

from sightline.errors import UserError
from sightline.serve.answers import last, while_there
from sightline.serve.batching import Job
from sightline.serve.intake import kind_of, read_batch
from sightline.serve.limits import Refusal
from sightline.serve.models import ServedModel
from sightline.tasks.route import Route, SearchFields

if TYPE_CHECKING:
    from sightline.runtime.describer import Options
    from sightline.serve.app import Service

Asked = tuple[ServedModel, "Options", Any, SearchFields]  # model, settings, source, fields
Answer = dict[str, Any]


async def answer_batch(service: Service, request: Request, task: str, route: Route) -> Response:
    """All answers, in the order of the requests; an error stands in the place of its answer.

    Every request holds a place, as if it had come alone, and all share one time limit.
    """
    service.check_room(task)
    most = service.limits.batch
    room = service.room(request, route) if route.form else most * service.limits.text_bytes
    name = request.state.request_id
    async with AsyncExitStack() as upload:
        body = await upload.enter_async_context(service.intake.body(request, room))
        if kind_of(request) != "application/json":
            raise Refusal(415, "unsupported_type", "send a batch as application/json")
        given = read_batch(body, route, most)
        asked = [_asked(service, task, *each) for each in given]
        deadline = time.monotonic() + service.limits.time_limit
        with _places(service, [each for each in asked if not isinstance(each, dict)]):
            work = _all(service, asked, deadline, name)
            answers = await while_there(request.receive, work, deadline)
    return JSONResponse({"request_id": name, "answers": answers})


def _asked(service: Service, task: str, source: Any, fields: SearchFields) -> Asked | Answer:
    try:
        return *service.asked(task, source, fields), source, fields
    except (Refusal, UserError) as error:
        return _refused(error)


def _places(service: Service, asked: list[Asked]) -> ExitStack:
    """A place for each request, in its model's queue."""
    places = ExitStack()
    with places:  # those that were taken are given back if there is none for another
        for name, count in Counter(model.name for model, *_ in asked).items():
            batcher = service.batchers[name]
            if count > batcher.places:
                message = f"a batch may have {batcher.places} requests for {name} here"
                raise Refusal(413, "too_large", message)
            for _ in range(count):
                places.enter_context(batcher.take_place())
        return places.pop_all()


async def _all(
    service: Service, asked: list[Asked | Answer], deadline: float, name: str
) -> list[Answer]:
    async with asyncio.TaskGroup() as group:  # one that fails ends the others
        tasks = [
            each
            if isinstance(each, dict)
            else group.create_task(_one(service, each, deadline, name))
            for each in asked
        ]
    return [each if isinstance(each, dict) else each.result() for each in tasks]


async def _one(service: Service, asked: Asked, deadline: float, name: str) -> Answer:
    model, settings, source, fields = asked
    try:
        item = await service.read(model, source, fields)
        model.check(item, settings)
        job = Job(item, settings, deadline)
        answer: Answer = await last(service.events(job, service.batchers[model.name], name))
    except (Refusal, UserError) as error:
        return _refused(error)
    return answer


def _refused(error: Refusal | UserError) -> Answer:
    refusal = error if isinstance(error, Refusal) else Refusal.of(error)
    return {"error": {"code": refusal.code, "message": refusal.message}}
