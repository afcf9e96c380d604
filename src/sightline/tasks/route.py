"""Route: how a task is asked for over HTTP. Only the service imports this: it needs pydantic."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from sightline.errors import UserError
from sightline.runtime.describer import Describer, Options
from sightline.types import Description, Inputs

if TYPE_CHECKING:
    from sightline.tasks.spec import TaskSpec

MAX_BEAM = 20
# Numbers of attention (tokens × positions, of every hypothesis): in memory during a search, and in
# an answer, where each takes about 20 characters. Those of one hypothesis are always allowed.
MAX_SEARCHED = 20_000_000
MAX_ANSWERED = 1_000_000
Beam = Annotated[int, Field(ge=1, le=MAX_BEAM)]


class SearchFields(BaseModel):
    """What every request may say."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    model: Annotated[str, Field(max_length=200)] | None = Field(
        None, description="A name from /v1/models; by default the task's first model."
    )
    beam: Beam | None = Field(None, description="Hypotheses searched in parallel.")
    n_best: Beam = Field(1, description="How many to return, at most as many as the beam.")
    stream: bool = Field(False, description="Answer with server-sent events during the search.")

    @model_validator(mode="after")
    def _fits(self) -> SearchFields:
        if self.beam is not None and self.n_best > self.beam:
            raise ValueError("n_best is larger than the beam")
        return self

    def options(self, defaults: Options) -> Options:
        """As the search takes them: the fields that have the name of an option."""
        names = {item.name for item in fields(Options)} & type(self).model_fields.keys()
        return replace(defaults, **{name: getattr(self, name) for name in names})

    def reading(self, max_pixels: int) -> dict[str, Any]:
        """What the model's reader is given besides the source."""
        return {}


def check_work(model: Describer, settings: Options, parts: Sequence[Inputs]) -> None:
    """A UserError where beam × n-best × length would be too much work or too long an answer."""
    sizes = [max(part.size, *(len(each) for each in part.layouts if each), 0) for part in parts]
    lengths = [settings.length or model.codec.max_length(part.size) for part in parts]
    searched = sum(length * size for length, size in zip(lengths, sizes, strict=True))
    beam = max(settings.beam or model.codec.search.beam, settings.n_best)
    for name, number, cells, most in (
        ("n_best", settings.n_best, sum(lengths) * sum(sizes), MAX_ANSWERED),  # parts are joined
        ("beam", beam, searched, MAX_SEARCHED),
    ):
        if number > 1 and number * cells > most:
            fitting = max(1, most // cells)
            raise UserError(f"{name} is too large for an input of this length: at most {fitting}")


class TextJson(SearchFields):
    """A text and what is asked of it."""

    text: Annotated[str, Field(max_length=2000)]


class FileJson(SearchFields):
    """A file's bytes in base64 and what is asked of it."""

    file: str = Field(description="The file's bytes in base64.")


class LayoutAnswer(BaseModel):
    kind: str
    shape: list[int] | None = None
    times: list[float] | None = None
    labels: list[str] | None = None
    coordinates: list[list[float]] | None = None


class Words(BaseModel):
    """One text, how sure each token is, and where each token looked."""

    text: str
    score: float
    confidence: float | None = Field(None, description="The probability that it is right.")
    tokens: list[str]
    log_probs: list[float]
    attention: list[list[float]] | None = Field(description="One row per token.")
    layout: LayoutAnswer | None = Field(description="What the columns of `attention` are.")


class Answer(Words):
    request_id: str
    model: str
    task: str
    alternatives: list[Words]
    seconds: float


@dataclass(frozen=True)
class Route:
    """One path of the service; a request is a form with a `file`, or JSON."""

    path: str
    summary: str
    json: type[SearchFields]  # the body as JSON; its `source` key holds the text or base64 bytes
    source: str  # that key
    form: type[SearchFields] | None = None  # the fields of a form with a `file`; None: JSON only
    # what an answer has besides the description: model, source, its parts, its description → JSON
    more: Callable[[Describer, Any, list[Inputs], Description], dict[str, Any]] = lambda *_: {}
    answer: type[Answer] = Answer
    # what /v1/models says of a model besides its card: `limits` in words, where it may have no card
    about: Callable[[Describer], dict[str, Any]] = lambda _: {}
    example: Mapping[str, Any] = field(default_factory=dict)  # an answer, for /openapi.json
    request: Mapping[str, Any] = field(default_factory=dict)  # a JSON body, for /openapi.json


def route_of(spec: TaskSpec, takes: str) -> Route:
    """The task's route, or one that every task can be asked by."""
    if spec.route is not None:
        return spec.route()
    path, summary = f"/v1/{spec.name}", f"The task {spec.name}."
    if takes == "text":
        return Route(path, summary, TextJson, "text")
    return Route(path, summary, FileJson, "file", SearchFields)
