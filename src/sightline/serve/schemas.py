"""What requests and answers hold: checked on the way in, described in /openapi.json."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from sightline.errors import UserError
from sightline.media.focus import Region, check_focus, parse_focus

MAX_BEAM = 20
Beam = Annotated[int, Field(ge=1, le=MAX_BEAM)]


class _Search(BaseModel):
    """What every request for words may say."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    model: Annotated[str, Field(max_length=200)] | None = Field(
        None, description="A name that /v1/models gives; without it the task's default."
    )
    beam: Beam | None = Field(None, description="Hypotheses searched side by side.")
    n_best: Beam = Field(1, description="How many to give, at most as many as the beam.")
    stream: bool = Field(False, description="Answer with server-sent events while it searches.")

    @model_validator(mode="after")
    def _fits(self) -> _Search:
        if self.beam is not None and self.n_best > self.beam:
            raise ValueError("n_best is larger than the beam")
        return self


class DescribeFields(_Search):
    """What may be said about a picture, in a form or in JSON."""

    prefix: Annotated[str, Field(max_length=200)] = Field(
        "", description="Words that the caption has to begin with."
    )
    focus: (
        Annotated[list[Annotated[float, Field(ge=0, le=1)]], Field(min_length=4, max_length=4)]
        | None
    ) = Field(None, description="Where to look: x, y, width, height as fractions of the picture.")

    @field_validator("focus", mode="before")
    @classmethod
    def _from_text(cls, value: Any) -> Any:
        """A form has it as `x,y,w,h`."""
        if isinstance(value, str):
            try:
                return list(parse_focus(value)) if value.strip() else None
            except UserError as error:
                raise ValueError(str(error)) from None
        return value

    @field_validator("focus")
    @classmethod
    def _is_a_box(cls, value: list[float] | None) -> list[float] | None:
        if value is not None:
            try:
                check_focus(value)
            except UserError as error:
                raise ValueError(str(error)) from None
        return value

    @property
    def box(self) -> Region | None:
        return None if self.focus is None else check_focus(self.focus)


class DescribeJson(DescribeFields):
    """A picture in base64 and what is asked of it."""

    image: str = Field(description="The picture file's bytes in base64.")


class TranslateJson(_Search):
    """A sentence and what is asked of it."""

    text: Annotated[str, Field(max_length=2000)]


# ---------------------------------------------------------------------------- answers


class LayoutAnswer(BaseModel):
    kind: str
    shape: list[int] | None = None
    labels: list[str] | None = None


class Words(BaseModel):
    """One text, how sure each token is, and where each token looked."""

    text: str
    score: float
    tokens: list[str]
    log_probs: list[float]
    attention: list[list[float]] | None = Field(description="One row per token.")
    layout: LayoutAnswer | None = Field(description="What the columns of `attention` are.")


class _Answer(Words):
    request_id: str
    model: str
    task: str
    alternatives: list[Words]
    seconds: float


class DescribeAnswer(_Answer):
    visible_box: list[float] = Field(
        description="Left, top, right, bottom of what the model saw, as fractions of the picture."
    )
    width: int
    height: int


class TranslateAnswer(_Answer):
    source_words: list[str]
    target_words: list[str]
    alignment: list[tuple[int, int, float]] = Field(
        description="Source word, target word (both from 0), confidence."
    )


class ModelAnswer(BaseModel):
    name: str
    task: str
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
