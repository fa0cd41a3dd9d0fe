"""Two tenants on one server: whatever one of them does, over all routes there are, nothing of the other's
ever comes out.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.routing import BaseRoute, Mount
from starlette.testclient import TestClient
from support.expert_server import COOK, COOK_ID, bearer, expert_office

from kgot_lab.experts.federation.marketplace import publish_to_marketplace
from kgot_lab.experts.http import tokens
from kgot_lab.experts.http.auth import GuardLimits, GuardRules
from kgot_lab.experts.http.server import expert_app
from kgot_lab.experts.http.tokens import new_token, revoke_tokens
from kgot_lab.experts.learning.ledger import open_proposals
from kgot_lab.experts.learning.reviewing import LearnedGraphs
from kgot_lab.experts.portable import expert_to_json
from kgot_lab.llm.recorded import Scripted

pytestmark = pytest.mark.extended

CANARIES = {"ada": "quokka", "bob": "axolotl"}
NODE = "technique:prompt_caching"
OPEN = {"/health"}  # and the pages, which hold nothing of anybody
ACCEPT = {"accept": "application/json, text/event-stream"}


def routes_of(routes: Iterable[BaseRoute], before: str = "") -> Iterator[tuple[str, str]]:
    """Each method and path that an application answers, also those of routers and mounts within it."""
    for route in routes:
        inner = getattr(route, "original_router", None)
        if inner is not None:
            yield from routes_of(inner.routes, before)
        elif isinstance(route, Mount):
            yield from routes_of(route.routes, before + route.path)
            yield "GET", f"{before}{route.path}/index.html"
        else:
            yield from ((method, before + route.path) for method in sorted(set(route.methods) - {"HEAD"}))


@dataclass
class Side:
    """A tenant, and all that the server ever told it of its own."""

    name: str
    token: str
    conversations: list[str] = field(default_factory=list)
    messages: list[str] = field(default_factory=list)

    @property
    def secrets(self) -> list[str]:
        return [CANARIES[self.name], self.token, *self.conversations, *self.messages]


@dataclass
class Asked:
    """A request: the tenant's own, with ids from anywhere."""

    method: str
    path: str
    body: Any = None

    def told(self, client: TestClient, token: str) -> tuple[int, str]:
        headers = {**bearer(token), **ACCEPT, "content-type": "application/json"}
        answer = client.request(self.method, self.path, json=self.body, headers=headers)
        return answer.status_code, answer.text


def absent(id: str) -> str:
    """An id of the same form that nobody has."""
    kind, _, rest = id.partition("_")
    return f"{kind}_{'0' * len(rest)}"


def mcp(tool: str, **arguments: str) -> dict:
    params = {"name": tool, "arguments": arguments}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


def bodies(conversation: str, message: str, question: str) -> dict[tuple[str, str], list[Any]]:
    """What each route that takes a body is sent; a new route has to be told here how it is asked."""
    chat = [
        {"query": question},
        {"query": question, "conversation_id": conversation, "trace": True},
        {"query": question, "history": [{"role": "user", "content": question}]},
    ]
    said = [
        {"role": "user", "content": "Tell me all you know of animals."},
        {"role": "assistant", "content": "x"},
    ]
    talk = {"model": COOK_ID, "messages": [{"role": "user", "content": question}]}
    expert = "/api/experts/{id}"
    return {
        ("POST", "/api/experts"): [{**COOK, "description": question}],
        ("PUT", expert): [{"description": question}, {"persona": {"instructions": question}}],
        ("POST", f"{expert}/duplicate"): [{"new_name": "copy"}],
        ("POST", f"{expert}/chat"): chat,
        ("POST", f"{expert}/conversations/{{cid}}/learn"): [{}],
        ("POST", f"{expert}/drift"): [
            {"graph": "cookbook", "node": NODE, "dimension": "pricing_tier", "value": 0.5}
        ],
        ("PUT", f"{expert}/proposals/{{pid}}/accepted"): [{}],
        ("PUT", f"{expert}/proposals/{{pid}}/rejected"): [{}],
        ("POST", f"{expert}/trials"): [{"b": {"description": question}}],
        ("POST", "/api/import"): [{"expert": {"kind": question}}],
        ("POST", "/api/market/import"): [{"name": "Cookbook", "dry": True}, {"name": question}],
        ("PUT", f"{expert}/conversations/{{cid}}/messages/{{mid}}/opinion"): [{"thumb": 1}, {"thumb": -1}],
        ("POST", "/api/kgos/query/{db_id}"): [{"query": question}],
        ("POST", "/api/kgos/impact/{db_id}/{node_id:path}"): [{}],
        ("POST", "/api/kgos/compose/{db_id}"): [{"goal": question}],
        ("POST", "/api/kgos/similar/{db_id}/{node_id:path}"): [{}],
        ("POST", "/api/kgos/edits/{db_id}"): [
            [{"edit": "NodeToAdd", "id": "technique:new", "type": "technique", "name": "New"}]
        ],
        ("POST", "/api/chat"): [talk, {**talk, "stream": False}],
        ("POST", "/api/generate"): [{"model": COOK_ID, "prompt": question}],
        ("POST", "/api/show"): [{"model": COOK_ID}],
        ("POST", "/v1/chat/completions"): [
            talk,
            {**talk, "stream": True},
            {**talk, "messages": [*said, *talk["messages"]]},
        ],
        ("POST", "/mcp"): [
            mcp("ask_expert", expert=COOK_ID, question=question),
            mcp("ask_expert", expert=COOK_ID, question=question, conversation=conversation),
            mcp("why", expert=COOK_ID, conversation=conversation),
            mcp("why", expert=COOK_ID, conversation=conversation, message=message),
            mcp("search_expert", expert=COOK_ID, query=question),
            mcp("list_experts"),
        ],
    }


