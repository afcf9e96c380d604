"""The models that are served, by name: each behind what the batcher and the routes need of one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sightline.errors import UserError
from sightline.runtime.batches import joined, similar
from sightline.runtime.card import Card, read_card
from sightline.runtime.describer import Describer, Options
from sightline.runtime.model_folder import find_model
from sightline.serve.batching import Update
from sightline.serve.decoders import Decoders
from sightline.serve.limits import Refusal
from sightline.tasks import load_for, spec_of
from sightline.tasks.route import Route, check_work, route_of
from sightline.types import Description, Inputs


@dataclass(frozen=True)
class Item:
    """A source that has been read."""

    source: Any  # a text as it was sent; of a file nothing is kept
    parts: list[Inputs]


@dataclass(frozen=True, eq=False)
class ServedModel:
    """A model of any task: what a batch of requests brings is searched together by size."""

    name: str
    model: Describer
    route: Route
    card: Card | None = None

    @property
    def task(self) -> str:
        return self.model.task

    @property
    def takes_files(self) -> bool:
        return self.model.reader.takes == "file"

    def read(self, source: Any, reading: dict[str, Any], decoders: Decoders) -> Item:
        """Decode a source and keep only what a search needs; for reader threads."""
        reader = self.model.reader
        if isinstance(source, bytes):
            return Item(None, decoders.read(reader, source, reading))
        return Item(source, reader.read(source, **reading))

    def check(self, item: Item, settings: Options) -> None:
        """A UserError for what would take too much work or too long an answer."""
        check_work(self.model, settings, item.parts)

    def run(
        self, items: Sequence[Item], settings: Options, streamed: Sequence[bool]
    ) -> Iterator[list[tuple[int, Update]]]:
        """Search for all parts of all items: after each step (position, partial result) of the
        streamed items, at the end (position, answer) of every item.
        """
        began = time.monotonic()
        owners = [place for place, item in enumerate(items) for _ in item.parts]
        parts = [part for item in items for part in item.parts]
        done: dict[int, Description] = {}  # by part
        shown = [streamed[place] and len(items[place].parts) == 1 for place in owners]
        # a reader whose examples cannot share a search, such as one of prompts, has a batch of 1
        most = 1 if self.model.reader.batch == 1 else len(parts)
        for size, rows in similar([part.size for part in parts], most):
            some = [parts[row] for row in rows]
            wanted = [(at, row) for at, row in enumerate(rows) if shown[row]]
            for snapshot in self.model.search(some, settings, size=size, keep_tree=bool(wanted)):
                news = [(row, self.model.partial(snapshot, at, parts[row])) for at, row in wanted]
                yield [(owners[row], partial) for row, partial in news if partial.news]
            described = self.model.descriptions(snapshot.hypotheses, some)
            done |= dict(zip(rows, described, strict=True))
        seconds = time.monotonic() - began
        ordered = iter(done[row] for row in range(len(parts)))
        yield [
            (place, self._answer(item, [next(ordered) for _ in item.parts], seconds))
            for place, item in enumerate(items)
        ]

    def _answer(self, item: Item, parts: list[Description], seconds: float) -> dict[str, Any]:
        description = joined(parts)
        content = description.to_json()
        for other in content["alternatives"]:
            del other["alternatives"]
        more = self.route.more(self.model, item.source, item.parts, description)
        about = {"model": self.name, "task": self.task}
        return {**about, **content, **more, "seconds": round(seconds, 4)}


# ---------------------------------------------------------------------------- by name


@dataclass(frozen=True)
class Models:
    """What is served; the first of each task is its default."""

    by_name: Mapping[str, ServedModel] = field(default_factory=dict)

    def find(self, name: str | None, task: str) -> ServedModel:
        """The model of that name (or the default), if it does this task."""
        fitting = [model for model in self.by_name.values() if model.task == task]
        if not fitting:
            raise Refusal(404, "no_model", f"this service has no model for {task}")
        if name is None:
            return fitting[0]
        for model in fitting:
            if model.name == name:
                return model
        known = ", ".join(model.name for model in fitting)
        raise Refusal(404, "unknown_model", f"there is no such model for {task}; there is: {known}")

    def to_json(self) -> list[dict[str, Any]]:
        defaults = {task: self.find(None, task).name for task in {m.task for m in self}}
        return [
            {
                "name": model.name,
                "task": model.task,
                "route": model.route.path,
                "description": model.model.recipe.description,
                "card": model.card and model.card.to_json(),
                "about": model.route.about(model.model),
                "attention": _attention(model.model.recipe.model),
                "beam": model.model.codec.search.beam,
                "default": defaults[model.task] == model.name,
            }
            for model in self
        ]

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self.by_name.values())


def _attention(config: Any) -> str:
    looks = getattr(config, "attention", config)  # a memory network is attention itself
    if getattr(looks, "kind", "") == "none":
        return "none"
    return "hard" if looks.hard else "soft"


def load_models(sources: Sequence[str]) -> Models:
    """Load models given as PATH, ZOO-NAME or NAME=PATH; without any, all of the zoo."""
    from sightline import zoo

    given = list(sources) or zoo.names()
    if not given:
        raise UserError("the zoo has no model to serve; give one with --model")
    served: dict[str, ServedModel] = {}
    for source in given:
        name, path = _named(source)
        if name in served:
            raise UserError(f"two models are called {name!r}; name them: --model NAME=PATH")
        model = load_for(path)
        route = route_of(spec_of(model.task), model.reader.takes)
        served[name] = ServedModel(name, model, route, read_card(find_model(path)))
    return Models(served)


def _named(source: str) -> tuple[str, str]:
    name, equals, path = source.partition("=")
    if equals and name and "/" not in name:
        return name, path
    return Path(source).resolve().name if Path(source).exists() else source, source
