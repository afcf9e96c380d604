"""The routes: one per task, models, samples, health, metrics and the page."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse, PlainTextResponse, Response
from starlette.exceptions import HTTPException

from sightline import __version__
from sightline.errors import UserError
from sightline.runtime.describer import Options
from sightline.runtime.partial import Partial
from sightline.serve import files
from sightline.serve.answers import Event, EventStream, RefusedResponse, last, while_there
from sightline.serve.batching import Batcher, Job, Update
from sightline.serve.decoders import Decoders
from sightline.serve.guard import Guard
from sightline.serve.intake import Intake, kind_of, read_request
from sightline.serve.limits import Limits, Refusal
from sightline.serve.logs import logger
from sightline.serve.metrics import Metrics
from sightline.serve.models import Item, Models, ServedModel
from sightline.serve.openapi import (
    JSON,
    MODELS,
    SAMPLES,
    complete,
    documented,
    documented_batch,
)
from sightline.serve.several import answer_batch
from sightline.tasks import all_specs
from sightline.tasks.route import Route, SearchFields

FIELDS = 64_000  # bytes of a form besides its file


class Service:
    """The application with what its routes share."""

    def __init__(
        self,
        models: Models,
        limits: Limits | None = None,
        api_key: str | None = None,
        origins: Sequence[str] = (),
    ) -> None:
        self.models = models
        self.limits = limits or Limits()
        self.intake = Intake(self.limits)
        self.metrics = Metrics(
            lambda: self.taken, lambda: sum(each.waiting for each in self.batchers.values())
        )
        self.batchers = {
            model.name: Batcher(
                model,
                max_queue=self.limits.max_queue,
                max_batch=self.limits.max_batch,
                time_limit=self.limits.time_limit,
                observe=self.metrics.batch,
                failed=lambda error: self.guard.failed(error),
            )
            for model in models
        }
        self.readers = ThreadPoolExecutor(self.limits.readers, "sightline-reader")
        self.decoders = Decoders(
            self.limits.readers,
            self.limits.decode_seconds,
            self.limits.decode_memory,
            {type(model.model.reader).__module__ for model in models if model.takes_files},
        )
        if any(model.takes_files for model in models):
            self.decoders.warm(self.readers)
        self.page = files.read_page({model.task for model in models})
        self.samples, self.sample_files = files.read_samples()
        self.api = _build(self)
        self.guard = Guard(self.api, self.metrics, api_key, origins)

    def close(self) -> None:
        """Stop all threads and processes; a model that is stuck is not waited for."""
        self.readers.shutdown(wait=False, cancel_futures=True)
        self.decoders.close()  # ends what the readers wait for
        if not self.ended(self.limits.time_limit):
            logger.error("stuck", extra={"fields": {"requests": self.taken}})

    def ended(self, seconds: float) -> bool:
        """Whether every model's worker ends within that time."""
        end = time.monotonic() + seconds
        each = [one.close(max(0.0, end - time.monotonic())) for one in self.batchers.values()]
        return all(each)  # every one is told to end

    @property
    def taken(self) -> int:
        """Requests that hold a place."""
        return sum(each.taken for each in self.batchers.values())

    @property
    def stuck(self) -> list[str]:
        """Models that cannot be asked: a step takes longer than a request may, and cannot be
        stopped. They are asked again once it has ended."""
        return [model for model, each in self.batchers.items() if not each.alive]

    @property
    def ready(self) -> bool:
        if self.decoders.broken:  # no request will come that would try again
            self.decoders.warm(self.readers)
        some = len(self.stuck) < len(self.batchers)
        return some and not self.decoders.broken and not self.guard.draining

    # ------------------------------------------------------------------ work

    async def answer(self, request: Request, task: str, route: Route) -> Response:
        """Read a request, and let the batcher's worker answer it."""
        self.check_room(task)
        async with AsyncExitStack() as upload:
            body = await upload.enter_async_context(
                self.intake.body(request, self.room(request, route))
            )
            source, fields = await read_request(request, body, route)
            model, settings = self.asked(task, source, fields)
            deadline = time.monotonic() + self.limits.time_limit
            with self.batchers[model.name].take_place() as place:
                reading = self.read(model, source, fields)
                item = await while_there(request.receive, reading, deadline)
                del body, source, reading  # what waits in the queue is small
                await upload.aclose()
                model.check(item, settings)
                job = Job(item, settings, deadline, fields.stream)
                return await self._answer(request, place, job, self.batchers[model.name])

    def room(self, request: Request, route: Route) -> int:
        """Bytes that a body may have: a file as such or in base64, and its fields; or a text."""
        if route.form is None:
            return self.limits.text_bytes
        most = self.limits.upload_bytes
        return (most * 4 // 3 if kind_of(request) == "application/json" else most) + FIELDS

    def asked(
        self, task: str, source: str | bytes, fields: SearchFields
    ) -> tuple[ServedModel, Options]:
        """The model that a request names and what it asks of it; refused by what is known of it
        before it is decoded."""
        most = self.limits.upload_bytes
        if isinstance(source, bytes) and len(source) > most:
            raise Refusal(413, "too_large", f"the file is larger than {most / 1e6:g} MB")
        model = self.models.find(fields.model, task)
        settings = fields.options(model.model.defaults)
        model.model.check(settings)
        return model, settings

    def check_room(self, task: str) -> None:
        """Refuse a request before its body is read if no model of the task has a place for it."""
        queues = [self.batchers[model.name] for model in self.models if model.task == task]
        if queues:
            max(queues, key=lambda each: each.room).check_room()

    async def read(self, model: ServedModel, source: str | bytes, fields: SearchFields) -> Item:
        how = fields.reading(self.limits.pixels)
        loop = asyncio.get_running_loop()
        threads = self.readers if model.takes_files else None  # a text waits for no picture
        return await loop.run_in_executor(threads, model.read, source, how, self.decoders)

    async def _answer(
        self, request: Request, place: ExitStack, job: Job, batcher: Batcher
    ) -> Response:
        request.state.model = batcher.model.name
        request_id = request.state.request_id
        events = self.events(job, batcher, request_id)
        if job.streamed:
            return EventStream(events, job.deadline, request_id, place.pop_all().close)
        return JSONResponse(await while_there(request.receive, last(events), job.deadline))

    async def events(self, job: Job, batcher: Batcher, request_id: str) -> AsyncIterator[Event]:
        """Submit the job and yield its updates; closing the iterator cancels it."""
        batcher.submit(job)
        try:
            while True:
                update: Update | Exception = await job.updates.get()
                if isinstance(update, Exception):
                    raise update
                if not isinstance(update, Partial):
                    yield "done", {"request_id": request_id, **update}
                    return
                yield "step", update.to_json()
        finally:
            batcher.cancel(job)


def _build(service: Service) -> FastAPI:
    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(service.close)

    app = FastAPI(
        title="Sightline",
        version=__version__,
        description="Describes things in words, and shows where it looked.",
        lifespan=lifespan,
        docs_url=None,  # their pages load scripts from elsewhere
        redoc_url=None,
        redirect_slashes=False,
    )
    complete(app)

    give_errors(app)
    routes = {spec.name: spec.route() for spec in all_specs() if spec.route is not None}
    for task, route in (routes | {model.task: model.route for model in service.models}).items():
        _give_route(app, service, task, route)

    _give_answers(app, service)
    return app


def give_errors(app: FastAPI) -> None:
    @app.exception_handler(Refusal)
    async def refused(request: Request, refusal: Refusal) -> Response:
        request.state.refused = refusal.code
        return RefusedResponse(refusal, request.state.request_id)

    @app.exception_handler(UserError)
    async def cannot(request: Request, error: UserError) -> Response:
        return await refused(request, Refusal.of(error))

    @app.exception_handler(HTTPException)
    async def http_error(request: Request, error: HTTPException) -> Response:
        code = {404: "not_found", 405: "wrong_method"}.get(error.status_code, "refused")
        refusal = Refusal(error.status_code, code, error.detail, close=request.method != "GET")
        request.state.refused = code
        return RefusedResponse(refusal, request.state.request_id, error.headers)

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        refusal = Refusal(500, "internal", "the service failed at this request", close=True)
        return RefusedResponse(refusal, request.state.request_id)


def _give_answers(app: FastAPI, service: Service) -> None:
    @app.get("/v1/models", **MODELS)
    async def models() -> Response:
        """What can be asked for."""
        return JSONResponse({"models": service.models.to_json()})

    @app.get("/v1/samples", **SAMPLES)
    async def samples() -> Response:
        """Pictures to try."""
        return JSONResponse({"samples": service.samples})

    @app.get("/healthz", **JSON)
    async def healthz() -> Response:
        """Whether the process lives."""
        return JSONResponse({"status": "ok"})

    @app.get("/readyz", **JSON)
    async def readyz() -> Response:
        """Whether requests should be sent here."""
        ready = service.ready
        content = {"status": "ready" if ready else "not ready", "stuck": service.stuck}
        return JSONResponse(content, 200 if ready else 503)

    @app.get("/metrics", include_in_schema=False)
    async def metrics() -> Response:
        return PlainTextResponse(
            service.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    for name, found in {"samples": service.sample_files, "static": service.page}.items():
        _give_files(app, name, found)

    @app.get("/docs", include_in_schema=False)
    async def docs(request: Request) -> Response:
        return files.respond(service.page, "docs.html", request)

    @app.get("/", include_in_schema=False)
    async def page(request: Request) -> Response:
        return files.respond(service.page, "index.html", request)


def _give_route(app: FastAPI, service: Service, task: str, route: Route) -> None:
    @app.post(route.path, **documented(route))
    async def answer(request: Request) -> Response:
        return await service.answer(request, task, route)

    @app.post(f"{route.path}/batch", **documented_batch(route, service.limits.batch))
    async def answers(request: Request) -> Response:
        return await answer_batch(service, request, task, route)


def _give_files(app: FastAPI, folder: str, found: dict[str, files.File]) -> None:
    @app.get(f"/{folder}/{{name:path}}", include_in_schema=False)
    async def file(name: str, request: Request) -> Response:
        return files.respond(found, name, request)
