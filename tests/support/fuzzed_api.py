"""A server of experts for schemathesis, its OpenAPI with links, and what every answer is checked for."""

from __future__ import annotations

import atexit
import json
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks

from kgot_lab.experts.federation.marketplace import publish_to_marketplace
from kgot_lab.experts.http.auth import GuardLimits, GuardRules
from kgot_lab.experts.http.server import expert_app
from kgot_lab.experts.learning.ledger import open_proposals
from kgot_lab.experts.learning.reviewing import LearnedGraphs
from kgot_lab.experts.portable import expert_to_json
from kgot_lab.experts.repository import open_experts
from kgot_lab.experts.service import ExpertService
from support.expert_server import COOK, COOK_ID, expert_office

load_all_checks()
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
CHECKED = [
    CHECKS.get_one(name)
    for name in (
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
    )
]
FIXED = settings(
    max_examples=6,
    stateful_step_count=8,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)


def linked(told: dict[str, Any]) -> dict[str, Any]:
    """The OpenAPI with links: an expert that is made can be read, changed, asked, copied and deleted, and so
    can its conversations.
    """
    paths = told["paths"]
    operations = {
        method["operationId"]: path for path, methods in paths.items() for method in methods.values()
    }
    # with more, rows seldom come to the end of a chain
    ends = ("{id}", "/chat", "/conversations", "/duplicate")
    about = [
        id for id, path in operations.items() if path.startswith("/api/experts/{id}") and path.endswith(ends)
    ]
    of_made = {id: {"operationId": id, "parameters": {"path.id": "$response.body#/id"}} for id in about}
    for path in ("/api/experts", "/api/experts/{id}/duplicate"):
        paths[path]["post"]["responses"]["201"]["links"] = of_made
    # the first of the list was talked to
    talked = [id for id in about if operations[id].endswith(("/chat", "/conversations"))]
    paths["/api/experts"]["get"]["responses"]["200"]["links"] = {
        id: {"operationId": id, "parameters": {"path.id": "$response.body#/0/id"}} for id in talked
    }
    first = {"path.id": "$request.path.id", "path.cid": "$response.body#/conversations/0/id"}
    within = [id for id, path in operations.items() if path.endswith("{cid}")]
    listed = paths["/api/experts/{id}/conversations"]["get"]["responses"]["200"]
    listed["links"] = {id: {"operationId": id, "parameters": first} for id in within}
    rated = [id for id, path in operations.items() if path.endswith("/opinion")]
    answer = {
        "path.id": "$request.path.id",
        "path.cid": "$request.path.cid",
        "path.mid": "$response.body#/messages/1/id",
    }
    paths["/api/experts/{id}/conversations/{cid}"]["get"]["responses"]["200"]["links"] = {
        id: {"operationId": id, "parameters": answer} for id in rated
    }
    return told


def begun_anew(service: ExpertService) -> None:
    """Let an service hold one expert that was talked to, and nothing else: rows are drawn by what came before,
    which must be the same.
    """
    service.tables = open_experts(now=lambda: NOON)
    service.create(dict(COOK))
    for question in ("prompt caching", "agents"):
        list(service.ask(COOK_ID, "local", question).events())


def made_schema() -> tuple[Any, ExpertService]:
    """The schema of a server of its own, and its service."""
    service = expert_office()
    begun_anew(service)
    service.market = Path(mkdtemp())
    atexit.register(rmtree, service.market)
    publish_to_marketplace(
        service.market, json.dumps(expert_to_json(service.expert(COOK_ID), service.graphs))
    )
    rules = GuardRules(limits=GuardLimits(requests_a_minute=10**6), names=("testserver",))
    app = expert_app(service, rules, LearnedGraphs(service, open_proposals()))
    schema = schemathesis.openapi.from_dict(linked(app.openapi()))
    schema.app = _without_lifespan(app)
    return schema, service


def _without_lifespan(app: Any) -> Any:
    """The application for a client that starts it again for each call, which the tools of assistants, not
    asked here, do not take.
    """

    async def asked(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        for stage in ("startup", "shutdown"):
            await receive()
            await send({"type": f"lifespan.{stage}.complete"})

    return asked


def operations_of(schema: Any) -> dict[str, Any]:
    """The operations of a schema by their names."""
    return {operation.ok().label: operation.ok() for operation in schema.get_all_operations()}


def takes_something(operation: Any) -> bool:
    """Whether a request can be wrong: it has a body, a query or a part of its path to fill in."""
    return bool(operation.body or operation.query or operation.path_parameters)


def ask_at_random(operation: Any, mode: str) -> None:
    """Ask an operation with random requests, "positive" as they are documented or "negative" against it."""

    @FIXED
    @given(operation.as_strategy(generation_mode=GenerationMode(mode)))
    def asked(case: schemathesis.Case) -> None:
        case.validate_response(case.call(), checks=CHECKED)

    asked()
