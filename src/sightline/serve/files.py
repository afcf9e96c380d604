"""The files of the page, of the tasks' panels and of the samples: read once and looked up by exact
name, so that no path leads out of their folders."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Container, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from sightline.samples import FOLDER, samples
from sightline.serve.limits import Refusal
from sightline.tasks import all_specs

PAGE = Path(__file__).parent / "page"
_PANELS = b"    <!-- panels -->\n"  # the line of index.html where they go

_TYPES = {
    ".js": "text/javascript",
    ".css": "text/css",
    ".html": "text/html",
    ".svg": "image/svg+xml",
    ".webp": "image/webp",
    ".webmanifest": "application/manifest+json",
}


@dataclass(frozen=True)
class File:
    content: bytes
    kind: str

    @cached_property
    def tag(self) -> str:
        return f'"{hashlib.sha256(self.content).hexdigest()[:16]}"'


def read_files(folder: Path) -> dict[str, File]:
    """Every file below a folder, by its relative path."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0]
            name = path.relative_to(folder).as_posix()
            files[name] = File(path.read_bytes(), kind or "application/octet-stream")
    return files


def read_page(tasks: Container[str]) -> dict[str, File]:
    """The page's files; these tasks' panels are in index.html, and their files in panels/TASK/."""
    files = read_files(PAGE)
    sections: list[bytes] = []
    for spec in all_specs():
        if spec.panel is None or spec.name not in tasks:
            continue
        panel = read_files(spec.panel)
        files |= {f"panels/{spec.name}/{name}": file for name, file in panel.items()}
        # the page shows the first panel while it loads
        opening = (
            f'<section id="panel-{spec.name}" data-task="{spec.name}" role="tabpanel" '
            f'aria-labelledby="tab-{spec.name}"{" hidden" if sections else ""}>\n'
        )
        sections.append(opening.encode() + panel["panel.html"].content + b"</section>\n")
    page = files["index.html"].content.replace(_PANELS, b"".join(sections))
    return files | {"index.html": File(page, "text/html")}


def respond(files: Mapping[str, File], name: str, request: Request) -> Response:
    """A file, or 304 if the browser's copy is current."""
    file = files.get(name)
    if file is None:
        raise Refusal(404, "not_found", "there is no such file")
    headers = {"etag": file.tag, "cache-control": "no-cache"}
    if request.headers.get("if-none-match") == file.tag:
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.kind, headers=headers)


def read_samples() -> tuple[list[dict[str, Any]], dict[str, File]]:
    """The sample pictures as /v1/samples lists them, and their files; those of sounds too."""
    files = read_files(FOLDER)
    listed = [
        {"name": each.name, "url": f"/samples/{each.name}", "alt": each.alt, "credit": each.credit}
        for each in samples()
    ]
    sounds = [name for name, file in files.items() if file.kind.startswith("audio/")]
    return listed, {name: files[name] for name in [*(each["name"] for each in listed), *sounds]}
