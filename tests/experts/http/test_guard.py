"""What stands before every door: from where one may ask, what, how much, how often; and what neither answers
nor logs may hold.
"""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from types import SimpleNamespace

import httpx
import pytest
from support.every import every
from support.expert_server import (
    COOK,
    COOK_ID,
    FailingModel,
    HeldModel,
    ServedExperts,
    bearer,
    echoing,
    expert_office,
    served,
)
from support.waiting import AMPLE, until
from typer.testing import CliRunner

from kgot_lab.cli.app import app as commands
from kgot_lab.errors import BadInput, LLMError, StoreUnavailable
from kgot_lab.experts.http import auth
from kgot_lab.experts.http.auth import AuthMiddleware, GuardLimits, GuardRules

CHAT = f"/api/experts/{COOK_ID}/chat"
HEADERS = (
    "content-security-policy",
    "x-content-type-options",
    "referrer-policy",
    "cross-origin-resource-policy",
)
JSON = {"content-type": "application/json"}


@pytest.fixture(scope="module")
def server() -> Iterator[ServedExperts]:
    with served(expert_office(), GuardRules(limits=GuardLimits(body=10_000))) as running:
        yield running


def refusal(answer: httpx.Response) -> tuple[int, str]:
    assert not [name for name in HEADERS if name not in answer.headers], answer.headers
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    return answer.status_code, answer.json()["error"]["code"]


def raw(server: ServedExperts, *parts: bytes) -> bytes:
    """What a server says to bytes that are sent as they are, until its error is whole or it closes the line."""
    with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2])), AMPLE) as line:
        with suppress(BrokenPipeError, ConnectionResetError):
            for part in parts:
                line.sendall(part)
        told = b""
        with suppress(ConnectionResetError):
            while not told.endswith(b"}}") and (more := line.recv(65_536)):
                told += more
    return told


# --- from where ---


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "localhost.evil.example",
        "127.0.0.1.evil.example",
        "[::1",
        "[]",
        "a b",
        "127.0.0.1/x",
        "x@127.0.0.1",
        "\xff",
        "",
        ":80",
    ],
)
def test_a_foreign_host_is_refused(server, host):
    told = raw(
        server,
        b"GET /api/experts HTTP/1.1\r\nConnection: close\r\nHost: " + host.encode("latin-1") + b"\r\n\r\n",
    )
    assert told.split()[1] in (b"421", b"400"), told  # 400: the server below took it for no host at all


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:81", "127.0.0.1:1", "127.1.2.3", "[::1]:9", "localhost."]
)
def test_this_computer_may_be_called_by_each_of_its_names(server, host):
    assert server.client.get("/api/experts", headers={"host": host}).status_code == 200


def test_names_of_a_proxy_are_told_by_its_owner():
    rules = GuardRules(names=("Experts.example",))
    assert rules.accepts_host("experts.example:443") and not rules.accepts_host("other.example")


@pytest.mark.parametrize(
    "path", ["/api/experts", "/v1/models", "/health", "/mcp", "/openapi.json", "/nothing"]
)
def test_a_foreign_origin_is_refused_at_every_door(server, path):
    near = ("http://127.0.0.1:1", "http://localhost", server.url.replace("http://", ""))
    for origin in ("https://evil.example", "null", "file://", *near):
        assert refusal(server.client.get(path, headers={"origin": origin})) == (403, "foreign_origin")
    assert server.client.get("/api/experts", headers={"origin": server.url}).status_code == 200


@pytest.mark.parametrize(
    "kind",
    [
        None,
        "",
        "text/plain",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "application/jsonp",
    ],
)
def test_a_body_of_another_kind_is_refused_at_every_door(server, kind):
    for path in (CHAT, "/v1/chat/completions", "/mcp", "/api/experts"):
        headers = {} if kind is None else {"content-type": kind}
        assert refusal(
            server.client.post(path, content=json.dumps({"query": "x"}).encode(), headers=headers)
        ) == (415, "not_json")
    answer = server.client.post(
        CHAT, content=b'{"query": "x"}', headers={"content-type": "Application/JSON; charset=utf-8"}
    )
    assert answer.status_code == 200


