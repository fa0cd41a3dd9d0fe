"""The application of all protocols and pages, and running it."""

from __future__ import annotations

import hashlib
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import APIRouter, Depends, FastAPI, Request, Response
from starlette.routing import Route

from kgot_lab import __version__
from kgot_lab.experts.http.auth import AuthMiddleware, GuardRules
from kgot_lab.experts.http.learning_routes import drift_router, edits_router, learning_router
from kgot_lab.experts.http.mcp import expert_tools
from kgot_lab.experts.http.ollama_api import ollama_router
from kgot_lab.experts.http.openai_api import completions_router
from kgot_lab.experts.http.responses import (
    ERRORS,
    StreamLimiter,
    refuse_unknown_parameters,
    register_error_handlers,
)
from kgot_lab.experts.http.rest_api import rest_routers
from kgot_lab.experts.http.sharing_routes import (
    federation_router,
    marketplace_router,
    sharing_router,
    trials_router,
)
from kgot_lab.experts.http.tokens import find_tenant
from kgot_lab.experts.http.upload_routes import choices_router, upload_router
from kgot_lab.experts.learning.reviewing import LearnedGraphs
from kgot_lab.experts.repository import NotFound
from kgot_lab.experts.service import LOCAL_OWNER, ExpertService
from kgot_lab.kgos.query.mcp_server import http_app

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

# The web pages: static files without user data, without a build step or other servers. Their content comes
# from the REST API.

_FOLDER = Path(__file__).parent / "pages"
# as files: the package of live views is in a higher layer
_DRAWING = Path(__file__).parents[2] / "viz" / "browser"
_START_PAGE = "chat.html"
_CONTENT_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
_HEAD = _FOLDER / "head.html"  # what all pages begin with, in place of <!-- head -->
_FILES = {path.name: path for path in _FOLDER.iterdir() if path.suffix in _CONTENT_TYPES and path != _HEAD}
_FILES["cytoscape.min.js"] = _DRAWING / "cytoscape.min.js"


def pages_router() -> APIRouter:
    """Build the routes / (the chat) and /pages/NAME."""
    router = APIRouter(include_in_schema=False)

    @router.api_route("/", methods=["GET", "HEAD"])
    def start_page(request: Request) -> Response:
        return _page_response(request, _START_PAGE)

    @router.api_route("/pages/{name}", methods=["GET", "HEAD"])
    def page(request: Request, name: str) -> Response:
        return _page_response(request, name)

    return router


def _page_response(request: Request, name: str) -> Response:
    """Return a page file, or status 304 if the browser has the current version.

    Raises NotFound for any other name.
    """
    path = _FILES.get(name)
    if path is None:
        raise NotFound("page")
    # revalidated each time, so that another version of the package shows at once
    content = path.read_bytes()
    if path.suffix == ".html":
        content = content.replace(b"<!-- head -->\n", _HEAD.read_bytes())
    headers = {"cache-control": "no-cache", "etag": f'"{hashlib.sha256(content).hexdigest()[:32]}"'}
    if headers["etag"] in request.headers.get("if-none-match", ""):
        return Response(status_code=304, headers=headers)
    return Response(content, 200, headers, _CONTENT_TYPES[path.suffix])


_LOOPBACK_RULES = GuardRules()
_CURRENT_OWNER: ContextVar[str] = ContextVar("asking", default=LOCAL_OWNER)


def expert_app(
    service: ExpertService, rules: GuardRules = _LOOPBACK_RULES, learned: LearnedGraphs | None = None
) -> FastAPI:
    """Build an ASGI application that serves the experts of a service behind the rules of the guard.

    Pages are at /, REST is under /api with Ollama's protocol, OpenAI's under /v1, MCP at /mcp.
    """
    limiter = StreamLimiter(rules.limits.streams, rules.limits.answer_seconds)
    mcp = http_app(expert_tools(service, _CURRENT_OWNER.get, limiter))
    app = FastAPI(
        title="kgot-lab experts",
        version=__version__,
        summary="Personas bound to knowledge graphs, whose answers cite nodes that are checked.",
        docs_url=None,
        redoc_url=None,
        lifespan=mcp.router.lifespan_context,
        responses=ERRORS,
        dependencies=[Depends(refuse_unknown_parameters)],
    )
    register_error_handlers(app)
    for router in rest_routers(service, limiter):
        app.include_router(router)
    app.include_router(completions_router(service, limiter))
    app.include_router(ollama_router(service, limiter))
    app.include_router(sharing_router(service))
    app.include_router(trials_router(service))
    if learned is not None:
        app.include_router(learning_router(service, limiter, learned))
        app.include_router(drift_router(service, learned))
        app.include_router(edits_router(service, learned))
    if service.consultants is not None:
        app.include_router(federation_router(service, limiter, service.consultants.federation))
    if service.market is not None:
        app.include_router(marketplace_router(service, service.market))
    app.include_router(choices_router(service))
    if rules.uploads and service.graphs.uploads is not None:
        app.include_router(upload_router(service, service.graphs.uploads))
    app.include_router(pages_router())

    @app.get("/health", tags=["server"])
    async def health() -> dict[str, Any]:
        """Return whether the server is up, the number of running chats, and the graphs still being read."""
        return {"up": True, "chats": limiter.running, "loading": sorted(service.loading)}

    app.router.routes.append(Route("/mcp", _McpEndpoint(mcp), methods=["POST"], include_in_schema=False))
    app.add_middleware(AuthMiddleware, rules=rules, tenant_of=partial(find_tenant, service.tables))
    return app


class _McpEndpoint:
    """The MCP application, which answers at /mcp itself, for the tenant who asks."""

    def __init__(self, app: Any):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        _CURRENT_OWNER.set(scope["tenant"].name)
        await self._app(scope, receive, send)