def filled(path: str, conversation: str, message: str) -> str:
    """A path with its parameters; one that is not known here is given a conversation's id, which is what must
    not come out.
    """
    known = {"id": COOK_ID, "cid": conversation, "mid": message, "db_id": "cookbook", "node_id:path": NODE}
    return re.sub(r"\{([^}]+)\}", lambda found: known.get(found.group(1), conversation), path)


@dataclass
class World:
    client: TestClient
    service: Any
    ada: Side
    bob: Side
    admin: str
    routes: list[tuple[str, str]]


@pytest.fixture(scope="module")
def world(tmp_path_factory) -> Iterator[World]:
    def repeat(prompt):  # all that it was told comes out, so that what it must not be told would too
        return '{"changes": []}' if prompt.schema else "\n".join(message.text for message in prompt.messages)

    service = expert_office(
        Scripted(repeat, "repeat"), place=tmp_path_factory.mktemp("tenants") / "experts.db"
    )
    service.market = tmp_path_factory.mktemp("market")
    publish_to_marketplace(
        service.market, json.dumps(expert_to_json(service.expert(COOK_ID), service.graphs))
    )
    rules = GuardRules(tokens=True, limits=GuardLimits(requests_a_minute=10**6))
    app = expert_app(service, rules, LearnedGraphs(service, open_proposals()))
    sides = [Side(name, new_token(service.tables, name)) for name in CANARIES]
    admin = new_token(service.tables, "root", "admin")
    with TestClient(app, base_url="http://localhost") as client:
        yield World(client, service, *sides, admin, list(routes_of(app.routes)))


def note_own(side: Side, text: str) -> None:
    """What a tenant was told of its own conversations."""
    for kind, held in (("conv", side.conversations), ("msg", side.messages)):
        held += [
            id for id in dict.fromkeys(re.findall(rf"{kind}_[A-Za-z0-9_-]{{16}}", text)) if id not in held
        ]


@st.composite
def steps(draw) -> tuple[int, int, int, int, int, bool]:
    """Who asks, which route, which of its bodies, which conversation and message, and whether of the other's."""
    return (*(draw(st.integers(0, 10_000)) for _ in range(5)), draw(st.booleans()))


def test_every_route_that_takes_a_body_is_asked_with_one(world):
    told = set(bodies("c", "m", "q"))
    found = {(method, path) for method, path in world.routes if method in ("POST", "PUT", "PATCH")}
    assert found == told, "a route is new or gone: tell `bodies` how it is asked"
    assert len(world.routes) >= 20


@settings(max_examples=25, deadline=None, derandomize=True)
@given(sequence=st.lists(steps(), min_size=3, max_size=12))
def test_nothing_of_one_tenant_comes_out_to_the_other(world, sequence):
    experts = world.service.tables.experts()
    held = {side.name: _held(world, side) for side in (world.ada, world.bob)}
    for who, route, form, conversation, message, foreign in sequence:
        me, other = (world.ada, world.bob) if who % 2 else (world.bob, world.ada)
        owner = other if foreign else me
        cid = "conv_none"
        if owner.conversations:
            cid = owner.conversations[conversation % len(owner.conversations)]
        mid = owner.messages[message % len(owner.messages)] if owner.messages else "msg_none"
        method, path = world.routes[route % len(world.routes)]
        asked = _asked(method, path, form, cid, mid, me)
        status, text = asked.told(world.client, me.token)
        assert status < 500, (asked, text)
        assert not [secret for secret in other.secrets if secret in text], (asked, status)
        if foreign and (cid in json.dumps([asked.path, asked.body])):
            nobodys = _asked(method, path, form, absent(cid), absent(mid), me)
            assert (status, text) == nobodys.told(world.client, me.token), (asked, nobodys)
            # and nothing of the other's was changed or taken away
            assert _held(world, other) >= held[other.name], asked
        else:
            note_own(me, text)
        held = {side.name: _held(world, side) for side in (world.ada, world.bob)}
    assert world.service.tables.experts() == experts


def _asked(method: str, path: str, form: int, cid: str, mid: str, me: Side) -> Asked:
    question = f"Tell me of {CANARIES[me.name]} and prompt caching, and what you know of animals."
    forms = bodies(cid, mid, question).get((method, path), [None])
    return Asked(method, filled(path, cid, mid), forms[form % len(forms)])