def test_a_request_that_holds_nothing_needs_no_kind(server):
    assert refusal(server.client.post(f"/api/experts/{COOK_ID}/conversations/none/learn")) == (
        404,
        "not_there",
    )
    assert refusal(server.client.put(f"/api/experts/{COOK_ID}/proposals/none/accepted")) == (404, "not_there")
    for headers in ({"content-type": "text/plain"}, {"content-type": "application/x-www-form-urlencoded"}):
        assert refusal(
            server.client.post(f"/api/experts/{COOK_ID}/conversations/none/learn", headers=headers)
        ) == (415, "not_json")
    answer = server.client.post(
        f"/api/experts/{COOK_ID}/conversations/none/learn", headers={"origin": "null"}
    )
    assert refusal(answer)[0] == 403


def test_every_answer_has_the_headers_of_a_careful_server_and_none_of_cors(server):
    for answer in (
        server.client.get("/api/experts"),
        server.client.post(CHAT, json={"query": "x"}),
        server.client.get("/nothing"),
        server.client.post(CHAT, json={}),
        server.client.get("/health"),
        server.client.get("/openapi.json"),
        server.client.post(
            "/v1/chat/completions", json={"model": COOK_ID, "messages": [{"role": "user", "content": "x"}]}
        ),
        server.client.post("/mcp", json={}),
    ):
        assert not [name for name in HEADERS if len(answer.headers.get_list(name)) != 1], answer.headers
        assert not [name for name in answer.headers if name.startswith("access-control-")]
        assert "server" not in answer.headers


def test_a_browser_that_asks_whether_it_may_is_not_told_yes(server):
    asks = {"origin": "https://evil.example", "access-control-request-method": "PUT"}
    assert refusal(server.client.options(f"/api/experts/{COOK_ID}", headers=asks)) == (403, "foreign_origin")
    assert refusal(server.client.options(f"/api/experts/{COOK_ID}")) == (405, "wrong_method")


# --- how much ---


def test_a_body_that_says_it_is_too_long_is_refused_before_it_comes(server):
    told = raw(
        server,
        f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 10001\r\n\r\n".encode(),
    )
    assert told.split()[1] == b"413"


@pytest.mark.parametrize("path", [CHAT, "/v1/chat/completions", "/mcp", "/api/experts", "/nothing"])
def test_a_body_that_does_not_say_how_long_it_is_and_becomes_too_long_is_refused(server, path):
    def pieces() -> Iterator[bytes]:
        yield b'{"query": "'
        for _ in range(20):
            yield b"x" * 1000

    with suppress(httpx.WriteError):  # the server had closed the line before all was sent
        assert refusal(server.client.post(path, content=pieces(), headers=JSON)) == (413, "too_large")
    assert server.client.get("/health").status_code == 200


def test_a_body_in_pieces_that_is_short_enough_is_taken(server):
    answer = server.client.post(CHAT, content=iter([b'{"que', b'ry": "', b"x" * 5000, b'"}']), headers=JSON)
    assert answer.status_code == 200 and "x" * 5000 in answer.text.replace("\n", "")


@every("length", ["-1", "1e3", "0x10", "9" * 30, "\xb2", "1,1", ""])
def test_a_length_that_is_no_number_is_refused(length):
    sent: list[dict] = []

    async def ask() -> None:
        headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
        scope = {"type": "http", "method": "POST", "path": CHAT, "headers": headers}
        scope["headers"].append((b"content-length", length.encode("latin-1")))

        async def send(message):
            sent.append(message)

        await AuthMiddleware(None, GuardRules())(scope, None, send)

    asyncio.run(ask())
    assert sent[0]["status"] in (400, 413)


@pytest.mark.parametrize("begun", [False, True])
def test_a_server_that_ends_in_the_middle_says_so_or_cuts_off_what_it_began(begun):
    sent: list[dict] = []

    async def app(scope, receive, send):
        if begun:
            await send({"type": "http.response.start", "status": 200, "headers": []})
        raise asyncio.CancelledError

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "GET", "path": "/api/experts", "headers": [(b"host", b"localhost")]}
    asyncio.run(AuthMiddleware(app, GuardRules())(scope, receive, send))
    assert sent[0]["status"] == (200 if begun else 503) and len(sent) == (1 if begun else 2)
    assert begun or json.loads(sent[1]["body"])["error"]["code"] == "ending"


def test_a_body_that_does_not_come_is_not_waited_for_for_ever():
    with served(expert_office(), GuardRules(limits=GuardLimits(send_seconds=0.3))) as server:
        head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
        told = raw(server, head.encode(), b'{"query"')
        assert told.split()[1] == b"408" and b'"too_slow"' in told
        assert server.client.get("/health").json() == {"up": True, "chats": 0, "loading": []}


