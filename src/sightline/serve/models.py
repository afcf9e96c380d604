"""The models that are served, by name: each behind what the batcher and the routes need of one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sightline.errors import DataError, PictureKindError, PictureSizeError, UserError
from sightline.media.focus import Region, focus_bias
from sightline.media.image import read_image
from sightline.search import Snapshot
from sightline.serve.batching import Update
from sightline.serve.limits import Refusal
from sightline.types import Description


@dataclass(frozen=True)
class CaptionSettings:
    beam: int | None = None
    n_best: int = 1
    prefix: str = ""


@dataclass(frozen=True)
class TranslateSettings:
    beam: int | None = None
    n_best: int = 1


@dataclass(frozen=True)
class CaptionItem:
    """A picture that has been read, and where to look in it."""

    picture: Any  # ReadPicture
    focus: Region | None


@dataclass(frozen=True, eq=False)
class ServedCaptioner:
    """A captioner: pictures of a batch are encoded and searched together."""

    name: str
    model: Any  # Captioner
    task: str = "caption"

    def check(self, settings: CaptionSettings) -> None:
        """Refuse what the search would refuse, before any work."""
        self.model.prefix_tokens(settings.prefix)

    def read(self, picture: bytes, focus: Region | None, max_pixels: int) -> CaptionItem:
        """Decode a picture and let its pixels go; for reader threads."""
        try:
            pixels = read_image(picture, name="the picture", max_pixels=max_pixels)
        except DataError as error:
            raise _bad_picture(error) from None
        read = self.model.read(pixels)
        if focus is not None:
            focus_bias(focus, read.visible_box, self.model.encoder.grid())  # or a UserError
        return CaptionItem(read, focus)

    def run(
        self, items: Sequence[CaptionItem], settings: CaptionSettings, streamed: Sequence[bool]
    ) -> Iterator[list[tuple[int, Update]]]:
        began = time.monotonic()
        snapshots: Iterator[Snapshot] = self.model.search(
            [item.picture for item in items],
            beam=settings.beam,
            n_best=settings.n_best,
            prefix=settings.prefix,
            focus=[item.focus for item in items],
            keep_tree=any(streamed),
        )
        for snapshot in snapshots:
            wanted = [place for place, stream in enumerate(streamed) if stream]
            partials = ((place, self.model.partial(snapshot, place)) for place in wanted)
            yield [(place, partial) for place, partial in partials if partial.nodes]
        found = self.model.descriptions(snapshot.hypotheses)
        seconds = time.monotonic() - began
        pairs = zip(items, found, strict=True)
        yield [(place, self._answer(*pair, seconds)) for place, pair in enumerate(pairs)]

    def _answer(self, item: CaptionItem, found: Description, seconds: float) -> dict[str, Any]:
        return _answer(self, found, seconds) | {
            "visible_box": [round(edge, 6) for edge in item.picture.visible_box],
            "width": item.picture.width,
            "height": item.picture.height,
        }


@dataclass(frozen=True, eq=False)
class ServedTranslator:
    """A translator: sentences of a batch are searched together, streamed ones alone."""

    name: str
    model: Any  # Translator
    task: str = "translate"

    def run(
        self, items: Sequence[str], settings: TranslateSettings, streamed: Sequence[bool]
    ) -> Iterator[list[tuple[int, Update]]]:
        options: dict[str, Any] = {"beam": settings.beam, "n_best": settings.n_best}
        together = [place for place, stream in enumerate(streamed) if not stream]
        if together:
            began = time.monotonic()
            found = self.model.translate([items[place] for place in together], **options)
            seconds = time.monotonic() - began
            pairs = zip(together, found, strict=True)
            yield [(place, self._answer(items[place], one, seconds)) for place, one in pairs]
        for place, stream in enumerate(streamed):
            if stream:
                began = time.monotonic()
                for news in self.model.stream(items[place], **options):
                    if isinstance(news, Description):
                        seconds = time.monotonic() - began
                        yield [(place, self._answer(items[place], news, seconds))]
                    else:
                        yield [(place, news)]

    def _answer(self, text: str, found: Description, seconds: float) -> dict[str, Any]:
        if found.attention is None:
            source, target, links = text.split(), found.text.split(), []
        else:
            alignment = self.model.alignment(found)
            source, target = list(alignment.source), list(alignment.target)
            links = [[s, t, round(sure, 4)] for s, t, sure in sorted(alignment.links())]
        return _answer(self, found, seconds) | {
            "source_words": source,
            "target_words": target,
            "alignment": links,
        }


Served = ServedCaptioner | ServedTranslator
KINDS: dict[str, type[Served]] = {"caption": ServedCaptioner, "translate": ServedTranslator}


def _answer(model: Served, found: Description, seconds: float) -> dict[str, Any]:
    content = found.to_json()
    content["alternatives"] = [
        {key: value for key, value in other.items() if key != "alternatives"}
        for other in content["alternatives"]
    ]
    return {"model": model.name, "task": model.task, **content, "seconds": round(seconds, 4)}


def _bad_picture(error: DataError) -> Refusal:
    if isinstance(error, PictureKindError):
        return Refusal(415, "unsupported_picture", str(error))
    if isinstance(error, PictureSizeError):
        return Refusal(413, "too_many_pixels", str(error))
    return Refusal(400, "bad_picture", str(error))


# ---------------------------------------------------------------------------- by name


@dataclass(frozen=True)
class Models:
    """What is served; the first of each task is its default."""

    by_name: Mapping[str, Served] = field(default_factory=dict)

    def find(self, name: str | None, task: str) -> Any:
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
                "description": model.model.recipe.description,
                "attention": _attention(model.model.recipe.model.attention),
                "beam": model.model.recipe.search.beam,
                "default": defaults[model.task] == model.name,
            }
            for model in self
        ]

    def __iter__(self) -> Iterator[Served]:
        return iter(self.by_name.values())


def _attention(config: Any) -> str:
    if config.kind == "none":
        return "none"
    return "hard" if config.hard else "soft"


def load_models(sources: Sequence[str]) -> Models:
    """Load models given as PATH, ZOO-NAME or NAME=PATH; without any, all of the zoo that fit."""
    from sightline import zoo
    from sightline.config import top_level
    from sightline.tasks import load_for

    given = list(sources)
    if not given:
        tasks = {name: top_level(zoo.find(name) / "config.yaml", "task") for name in zoo.names()}
        given = [name for name, task in tasks.items() if task in KINDS]
        if not given:
            raise UserError("the zoo has no model to serve; give one with --model")
    served: dict[str, Served] = {}
    for source in given:
        name, path = _named(source)
        if name in served:
            raise UserError(f"two models are called {name!r}; name them: --model NAME=PATH")
        model = load_for(path, *KINDS)
        served[name] = KINDS[model.recipe.task](name, model)
    return Models(served)


def _named(source: str) -> tuple[str, str]:
    name, equals, path = source.partition("=")
    if equals and name and "/" not in name:
        return name, path
    return Path(source).resolve().name if Path(source).exists() else source, source
