"""What /openapi.json says of the routes: bodies in both forms, answers, errors, examples."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI
from pydantic import BaseModel, Field

from sightline.tasks.route import Route


class ModelAnswer(BaseModel):
    name: str
    task: str
    route: str = Field(description="The path that asks for it.")
    description: str
    attention: str
    beam: int = Field(description="Used where a request names none.")
    default: bool


class ModelsAnswer(BaseModel):
    models: list[ModelAnswer]


class SampleAnswer(BaseModel):
    name: str
    url: str
    alt: str
    credit: str


class SamplesAnswer(BaseModel):
    samples: list[SampleAnswer]


class ErrorContent(BaseModel):
    code: str
    message: str


class ErrorAnswer(BaseModel):
    """Every error has this form."""

    error: ErrorContent
    request_id: str


_MEANINGS = {
    400: "The picture, form or JSON is damaged.",
    401: "The service needs an API key.",
    404: "There is no such model.",
    408: "The upload came too slowly.",
    413: "The upload, or the picture in pixels, is too large.",
    415: "The content is of a kind that is not read.",
    422: "A field has a value that cannot be used.",
    503: "Busy, or out of time: try again after Retry-After seconds.",
}
_STREAM = (
    "The answer; with `stream` server-sent events instead: `step` after each step of the search, "
    "then `done` with the answer, or `error`."
)
_EVENT: dict[str, Any] = {  # of each event
    "type": "object",
    "properties": {
        "event": {"enum": ["step", "done", "error"]},
        "data": {"type": "string", "description": "JSON."},
    },
    "required": ["event", "data"],
}


def _errors(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": ErrorAnswer, "description": _MEANINGS[code]} for code in codes}


def _schema(model: Any) -> dict[str, Any]:
    schema: dict[str, Any] = model.model_json_schema()
    return {key: value for key, value in schema.items() if key not in ("title", "description")}


def _form(model: Any) -> dict[str, Any]:
    """A form's fields: the file, and each field as text."""
    schema = _schema(model)
    properties = schema["properties"]
    for name, field in properties.items():  # a form has no null and no lists
        kinds = field.pop("anyOf", None)
        if kinds is None:
            continue
        field.pop("default", None)
        is_list = kinds[0].get("type") == "array"
        properties[name] = field | (
            {"type": "string", "pattern": r"^[0-9.]+(,[0-9.]+)*$"} if is_list else kinds[0]
        )
    content = {"type": "string", "format": "binary", "description": "The file."}
    schema["properties"] = {"file": content, **properties}
    schema["required"] = ["file"]
    return schema


JSON: dict[str, Any] = {"response_model": None}


def documented(route: Route) -> dict[str, Any]:
    """What /openapi.json says of a task's route."""
    body: dict[str, Any] = {
        "application/json": {"schema": _schema(route.json), "example": dict(route.request)}
    }
    if route.form is not None:
        body = {"multipart/form-data": {"schema": _form(route.form)}, **body}
    answers = {
        "application/json": {"example": dict(route.example)},
        "text/event-stream": {"schema": _EVENT},
    }
    answered = {"model": route.answer, "description": _STREAM, "content": answers}
    return {
        **JSON,
        "summary": route.summary,
        "responses": {200: answered, **_errors(*_MEANINGS)},
        "openapi_extra": {"requestBody": {"required": True, "content": body}},
    }


MODELS: dict[str, Any] = {**JSON, "responses": {200: {"model": ModelsAnswer}, **_errors(401)}}
SAMPLES: dict[str, Any] = {**JSON, "responses": {200: {"model": SamplesAnswer}, **_errors(401)}}


def complete(app: FastAPI) -> None:
    """Document the API key, which the guard asks for."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = plain()
            schema.setdefault("components", {})["securitySchemes"] = {
                "bearer": {"type": "http", "scheme": "bearer"},
                "header": {"type": "apiKey", "in": "header", "name": "X-API-Key"},
            }
            for path, operations in schema["paths"].items():
                for operation in operations.values():
                    if path.startswith("/v1/"):  # the empty one: a service may have no key
                        operation["security"] = [{}, {"bearer": []}, {"header": []}]
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