def test_a_client_that_leaves_before_its_body_is_there_costs_nothing(server):
    head = f"POST {CHAT} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n"
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", int(server.url.rpartition(":")[2]))) as line:
            line.sendall(head.encode() + b'{"query"')
    assert server.client.get("/health").json() == {"up": True, "chats": 0, "loading": []}


# --- how often ---


def test_a_rate_is_counted_by_tenant_over_a_minute_of_the_clock(monkeypatch):
    now, statuses = [1000.0], []

    async def app(scope, receive, send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b""})

    service = expert_office()
    from kgot_lab.experts.http.tokens import find_tenant, new_token

    ada, bob = new_token(service.tables, "ada"), new_token(service.tables, "bob")
    rules = GuardRules(tokens=True, limits=GuardLimits(requests_a_minute=3))
    guard = AuthMiddleware(app, rules, partial(find_tenant, service.tables))
    monkeypatch.setattr(auth, "time", SimpleNamespace(monotonic=lambda: now[0]))

    def ask(token: str) -> int:
        async def once() -> None:
            async def receive():
                return {"type": "http.request", "body": b""}

            async def send(message):
                if message["type"] == "http.response.start":
                    statuses.append((message["status"], dict(message["headers"]).get(b"retry-after")))

            headers = [(b"host", b"localhost"), (b"authorization", f"Bearer {token}".encode())]
            await guard(
                {"type": "http", "method": "GET", "path": "/api/experts", "headers": headers}, receive, send
            )

        asyncio.run(once())
        return statuses[-1][0]

    assert [ask(ada) for _ in range(4)] == [200, 200, 200, 429] and statuses[-1][1] == b"10"
    assert ask(bob) == 200
    now[0] += 59.9
    assert ask(ada) == 429
    now[0] += 0.2
    assert [ask(ada) for _ in range(4)] == [200, 200, 200, 429]
    assert ask("wrong") == 401


def test_more_chats_than_there_are_places_are_told_to_come_again_at_every_door():
    model = HeldModel()
    with served(expert_office(model), GuardRules(limits=GuardLimits(streams=2))) as server:
        readers = [threading.Thread(target=server.ask, args=("x",), daemon=True) for _ in range(2)]
        [reader.start() for reader in readers]
        until(lambda: model.begun == 2, "both places are taken")
        completion = {"model": COOK_ID, "messages": [{"role": "user", "content": "x"}]}
        streamed = {**completion, "stream": True}
        for path, body in (
            (CHAT, {"query": "x"}),
            *(("/v1/chat/completions", each) for each in (completion, streamed)),
        ):
            answer = server.client.post(path, json=body)
            assert refusal(answer) == (503, "too_busy") and answer.headers["retry-after"] == "5"
        assert server.client.get("/api/experts").status_code == 200
        model.finish()
        [reader.join() for reader in readers]
        until(lambda: server.chats == 0, "the places are free")
        assert server.client.post(CHAT, json={"query": "x"}).status_code == 200


# --- tokens ---


def test_off_loopback_nobody_is_served_without_a_token():
    for host in ("0.0.0.0", "192.168.1.7", "::", "example.org", ""):
        with pytest.raises(BadInput, match="demands tokens"):
            GuardRules(host)
        assert GuardRules(host, tokens=True).tokens


def test_a_server_that_demands_tokens_and_has_none_does_not_start(tmp_path):
    for arguments in (["--host", "0.0.0.0"], ["--tokens"]):
        ran = CliRunner().invoke(
            commands,
            ["serve", "--store", str(tmp_path / "e.db"), "--model", "local", "--port", "0", *arguments],
        )
        assert ran.exit_code != 0 and "--new-token" in (ran.output + str(ran.exception))


def test_where_tokens_are_demanded_only_the_health_and_the_pages_are_open():
    with served(expert_office(), GuardRules(tokens=True)) as server:
        good = bearer(server.token("ada"))
        bare = {"authorization": good["authorization"][7:]}
        closed = "/v1/models /mcp /openapi.json /nothing /API/experts //api/experts /health/".split()
        strangers = ({"authorization": "Bearer"}, {"authorization": "Basic YTpi"}, bearer("kgx_wrong"), bare)
        asked = [("GET", path, {}) for path in closed] + [
            ("GET", "/api/experts", stranger) for stranger in strangers
        ]
        for method, path, headers in [*asked, *(("POST", path, bare) for path in ("/", "/pages/x", CHAT))]:
            answer = server.client.request(method, path, headers={**JSON, **headers})
            assert refusal(answer) == (401, "no_token") and answer.headers["www-authenticate"] == "Bearer"
        assert server.client.get("/health", headers=bare).status_code == 200
        assert server.client.get("/api/experts", headers=good).status_code == 200
        answer = server.client.get(
            "/api/experts", headers={"authorization": good["authorization"].replace("Bearer", "bearer")}
        )
        assert answer.status_code == 200


