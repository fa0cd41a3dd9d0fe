"""The pages: files that hold nothing of anybody, need no build and ask no other server; what they show comes
from the REST API.
"""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import NamedTuple

from fastapi import APIRouter, Request, Response

from kgot_lab.experts.repository import NotFound

_FOLDER = Path(__file__).parent / "pages"
# as files: the room of live views stands above this one
_DRAWING = Path(__file__).parents[2] / "viz" / "browser"
_FIRST = "chat.html"
_KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_FILES = {path.name: path for path in _FOLDER.iterdir() if path.suffix in _KINDS}
_FILES["cytoscape.min.js"] = _DRAWING / "cytoscape.min.js"


class PageFile(NamedTuple):
    """A file as it is served: its bytes, their type, and a tag that changes when they do."""

    body: bytes
    kind: str
    tag: str


@cache
def page_file(name: str) -> PageFile:
    """One of the files of the pages by its name; raises NotFound for every other."""
    path = _FILES.get(name)
    if path is None:
        raise NotFound("page")
    body = path.read_bytes()
    return PageFile(body, _KINDS[path.suffix], f'"{hashlib.sha256(body).hexdigest()[:32]}"')


def pages_router() -> APIRouter:
    """The routes / (the chat) and /pages/NAME."""
    router = APIRouter(include_in_schema=False)

    @router.api_route("/", methods=["GET", "HEAD"])
    def first(request: Request) -> Response:
        return _served(request, _FIRST)

    @router.api_route("/pages/{name}", methods=["GET", "HEAD"])
    def page(request: Request, name: str) -> Response:
        return _served(request, name)

    return router


def _served(request: Request, name: str) -> Response:
    """A file, or that it is still the one which the browser has."""
    file = page_file(name)
    # kept, and asked about: another version of the package shows at once
    headers = {"etag": file.tag, "cache-control": "no-cache"}
    known = [each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")]
    if file.tag in known or "*" in known:
        return Response(status_code=304, headers=headers)
    return Response(file.body, media_type=file.kind, headers=headers)
