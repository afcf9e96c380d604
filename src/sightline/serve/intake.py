"""Request bodies, read within bounds of size, time and memory, and checked."""

from __future__ import annotations

import asyncio
import base64
import binascii
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from pydantic import ValidationError
from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from sightline.serve.limits import Limits, Refusal, busy
from sightline.tasks.route import Route, SearchFields

_FIELD_BYTES = 4096  # of one field of a form that is no file


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
    headers: Headers, body: bytes, route: Route
) -> tuple[str | bytes, SearchFields]:
    """The source, a file's bytes or a text, and what is asked of it."""
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind == "multipart/form-data" and route.form is not None:
        return await _from_form(headers, body, route.form)
    if kind != "application/json":
        forms = "multipart/form-data with a `file`, or " if route.form is not None else ""
        raise Refusal(415, "unsupported_type", f"send {forms}application/json")
    content = _checked(route.json.model_validate_json, body)
    source: str = getattr(content, route.source)
    if route.form is None:
        return source, content
    try:
        return base64.b64decode(source, validate=True), content
    except (binascii.Error, ValueError):
        raise Refusal(422, "bad_field", f"{route.source}: it is not base64") from None


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


def _checked(validate: Callable[[Any], SearchFields], content: Any) -> SearchFields:
    """The fields, or a Refusal that names the first wrong one, without its value."""
    try:
        return validate(content)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    if first["type"] == "json_invalid":
        raise Refusal(400, "bad_json", "the body is not JSON")
    where = ".".join(str(part)[:40] for part in first["loc"])
    raise Refusal(422, "bad_field", f"{where}: {first['msg']}" if where else first["msg"])