def _held(world: World, side: Side) -> set[tuple]:
    """All rows of a tenant's conversations and opinions."""
    rows = world.service.tables.storage.rows
    said = rows(
        "SELECT m.id, m.content FROM messages m JOIN conversations c ON c.id = m.conversation WHERE c.owner = :o",
        {"o": side.name},
    )
    about = """SELECT o.message, o.thumb FROM opinions o JOIN messages m ON m.id = o.message
        JOIN conversations c ON c.id = m.conversation WHERE c.owner = :o"""
    return set(map(tuple, said)) | set(map(tuple, rows(about, {"o": side.name})))


def test_the_random_requests_came_to_something(world):
    """The property above would hold of a server that refuses everything."""
    for side in (world.ada, world.bob):
        status, text = Asked(
            "POST", f"/api/experts/{COOK_ID}/chat", {"query": f"{CANARIES[side.name]} animals"}
        ).told(world.client, side.token)
        assert status == 200 and CANARIES[side.name] in text
        note_own(side, text)
        assert side.conversations and side.messages and _held(world, side)
        status, text = Asked("GET", f"/api/experts/{COOK_ID}/conversations").told(world.client, side.token)
        assert status == 200 and side.conversations[-1] in text


def test_a_user_may_not_change_experts_and_an_admin_may(world):
    changing = [("POST", "/api/experts"), ("PUT", "/api/experts/{id}"), ("DELETE", "/api/experts/{id}")]
    changing += [("POST", "/api/experts/{id}/duplicate")]
    before = world.service.tables.experts()
    for method, path in changing:
        for body in bodies("c", "m", "q").get((method, path), [None]):
            for place in (path, path.replace("{id}", "nobody")):
                status, text = Asked(method, filled(place, "c", "m"), body).told(
                    world.client, world.ada.token
                )
                assert (status, json.loads(text)["error"]["code"]) == (403, "forbidden")
    assert world.service.tables.experts() == before
    made = Asked("POST", "/api/experts", {**COOK, "persona": {"name": "Made"}}).told(
        world.client, world.admin
    )
    assert made[0] == 201
    assert Asked("DELETE", "/api/experts/expert_made").told(world.client, world.admin)[0] == 200


def test_an_admin_reads_no_conversation_of_others(world):
    asked = Asked("POST", f"/api/experts/{COOK_ID}/chat", {"query": "quokka"})
    note_own(world.ada, asked.told(world.client, world.ada.token)[1])
    for method, path in world.routes:
        for form in range(6):
            if method != "DELETE" and not path.endswith(("{id}", "/duplicate", "/api/experts")):
                admin = Side("bob", world.admin)
                _, text = _asked(
                    method, path, form, world.ada.conversations[-1], world.ada.messages[-1], admin
                ).told(world.client, world.admin)
                assert not [secret for secret in world.ada.secrets if secret in text], path


def test_no_route_is_open_to_who_has_no_token_or_one_that_was_revoked(world):
    gone = new_token(world.service.tables, "gone")
    assert Asked("GET", "/api/experts").told(world.client, gone)[0] == 200
    revoke_tokens(world.service.tables, "gone")
    for token in (gone, "kgx_nobody", gone[:-1]):
        for method, path in world.routes:
            if path in OPEN or (method == "GET" and (path == "/" or path.startswith("/pages"))):
                continue
            for form in range(3):
                status, text = _asked(method, path, form, "conv_x", "msg_x", world.ada).told(
                    world.client, token
                )
                error = json.loads(text)["error"]  # a text in Ollama's protocol
                assert status == 401 and (isinstance(error, str) or error["code"] == "no_token"), (
                    method,
                    path,
                )
    again = new_token(world.service.tables, "gone")
    assert again != gone and Asked("GET", "/api/experts").told(world.client, again)[0] == 200


def test_no_token_stands_anywhere_on_the_disk(tmp_path):
    service = expert_office(place=tmp_path / "experts.db")
    with TestClient(expert_app(service, GuardRules(tokens=True)), base_url="http://localhost") as client:
        made = [
            new_token(service.tables, name, role) for name in ("ada", "bob") for role in ("user", "admin")
        ]
        revoke_tokens(service.tables, "bob")
        for token in made:
            Asked("POST", f"/api/experts/{COOK_ID}/chat", {"query": "hello"}).told(client, token)
        written = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    service.tables.close()
    written += b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"hello" in written
    for token in made:
        assert token.encode() not in written and token.removeprefix("kgx_")[:12].encode() not in written


def test_tokens_are_compared_by_their_hashes_each_of_them_whole(world, monkeypatch):
    compared, real = [], tokens.hmac.compare_digest

    def noted(one: str, two: str) -> bool:
        compared.append((one, two))
        return real(one, two)

    monkeypatch.setattr(tokens.hmac, "compare_digest", noted)
    for token in (world.ada.token, "kgx_nobody"):
        compared.clear()
        Asked("GET", "/api/experts").told(world.client, token)
        assert len(compared) == len(
            world.service.tables.storage.rows("SELECT hash FROM tokens WHERE revoked IS NULL")
        )
        assert all(re.fullmatch("[0-9a-f]{64}", each) for pair in compared for each in pair)
        assert token not in str(compared)
