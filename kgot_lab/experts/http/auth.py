"""Authentication and limits before all protocols: who asks, from where, how much and how often.

On loopback, everybody who reaches the port is the user of this computer. Requests that a web page could send
from their browser are therefore refused: a foreign Host, a foreign Origin, a body that is no JSON. Off
loopback, a token is required. There is no CORS header.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse

from kgot_lab.arguments import POSITIVE, CheckedRecord, bounded, distinct_fields
from kgot_lab.errors import BadInput, LabError
from kgot_lab.experts.error_messages import SERVER_FAILED, failure_message, format_for_log, log
from kgot_lab.experts.federation.delegation import ASK_PATH, CAPABILITIES_PATH
from kgot_lab.experts.http.tokens import Tenant
from kgot_lab.experts.service import LOCAL_OWNER
from kgot_lab.io.http_client import is_loopback
from kgot_lab.kgos.query.mcp_server import replay_body

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

# The body of a request, read completely before any protocol sees it, with limits on bytes and time, with or
# without Content-Length.


class RequestRefused(Exception):
    """A request that is refused before any protocol sees it.

    It has a status, a code, and a message that says what to do.
    """

    def __init__(self, status: int, code: str, why: str):
        super().__init__(why)
        self.status, self.code, self.why = status, code, why


async def read_body(receive: Receive, max_bytes: int, seconds: float) -> bytes | None:
    """Read a request body of at most `max_bytes` bytes.

    Returns None if the client disconnects before the end. Raises RequestRefused with status 413 if the body
    is too large, or 408 if it is not complete after `seconds`.
    """
    body = bytearray()
    try:
        async with asyncio.timeout(seconds):
            async for part in Request({"type": "http"}, receive).stream():
                body += part
                if len(body) > max_bytes:
                    raise RequestRefused(413, "too_large", f"a body has {max_bytes:,} bytes at most")
            return bytes(body)
    except ClientDisconnect:
        return None
    except TimeoutError:
        why = f"the body was not here within {seconds:g} seconds: send it again"
        raise RequestRefused(408, "too_slow", why) from None


def _refuse_repeated_keys(body: bytes) -> None:
    """Raise RequestRefused if an object in a body of JSON has a key twice. What is no JSON is refused later."""
    try:
        json.loads(body, object_pairs_hook=distinct_fields, parse_int=str)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        return
    except ValueError as error:
        raise RequestRefused(422, "bad_input", f"the body: {error}") from None


OLLAMA_PATHS = ("/api/chat", "/api/generate", "/api/show", "/api/tags", "/api/version")
UPLOAD_PATH = "/api/uploads/"
# these need no token: the last two accept only signed messages
_OPEN_PATHS = ("/health", ASK_PATH, CAPABILITIES_PATH)
_PAGE_PATHS = ("/", "/pages/")  # contain no user data, and a browser sends no token for them
_POLICY = (
    b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; base-uri 'none'; "
    b"form-action 'none'; frame-ancestors 'none'"
)
_SECURITY_HEADERS = (
    (b"content-security-policy", _POLICY),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-resource-policy", b"same-origin"),
)
_STATUS_HEADERS: Mapping[int, Mapping[str, str]] = {
    401: {"www-authenticate": "Bearer"},
    408: {"connection": "close"},  # the rest of the body is not read
    429: {"retry-after": "10"},
    503: {"retry-after": "5"},
}


@dataclass(frozen=True)
class GuardLimits(CheckedRecord):
    """Limits on size and rate of requests. The rate is per tenant, streams are counted over all tenants."""

    body: int = bounded(2_000_000, 1)  # bytes
    uploaded_file: int = bounded(50_000_000, 1)  # bytes
    requests_a_minute: int = bounded(1200, 1)
    streams: int = bounded(200, 1)
    answer_seconds: float = bounded(600.0, POSITIVE)
    send_seconds: float = bounded(30.0, POSITIVE)  # time limit for the body


@dataclass(frozen=True)
class GuardRules(CheckedRecord):
    """Where a server is reachable: its host, whether a token is required, and its limits.

    Raises BadInput off loopback without tokens.
    """

    host: str = "127.0.0.1"
    tokens: bool = False
    limits: GuardLimits = GuardLimits()
    names: tuple[str, ...] = ()  # further host names, behind a proxy
    uploads: bool = False  # whether an admin may upload graphs

    def __post_init__(self) -> None:
        super().__post_init__()
        if not self.tokens and not is_local_host(self.host):
            advice = "make one with kgot-lab serve --new-token NAME"
            raise BadInput(f"a server that others reach ({self.host}) demands tokens: {advice}")

    def accepts_host(self, host: str) -> bool:
        """Return whether a Host header names this server.

        A server that listens on all addresses accepts every name, because it requires tokens.
        """
        try:
            name = ""
            if host.isascii() and not set(host) & set("/?#@ "):
                name = urlsplit(f"http://{host}").hostname or ""
        except ValueError:  # brackets without an address
            return False
        names = {each.casefold() for each in (self.host, *self.names)}
        return bool(name) and (is_local_host(name) or name in names or self.host in ("0.0.0.0", "::"))


def is_local_host(host: str) -> bool:
    """Return whether a host is this computer only: 127.0.0.1, ::1, localhost."""
    return is_loopback(f"http://[{host}]" if ":" in host else f"http://{host}")


_TenantOf = Callable[[str], Tenant | None]


class AuthMiddleware:
    """An application behind the rules. The tenant is in the scope as `tenant`.

    `tenant_of` returns the tenant of a token. It is not called if the rules require no token.
    """

    def __init__(self, app: ASGIApp, rules: GuardRules, tenant_of: _TenantOf = lambda token: None):
        self._app, self._rules, self._tenant_of = app, rules, tenant_of
        self._recent: dict[str, deque[float]] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        limits, sender = self._rules.limits, _HeaderSender(send)
        try:
            scope["tenant"] = await self._admit(scope)
            most = limits.uploaded_file if self._is_upload(scope) else limits.body
            body = await read_body(receive, most, limits.send_seconds)
            if body is not None:
                _refuse_repeated_keys(body)
                await self._app(scope, replay_body(body, receive), sender)
        except RequestRefused as refusal:
            await _refuse(scope, receive, sender, refusal)
        # the server is shutting down; a response cut off in the middle shows that it is incomplete
        except asyncio.CancelledError:
            if not sender.begun:
                ending = RequestRefused(503, "ending", "this server is ending: ask again once it is back")
                await _refuse(scope, receive, sender, ending)
        except Exception as error:  # logged here, because a server would log a trace with any content
            log.error("%s: %s", type(error).__name__, format_for_log(error))
            if not sender.begun:
                await _refuse(scope, receive, sender, RequestRefused(500, "failed", SERVER_FAILED))

    async def _admit(self, scope: Scope) -> Tenant | None:
        """Check a request and return its tenant, or None for a page, which needs no tenant.

        Raises RequestRefused if the request is not allowed.
        """
        headers = Headers(scope=scope)
        path, method, limits = str(scope["path"]), str(scope["method"]), self._rules.limits
        form, most = "application/json", limits.body
        if self._is_upload(scope):
            form, most = "application/octet-stream", limits.uploaded_file
        if not self._rules.accepts_host(headers.get("host", "")):
            raise RequestRefused(421, "wrong_host", "this server is not called that: use its own address")
        if "\x00" in path:  # no database can search for it
            raise RequestRefused(404, "not_there", "there is no such place")
        origin = headers.get("origin", "")
        if origin and origin.partition("://")[2] != headers.get("host", ""):
            raise RequestRefused(403, "foreign_origin", "pages of other origins may not ask this server")
        length = headers.get("content-length", "0")
        content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
        has_body = "transfer-encoding" in headers or "content-type" in headers
        is_empty = length.strip("0") == "" and not has_body
        if method in ("POST", "PUT", "PATCH") and content_type != form and not is_empty:
            raise RequestRefused(415, "not_json", f"send a body of type {form}")
        if not (length.isascii() and length.isdigit()):
            raise RequestRefused(400, "bad_request", "Content-Length is no number")
        if len(length) > 18 or int(length) > most:
            raise RequestRefused(413, "too_large", f"a body has {most:,} bytes at most")
        tenant = await self._authenticate(headers)
        is_page = method in ("GET", "HEAD") and (path == "/" or path.startswith(_PAGE_PATHS[1]))
        if tenant is None and path not in _OPEN_PATHS and not is_page:
            raise RequestRefused(401, "no_token", "send a token of this server: Authorization: Bearer TOKEN")
        if self._is_upload(scope):
            if tenant is not None and tenant.role != "admin":
                raise RequestRefused(
                    403, "forbidden", "only an admin uploads graphs: ask for a token of that role"
                )
        elif tenant is not None and path != "/health" and not self._is_within_rate(tenant.name):
            too_many = f"more than {limits.requests_a_minute} requests a minute: wait"
            raise RequestRefused(429, "too_often", too_many)
        user = unquote(headers.get("x-user", ""))
        try:
            return tenant.as_user(user) if tenant is not None and user else tenant
        except BadInput as error:
            raise RequestRefused(400, "bad_request", f"X-User: {error}") from None

    def _is_upload(self, scope: Scope) -> bool:
        """Return whether a request is a file of an upload, which no form of a web page can send."""
        return self._rules.uploads and scope["method"] == "PUT" and scope["path"].startswith(UPLOAD_PATH)

    async def _authenticate(self, headers: Headers) -> Tenant | None:
        if not self._rules.tokens:
            return Tenant(LOCAL_OWNER, "admin")
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.casefold() != "bearer" or not token.strip():
            return None
        try:
            return await run_in_threadpool(self._tenant_of, token.strip())
        except LabError as error:
            raise RequestRefused(503, "store_away", failure_message(error)) from None

    def _is_within_rate(self, name: str) -> bool:
        now, recent = time.monotonic(), self._recent.setdefault(name, deque())
        while recent and recent[0] < now - 60:
            recent.popleft()
        if is_within := len(recent) < self._rules.limits.requests_a_minute:
            recent.append(now)
        return is_within


class _HeaderSender:
    """A send function that adds the headers of every response. `begun` is True once anything was sent."""

    def __init__(self, send: Send):
        self._send, self.begun = send, False

    async def __call__(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.begun = True
            message = {**message, "headers": [*message.get("headers", []), *_SECURITY_HEADERS]}
        await self._send(message)


async def _refuse(scope: Scope, receive: Receive, send: Send, refusal: RequestRefused) -> None:
    body = error_body(str(scope["path"]), refusal.status, refusal.code, refusal.why)
    await JSONResponse(body, refusal.status, _STATUS_HEADERS.get(refusal.status))(scope, receive, send)


def error_body(path: str, status: int, code: str, why: str) -> dict[str, Any]:
    """Build the JSON body of an error in the format of the protocol that a path belongs to."""
    if path in OLLAMA_PATHS:
        return {"error": why}
    if path.startswith("/v1"):
        kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
        kind = kinds.get(status, "server_error" if status >= 500 else "invalid_request_error")
        return {"error": {"message": why, "type": kind, "param": None, "code": code}}
    return {"error": {"code": code, "message": why}}
