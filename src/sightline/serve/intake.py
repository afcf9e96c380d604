"""Request bodies, read within bounds of size, time and memory, and checked."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import cache
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from sightline.serve.limits import Limits, Refusal, busy
from sightline.tasks.route import Route, SearchFields

_FIELD_BYTES = 4096  # of one field of a form that is no file
# Types of a body that is a file; what it is, its content says.
MEDIA = ("image/", "audio/", "video/", "application/octet-stream")
Checked = TypeVar("Checked", bound=BaseModel)


class Intake:
    """Reads bodies; knows how many bytes all of them together hold."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.held = 0

    @asynccontextmanager
    async def body(self, request: Request, most: int) -> AsyncIterator[bytes]:
        """The whole body, while it is needed; a Refusal if it is too large or comes too slowly."""
        content = bytearray()
        try:
            declared = request.headers.get("content-length", "")
            if declared.isdecimal() and int(declared) > most:
                raise _too_large(most)
            try:
                async with asyncio.timeout(self.limits.upload_seconds):
                    async for chunk in request.stream():
                        self._hold(len(chunk))
                        content += chunk
                        if len(content) > most:
                            raise _too_large(most)
            except TimeoutError:
                message = f"the upload took more than {self.limits.upload_seconds:g} s"
                raise Refusal(408, "too_slow", message, close=True) from None
            request.state.received = len(content)
            yield bytes(content)
        finally:
            self.held -= len(content)

    def _hold(self, size: int) -> None:
        if self.held + size > self.limits.upload_memory:
            raise busy(5, close=True)
        self.held += size


def _too_large(most: int) -> Refusal:
    message = f"the upload is larger than {most / 1e6:g} MB; scale it down"
    return Refusal(413, "too_large", message, close=True)


async def read_request(
    request: Request, body: bytes, route: Route
) -> tuple[str | bytes, SearchFields]:
    """The source, a file's bytes or a text, and what is asked of it."""
    kind = kind_of(request)
    if kind == "application/json":
        content = _checked(route.json.model_validate_json, body)
        return source_of(content, route), content
    if route.form is None:
        raise Refusal(415, "unsupported_type", "send application/json")
    if kind == "multipart/form-data":
        return await _from_form(request.headers, body, route.form)
    if kind.startswith(MEDIA):
        given = request.query_params.multi_items()
        return body, _checked(route.form.model_validate, _once(given))
    raise Refusal(
        415,
        "unsupported_type",
        "send the file itself with its type, such as image/jpeg, multipart/form-data with a "
        "`file`, or application/json",
    )


def read_batch(body: bytes, route: Route, most: int) -> list[tuple[str | bytes, SearchFields]]:
    """The sources of several requests, and what is asked of each."""
    several = _checked(batch_model(route.json, most).model_validate_json, body)
    found = []
    for number, each in enumerate(several.requests):
        try:
            if each.stream:
                raise Refusal(422, "bad_field", "stream: a batch is not streamed")
            found.append((source_of(each, route), each))
        except Refusal as refusal:
            refusal.message = f"requests.{number}.{refusal.message}"
            raise
    return found


@cache
def batch_model(one: type[SearchFields], most: int) -> Any:
    """The body of a batch: at most so many bodies of one request."""
    requests = Annotated[list[one], Field(min_length=1, max_length=most)]  # type: ignore[valid-type]
    return create_model(
        f"{one.__name__}Batch", __config__=ConfigDict(extra="forbid"), requests=(requests, ...)
    )


def kind_of(request: Request) -> str:
    """The body's type, without its parameters."""
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def source_of(content: SearchFields, route: Route) -> str | bytes:
    """A text as it is; the bytes of a file in base64, with or without a data URI's head."""
    source: str = getattr(content, route.source)
    if route.form is None:
        return source
    head, comma, rest = source.partition(",")
    if comma and head[:5].lower() == "data:":
        if not head.lower().endswith(";base64"):
            raise Refusal(422, "bad_field", f"{route.source}: a data URI has to be in base64")
        source = rest
    try:
        return base64.b64decode(source, validate=True)
    except (binascii.Error, ValueError):
        raise Refusal(422, "bad_field", f"{route.source}: it is not base64") from None


def _once(given: list[tuple[str, str]]) -> dict[str, str]:
    fields = dict(given)
    if len(fields) < len(given):
        raise Refusal(422, "bad_field", "a field is given twice")
    return fields


async def _from_form(
    headers: Headers, body: bytes, model: type[SearchFields]
) -> tuple[bytes, SearchFields]:
    async def whole() -> AsyncGenerator[bytes, None]:
        yield body

    parser = MultiPartParser(
        headers, whole(), max_files=1, max_fields=20, max_part_size=_FIELD_BYTES
    )
    parser.spool_max_size = len(body) + 1  # in memory, where it already is
    try:
        form = await parser.parse()
    except MultiPartException as error:
        raise Refusal(400, "bad_form", f"the form cannot be read: {error.message}") from None
    fields: dict[str, str] = {}
    content: bytes | None = None
    for name, value in form.multi_items():
        if name in fields or (name == "file" and content is not None):
            raise Refusal(422, "bad_field", "a field is given twice")
        if not isinstance(value, UploadFile):
            fields[name] = value
        elif name == "file":
            content = await value.read()
        else:
            raise Refusal(422, "bad_field", "the file's field is called `file`")
    if content is None:
        raise Refusal(422, "no_picture", "the form has no `file`; send the picture in it")
    return content, _checked(model.model_validate, fields)


def _checked(validate: Callable[[Any], Checked], content: Any) -> Checked:
    """The fields, or a Refusal that names the first wrong one, without its value."""
    try:
        return validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    if first["type"] == "json_invalid":
        raise Refusal(400, "bad_json", "the body is not JSON")
    where = ".".join(str(part)[:40] for part in first["loc"])
    raise Refusal(422, "bad_field", f"{where}: {first['msg']}" if where else first["msg"])
