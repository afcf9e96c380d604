"""What /openapi.json says of the routes: bodies in all forms, answers, errors, examples."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from fastapi import FastAPI

from sightline.tasks.route import Route

# What stays the same: the schemas of errors, models and samples, and what statuses mean.
_FIXED: dict[str, Any] = json.loads(Path(__file__).with_name("openapi.json").read_text("utf-8"))


def _returned(schema: str, description: str) -> dict[str, Any]:
    reference = {"$ref": f"#/components/schemas/{schema}"}
    return {"description": description, "content": {"application/json": {"schema": reference}}}


def _errors(*codes: str) -> dict[int | str, dict[str, Any]]:
    return {int(code): _returned("ErrorAnswer", _FIXED["errors"][code]) for code in codes}


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
    query: list[dict[str, Any]] = []
    if route.form is not None:
        form = _form(route.form)
        raw = {"application/octet-stream": {"schema": form["properties"]["file"]}}
        body = {"multipart/form-data": {"schema": form}, **body, **raw}
        query = _query(form)
    answers = {
        "application/json": {"example": dict(route.example)},
        "text/event-stream": {"schema": _FIXED["event"]},
    }
    answered = {"model": route.answer, "description": _FIXED["stream"], "content": answers}
    return {
        **JSON,
        "summary": route.summary,
        "responses": {200: answered, **_errors(*_FIXED["errors"])},
        "openapi_extra": {
            "requestBody": {"required": True, "content": body},
            **({"parameters": query} if query else {}),
        },
    }


def _query(form: dict[str, Any]) -> list[dict[str, Any]]:
    """The fields of a form as a query's, for a body that is the file itself."""
    fields = {name: field for name, field in form["properties"].items() if name != "file"}
    return [
        {
            "name": name,
            "in": "query",
            "required": False,
            "description": f"For a body that is the file itself. {field.get('description', '')}",
            "schema": {key: value for key, value in field.items() if key != "description"},
        }
        for name, field in fields.items()
    ]


def documented_batch(route: Route, most: int) -> dict[str, Any]:
    """What /openapi.json says of a task's route for several requests."""
    items = {"type": "array", "minItems": 1, "maxItems": most, "items": _schema(route.json)}
    body = {
        "type": "object",
        "properties": {"requests": items},
        "required": ["requests"],
        "additionalProperties": False,
    }
    example = {"requests": [dict(route.request)] * 2}
    answers = {"request_id": "5f0c1de2a3b4c5d6", "answers": [dict(route.example)] * 2}
    answered = {
        "description": _FIXED["batch"],
        "content": {"application/json": {"example": answers, "schema": _FIXED["answers"]}},
    }
    return {
        **JSON,
        "summary": f"Several at once. {route.summary}",
        "responses": {200: answered, **_errors(*_FIXED["errors"])},
        "openapi_extra": {
            "requestBody": {
                "required": True,
                "content": {"application/json": {"schema": body, "example": example}},
            }
        },
    }


def _listed(schema: str) -> dict[str, Any]:
    """What /openapi.json says of a route without a body."""
    return {**JSON, "responses": {200: _returned(schema, "Successful Response"), **_errors("401")}}


MODELS, SAMPLES = _listed("ModelsAnswer"), _listed("SamplesAnswer")


def complete(app: FastAPI) -> None:
    """Add the schemas, and the API key that the guard asks for."""
    plain = app.openapi

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            schema = plain()
            components = schema.setdefault("components", {})
            for kind, named in _FIXED["components"].items():
                components.setdefault(kind, {}).update(named)
            for path, operations in schema["paths"].items():
                for operation in operations.values():
                    if path.startswith("/v1/"):  # the empty one: a service may have no key
                        operation["security"] = [{}, {"bearer": []}, {"header": []}]
        assert app.openapi_schema is not None
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]