# --- what is told ---


class _Away:
    """A storage that cannot be reached; its words name a path, as those of a real one do."""

    def rows(self, *_):
        raise StoreUnavailable("/home/ada/secret/experts.db cannot be reached")

    reading = rows


@contextmanager
def away(service) -> Iterator[None]:
    real, service.tables.storage = service.tables.storage, _Away()
    try:
        yield
    finally:
        service.tables.storage = real


def test_a_store_that_is_away_is_told_as_such_whether_the_guard_or_a_door_asks_it(caplog):
    caplog.set_level(logging.DEBUG)
    for tokens in (True, False):
        service = expert_office()
        with served(service, GuardRules(tokens=tokens)) as server, away(service):
            answer = server.client.get("/api/experts", headers=bearer("kgx_x"))
            assert refusal(answer) == (503, "store_away")
            assert "/home" not in answer.text
            assert answer.headers["retry-after"] == "5"
    assert "StoreUnavailable" in caplog.text and "/home" not in caplog.text


def test_an_error_that_nobody_foresaw_has_the_shape_and_the_headers_of_any_other_and_tells_nothing(
    caplog, monkeypatch
):
    caplog.set_level(logging.DEBUG)
    service = expert_office()
    monkeypatch.setattr(service, "experts", lambda owner, *page: {}[f"/home/ada {owner} canary"])
    with served(service) as server:
        answer = server.client.get("/api/experts")
        assert refusal(answer) == (500, "failed") and set(answer.json()["error"]) == {"code", "message"}
        assert "KeyError" not in answer.text and "canary" not in answer.text
    assert "KeyError" in caplog.text and "test_guard.py" in caplog.text
    assert "canary" not in caplog.text and "/home" not in caplog.text


def test_no_log_holds_a_question_an_answer_a_token_a_key_or_a_path(caplog, tmp_path):
    caplog.set_level(logging.DEBUG)
    for name in list(logging.root.manager.loggerDict):
        caplog.set_level(logging.DEBUG, name)
    question, key, path = "Xylophone canary question?", "sk-canarykey1234567890abcdef", str(tmp_path)
    nasty = LLMError(f"the model at {path}/model.gguf with {key[:3]} said no to {question!r}")
    wrong = FailingModel(ValueError(f"{question} {key}"), name="wrong")
    models = (echoing(), FailingModel(nasty, name="nasty"), wrong)
    with served(expert_office(*models, place=tmp_path / "experts.db"), GuardRules(tokens=True)) as server:
        token = server.token("ada", "admin")
        headers = bearer(token)
        for model in ("echo", "nasty", "wrong"):
            server.ask(question, model=model, headers=headers)
        fields = ({"model": question}, {question: 1}, {"conversation_id": question})
        for body in ({"query": question, **field} for field in fields):
            assert server.client.post(CHAT, json=body, headers=headers).status_code in (404, 422)
        completion = {"model": COOK_ID, "messages": [{"role": "user", "content": question}]}
        for stream in (True, False):
            body = {**completion, "stream": stream}
            assert server.client.post("/v1/chat/completions", json=body, headers=headers).status_code == 200
        body = {**COOK, "models": {"chat": question}}
        assert server.client.post("/api/experts", json=body, headers=headers).status_code == 422
        assert server.client.get("/api/experts", headers=bearer(token + "x")).status_code == 401
        answer = server.client.post(CHAT, content=b"{" + question.encode(), headers={**headers, **JSON})
        assert answer.status_code == 422
        params = {"name": "ask_expert", "arguments": {"expert": COOK_ID, "question": question}}
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        accept = {"accept": "application/json, text/event-stream"}
        assert server.client.post("/mcp", json=call, headers={**headers, **accept}).status_code == 200
    said = "\n".join(
        f"{record.getMessage()} {record.exc_text or ''} {record.args}"
        for record in caplog.records
        if not record.name.startswith(("httpx", "httpcore"))
    )
    assert "LLMError" in said and "ValueError" in said
    for secret in ("Xylophone", "canary", token, token[4:20], path):
        assert secret not in said, [line for line in said.splitlines() if secret in line]
