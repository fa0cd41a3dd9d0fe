"""What stands before every door: who asks, from where, how much and how often.

On loopback everybody who reaches the port is the user of this computer, so what a web page could send from their browser is refused: a
foreign Host, a foreign Origin, a body that is no JSON. Off loopback a token is demanded. There is no CORS header at all.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from kgot_lab.errors import BadInput
from kgot_lab.experts.doors.tokens import Tenant, tenant_of
from kgot_lab.experts.keeping import ExpertTables
from kgot_lab.experts.office import LOCAL_OWNER
from kgot_lab.http.proxies import is_loopback

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_OPEN = ("/health",)  # needs no token
_PAGES = ("/", "/pages/")  # hold nothing of anybody, and a browser sends no token for them
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
    b"form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = (
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


@dataclass(frozen=True)
class GuardLimits:
    """How much one may send and ask; a rate is per tenant, streams are counted over all."""

    body: int = 2_000_000  # bytes
    requests_a_minute: int = 1200
    streams: int = 200
    answer_seconds: float = 600.0
    send_seconds: float = 30.0  # in which a body has to be here


@dataclass(frozen=True)
class GuardRules:
    """Where a server is reached: its host, whether a token is demanded, and its limits. Raises BadInput off loopback without tokens."""

    host: str = "127.0.0.1"
    tokens: bool = False
    limits: GuardLimits = GuardLimits()
    names: tuple[str, ...] = ()  # by which it is reached besides, behind a proxy

    def __post_init__(self) -> None:
        if not self.tokens and not is_here(self.host):
            raise BadInput(f"a server that others reach ({self.host}) demands tokens: make one with kgot-lab serve --new-token NAME")

    def may_be_called(self, host: str) -> bool:
        """Whether a Host header names this server; one that listens everywhere is called anything, and demands tokens."""
        name = (urlsplit(f"http://{host}").hostname or "") if host.isascii() and not set(host) & set("/?#@ ") else ""
        names = {each.casefold() for each in (self.host, *self.names)}
        return bool(name) and (is_here(name) or name in names or self.host in ("0.0.0.0", "::"))


def is_here(host: str) -> bool:
    """Whether a host is this computer alone: 127.0.0.1, ::1, localhost."""
    return is_loopback(f"http://[{host}]" if ":" in host else f"http://{host}")


class DoorGuard:
    """An application behind the rules; who asks stands in the scope as `tenant`."""

    def __init__(self, app: ASGIApp, rules: GuardRules, tables: ExpertTables, *, clock: Callable[[], float] = time.monotonic):
        self._app, self._rules, self._tables, self._clock = app, rules, tables, clock
        self._recent: dict[str, deque[float]] = {}
        self._lock = threading.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refused, tenant = self._refused(scope, headers)
        if refused is not None:
            await _refuse(send, *refused, path=str(scope["path"]))
            return
        scope["tenant"] = tenant
        await self._app(scope, self._bounded(scope, receive), _with_headers(send))

    def _refused(self, scope: Scope, headers: dict[str, str]) -> tuple[tuple[int, str, str] | None, Tenant | None]:
        path, method = str(scope["path"]), str(scope["method"])
        if not self._rules.may_be_called(headers.get("host", "")):
            return (421, "wrong_host", "this server is not called that: use its own address"), None
        origin = headers.get("origin", "")
        if origin and origin.partition("://")[2] != headers.get("host", ""):
            return (403, "foreign_origin", "pages of other origins may not ask this server"), None
        if method in ("POST", "PUT", "PATCH") and headers.get("content-type", "").partition(";")[0].strip().lower() != "application/json":
            return (415, "not_json", "send a body of type application/json"), None
        if not headers.get("content-length", "0").isdigit():
            return (400, "bad_request", "Content-Length is no number"), None
        if int(headers.get("content-length", "0")) > self._rules.limits.body:
            return (413, "too_large", f"a body has {self._rules.limits.body:,} bytes at most"), None
        tenant = self._tenant(headers)
        if tenant is None and not (path in _OPEN or (method in ("GET", "HEAD") and (path == "/" or path.startswith(_PAGES[1])))):
            return (401, "no_token", "send a token of this server: Authorization: Bearer TOKEN"), None
        if tenant is not None and not self._in_time(tenant.name):
            return (429, "too_often", f"more than {self._rules.limits.requests_a_minute} requests a minute: wait"), None
        return None, tenant

    def _tenant(self, headers: dict[str, str]) -> Tenant | None:
        kind, _, token = headers.get("authorization", "").partition(" ")
        if not self._rules.tokens:
            return Tenant(LOCAL_OWNER, "admin")
        return tenant_of(self._tables, token.strip()) if kind.casefold() == "bearer" and token.strip() else None

    def _in_time(self, name: str) -> bool:
        now = self._clock()
        with self._lock:
            recent = self._recent.setdefault(name, deque())
            while recent and recent[0] < now - 60:
                recent.popleft()
            if len(recent) >= self._rules.limits.requests_a_minute:
                return False
            recent.append(now)
        return True

    def _bounded(self, scope: Scope, receive: Receive) -> Receive:
        """A body that does not say how long it is ends where it becomes too long."""
        read = 0

        async def bounded() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self._rules.limits.body:
                raise _TooLarge
            return message

        return bounded


class _TooLarge(Exception):
    """A body became longer than it may be; the application answers it."""


async def _refuse(send: Send, status: int, code: str, why: str, *, path: str) -> None:
    body = json.dumps(error_body(path, status, code, why)).encode()
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode()), *_HEADERS]
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    if status == 429:
        headers.append((b"retry-after", b"10"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


def error_body(path: str, status: int, code: str, why: str) -> dict[str, Any]:
    """An error as the protocol of a path has it."""
    if path.startswith("/v1"):
        kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
        kind = kinds.get(status, "server_error" if status >= 500 else "invalid_request_error")
        return {"error": {"message": why, "type": kind, "param": None, "code": code}}
    return {"error": {"code": code, "message": why}}


def _with_headers(send: Send) -> Send:
    async def sent(message: Message) -> None:
        if message["type"] == "http.response.start":
            message = {**message, "headers": [*message.get("headers", []), *_HEADERS]}
        await send(message)

    return sent
