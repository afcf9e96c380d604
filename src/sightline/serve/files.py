"""The page's files and the sample pictures: read once and looked up by exact name, so that no path
leads out of their folders."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from sightline.samples import FOLDER, samples
from sightline.serve.limits import Refusal

PAGE = Path(__file__).parent / "page"

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
    tag: str


def read_files(folder: Path) -> dict[str, File]:
    """Every file below a folder, by its relative path."""
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            content = path.read_bytes()
            kind = _TYPES.get(path.suffix) or mimetypes.guess_type(path.name)[0]
            tag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
            name = path.relative_to(folder).as_posix()
            files[name] = File(content, kind or "application/octet-stream", tag)
    return files


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
    """The sample pictures as /v1/samples lists them, and their files."""
    files = read_files(FOLDER)
    listed = [
        {"name": each.name, "url": f"/samples/{each.name}", "alt": each.alt, "credit": each.credit}
        for each in samples()
    ]
    return listed, {sample["name"]: files[sample["name"]] for sample in listed}
