"""What /openapi.json says of the routes: bodies in both forms, answers, errors, examples."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from sightline.serve.schemas import (
    DescribeAnswer,
    DescribeFields,
    DescribeJson,
    ErrorAnswer,
    ModelsAnswer,
    SamplesAnswer,
    TranslateAnswer,
    TranslateJson,
)

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
_CAPTION = {
    "request_id": "5f0c1de2a3b4c5d6",
    "model": "flickr8k",
    "task": "caption",
    "text": "a dog runs",
    "score": -4.2,
    "tokens": ["a", "dog", "runs"],
    "log_probs": [-0.7, -1.2, -1.4],
    "attention": [[0.1, 0.2, 0.3, 0.4], [0.0, 0.1, 0.1, 0.8], [0.1, 0.1, 0.4, 0.4]],
    "layout": {"kind": "grid", "shape": [2, 2]},
    "alternatives": [],
    "visible_box": [0.17, 0.06, 0.83, 0.94],
    "width": 640,
    "height": 480,
    "seconds": 0.21,
}
_TRANSLATION = {
    "request_id": "5f0c1de2a3b4c5d6",
    "model": "multi30k-de-en",
    "task": "translate",
    "text": "a dog",
    "score": -0.9,
    "tokens": ["a", "dog"],
    "log_probs": [-0.1, -0.3],
    "attention": [[0.9, 0.1, 0.0], [0.1, 0.9, 0.0]],
    "layout": {"kind": "words", "labels": ["ein", "Hund", "<end>"]},
    "alternatives": [],
    "seconds": 0.08,
    "source_words": ["ein", "Hund"],
    "target_words": ["a", "dog"],
    "alignment": [[0, 0, 0.9], [1, 1, 0.9]],
}


def _errors(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": ErrorAnswer, "description": _MEANINGS[code]} for code in codes}


def _answered(model: Any, example: Any, text: str = _STREAM) -> dict[str, Any]:
    content = {"application/json": {"example": example}}
    if text is _STREAM:
        content["text/event-stream"] = {"schema": _EVENT}
    return {"model": model, "description": text, "content": content}


def _schema(model: Any) -> dict[str, Any]:
    schema: dict[str, Any] = model.model_json_schema()
    schema.pop("title", None)
    schema.pop("description", None)
    return schema


def _form() -> dict[str, Any]:
    schema = _schema(DescribeFields)
    properties = schema["properties"]
    properties["focus"] = {
        "type": "string",
        "pattern": r"^[0-9.]+(,[0-9.]+){3}$",
        "description": "Where to look: `x,y,w,h` as fractions of the picture.",
    }
    for name in ("model", "beam"):  # a form has no null
        kinds = properties[name].pop("anyOf")
        properties[name] |= kinds[0]
        properties[name].pop("default", None)
    picture = {"type": "string", "format": "binary", "description": "The picture."}
    schema["properties"] = {"file": picture, **properties}
    schema["required"] = ["file"]
    return schema


JSON: dict[str, Any] = {"response_model": None}
DESCRIBE: dict[str, Any] = {
    **JSON,
    "responses": {
        200: _answered(DescribeAnswer, _CAPTION),
        **_errors(400, 401, 404, 408, 413, 415, 422, 503),
    },
    "openapi_extra": {
        "requestBody": {
            "required": True,
            "content": {
                "multipart/form-data": {
                    "schema": _form(),
                    "encoding": {"file": {"contentType": "image/*"}},
                },
                "application/json": {
                    "schema": _schema(DescribeJson),
                    "example": {"image": "/9j/4AAQSkZJRg…", "beam": 5, "focus": [0.5, 0, 0.5, 1]},
                },
            },
        }
    },
}
TRANSLATE: dict[str, Any] = {
    **JSON,
    "responses": {
        200: _answered(TranslateAnswer, _TRANSLATION),
        **_errors(400, 401, 404, 408, 413, 415, 422, 503),
    },
    "openapi_extra": {
        "requestBody": {
            "required": True,
            "content": {
                "application/json": {
                    "schema": _schema(TranslateJson),
                    "example": {"text": "ein Hund", "beam": 5, "n_best": 2},
                }
            },
        }
    },
}
MODELS: dict[str, Any] = {**JSON, "responses": {200: {"model": ModelsAnswer}, **_errors(401)}}
SAMPLES: dict[str, Any] = {**JSON, "responses": {200: {"model": SamplesAnswer}, **_errors(401)}}


def complete(app: FastAPI) -> None:
    """Let the description tell of the key, which the guard asks for."""
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
