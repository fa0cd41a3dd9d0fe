"""The application of all doors, and running it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.routing import Route

from kgot_lab import __version__
from kgot_lab.experts.http.auth import AuthMiddleware, GuardRules
from kgot_lab.experts.http.learning_routes import drift_router, lessons_router
from kgot_lab.experts.http.mcp import expert_tools
from kgot_lab.experts.http.openai_api import completions_router
from kgot_lab.experts.http.responses import ERRORS, StreamLimiter, tell_errors
from kgot_lab.experts.http.rest_api import rest_routers
from kgot_lab.experts.http.server import pages_router
from kgot_lab.experts.http.sharing_routes import (
    federation_router,
    sharing_router,
    trading_router,
    trials_router,
)
from kgot_lab.experts.learning.reviewing import ReviewQueue
from kgot_lab.experts.service import LOCAL_OWNER, ExpertService

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send

_ON_LOOPBACK = GuardRules()
_ASKING: ContextVar[str] = ContextVar("asking", default=LOCAL_OWNER)


def expert_app(
    service: ExpertService, rules: GuardRules = _ON_LOOPBACK, review_queue: ReviewQueue | None = None
) -> FastAPI:
    """An ASGI application that serves the experts of an service behind the rules.

    Pages are at /, REST is under /api, the protocol of OpenAI under /v1, MCP at /mcp.
    """
    limiter = StreamLimiter(rules.limits.streams, rules.limits.answer_seconds)
    from mcp.server.transport_security import TransportSecuritySettings

    tools = expert_tools(service, _ASKING.get, limiter)
    # the guard looks at hosts and origins for all doors
    unguarded = TransportSecuritySettings(enable_dns_rebinding_protection=False)
    mcp = tools.streamable_http_app(stateless_http=True, json_response=True, transport_security=unguarded)

    @asynccontextmanager
    async def living(app: FastAPI) -> AsyncIterator[None]:
        async with tools.session_manager.run():
            try:
                yield
            finally:
                limiter.close()

    app = FastAPI(
        title="kgot-lab experts",
        version=__version__,
        summary="Personas bound to knowledge graphs, whose answers cite nodes that are checked.",
        docs_url=None,
        redoc_url=None,
        lifespan=living,
        responses=ERRORS,
    )
    tell_errors(app)
    for router in rest_routers(service, limiter):
        app.include_router(router)
    app.include_router(completions_router(service, limiter))
    app.include_router(sharing_router(service))
    app.include_router(trials_router(service))
    if review_queue is not None:
        app.include_router(lessons_router(service, limiter, review_queue))
        app.include_router(drift_router(service, review_queue))
    if service.consultants is not None:
        app.include_router(federation_router(service, limiter, service.consultants.federation))
    if service.market is not None:
        app.include_router(trading_router(service, service.market))
    app.include_router(pages_router())

    @app.get("/health", tags=["server"])
    def health() -> dict[str, Any]:
        """Whether the server is up, and how many chats are going on."""
        return {"up": True, "chats": limiter.open}

    async def tenant_middleware(scope: Scope, receive: Receive, send: Send) -> None:
        _ASKING.set(scope["tenant"].name)
        await mcp(scope, receive, send)

    # only POST: a GET would open a stream that nothing is ever told on, since no session is kept
    app.router.routes.append(
        Route("/mcp", _AtRoot(tenant_middleware), methods=["POST"], include_in_schema=False)
    )
    app.add_middleware(AuthMiddleware, rules=rules, tables=service.tables)
    return app


class _AtRoot:
    """The assistants' application, which answers at /mcp itself."""

    def __init__(self, app: Any):
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app({**scope, "path": "/mcp", "raw_path": b"/mcp", "root_path": ""}, receive, send)
