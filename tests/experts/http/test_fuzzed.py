"""The whole OpenAPI of the server, fuzzed by schemathesis: no 5xx, no status that is not documented, no
answer of another shape.
"""

from __future__ import annotations

import atexit
import json
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks
from support.expert_server import COOK, COOK_ID, expert_office

from kgot_lab.experts import repository as keeping
from kgot_lab.experts.federation.marketplace import publish_to_marketplace
from kgot_lab.experts.http.auth import GuardLimits, GuardRules
from kgot_lab.experts.http.server import expert_app
from kgot_lab.experts.learning.ledger import open_proposals
from kgot_lab.experts.learning.reviewing import LearnedGraphs
from kgot_lab.experts.portable import expert_to_json
from kgot_lab.experts.repository import open_experts
from kgot_lab.experts.service import ExpertService

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
    max_examples=8,
    stateful_step_count=8,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
MODES = (GenerationMode.POSITIVE, GenerationMode.NEGATIVE)


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
    """The application for a client that starts it anew for each call, which the tools of assistants, not
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


SCHEMA, _ = made_schema()
OPERATIONS = {operation.ok().label: operation.ok() for operation in SCHEMA.get_all_operations()}


# of that client
pytestmark = [
    pytest.mark.extended,
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def no_chat_is_left() -> Iterator[None]:
    yield
    assert OPERATIONS["GET /health"].Case().call().json()["chats"] == 0


@pytest.mark.parametrize("mode", MODES, ids=lambda mode: mode.value)
@pytest.mark.parametrize("label", OPERATIONS)
def test_an_operation_answers_as_it_is_documented(label, mode):
    if mode is GenerationMode.NEGATIVE and not (
        OPERATIONS[label].body or OPERATIONS[label].query or OPERATIONS[label].path_parameters
    ):
        pytest.skip("it takes nothing that could be wrong")

    @FIXED
    @given(OPERATIONS[label].as_strategy(generation_mode=mode))
    def asked(case: schemathesis.Case) -> None:
        case.validate_response(case.call(), checks=CHECKED)

    asked()


def test_operations_in_a_row_answer_as_they_are_documented(monkeypatch):
    came: set[tuple[str, int]] = set()
    schema, service = made_schema()
    no_links = r"trials|import|market|export|scores|gaps|drift|learn|proposals|decisions|kgos|v1|health"
    numbers = count()
    monkeypatch.setattr(keeping.secrets, "token_urlsafe", lambda _: f"{next(numbers):016}")

    class Machine(schema.exclude(path_regex=no_links).as_state_machine()):  # type: ignore[misc]
        def setup(self) -> None:
            nonlocal numbers
            numbers = count()
            begun_anew(service)

        def validate_response(
            self, response: Any, case: schemathesis.Case, additional_checks: Any = None, **kwargs: Any
        ) -> None:
            case.validate_response(response, checks=CHECKED)
            came.add((case.operation.label, response.status_code))

    Machine.run(settings=settings(FIXED, max_examples=40))
    asked = {label for label, status in came if "{id}" in label and status == 200}
    assert len(asked) >= 3, "the links led nowhere"
