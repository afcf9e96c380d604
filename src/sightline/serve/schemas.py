"""What answers hold besides descriptions, as /openapi.json documents it."""

from __future__ import annotations

from pydantic import BaseModel, Field


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
