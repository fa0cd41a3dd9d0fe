"""A real web site on loopback, with everything that makes the web hard to read."""

from __future__ import annotations

import gzip
import json
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qs, urlsplit

from support.loopback import QuietHandler, serving


@dataclass(frozen=True)
class Sent:
    """What the site answers: a body (a value that is no text or bytes is sent as JSON), its kind, a status
    and more headers.
    """

    body: Any = ""
    kind: str = "text/html; charset=utf-8"
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    endless: bool = False  # the body is sent over and over until the reader hangs up


@dataclass(frozen=True)
class Seen:
    """A request that the site got."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: Any = None


def redirect(to: str, status: int = 302) -> Sent:
    """A redirect to an address, which may be relative."""
    return Sent("", status=status, headers={"location": to})


Page = Sent | str | bytes | Callable[[Seen], Sent]


@dataclass
class Site:
    """Its address, host and port, its pages by path, and the requests it has seen."""

    url: str
    pages: dict[str, Page]
    seen: list[Seen] = field(default_factory=list)
    closing: threading.Event = field(default_factory=threading.Event)

    @property
    def host(self) -> str:
        return urlsplit(self.url).netloc

    @property
    def visits(self) -> Counter[str]:
        return Counter(request.path for request in self.seen)

    def answer(self, request: Seen) -> Sent:
        page = self.pages.get(request.path, Sent("<h1>Not here</h1>", status=404))
        sent = page(request) if callable(page) else page
        return sent if isinstance(sent, Sent) else Sent(sent)


@contextmanager
def web_site(pages: Mapping[str, Page]) -> Iterator[Site]:
    """Serve these pages on a free port of the loopback; whatever else is asked for is 404."""
    site = Site("", dict(pages))

    class Handler(QuietHandler, BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._serve(None)

        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers.get("content-length") or 0))
            self._serve(json.loads(raw) if "json" in self.headers.get("content-type", "") else raw)

        def _serve(self, body: Any) -> None:
            parts = urlsplit(self.path)
            query = {name: values[0] for name, values in parse_qs(parts.query).items()}
            headers = {name.lower(): value for name, value in self.headers.items()}
            request = Seen(self.command, parts.path, query, headers, body)
            site.seen.append(request)
            self.close_connection = True
            self._send(site.answer(request))

        def _send(self, sent: Sent) -> None:
            text_or_bytes = isinstance(sent.body, str | bytes)
            kind = sent.kind if text_or_bytes else "application/json"
            body = sent.body if text_or_bytes else json.dumps(sent.body)
            body = body.encode() if isinstance(body, str) else body
            own = {"connection": "close"} | ({} if sent.endless else {"content-length": str(len(body))})
            self.respond(sent.status, body, {"content-type": kind, **own, **sent.headers})
            while sent.endless and not site.closing.is_set():
                self.wfile.write(body)
                self.wfile.flush()

    with serving(Handler) as site.url:
        try:
            yield site
        finally:
            site.closing.set()


def zipped_page(text: str) -> Sent:
    """A page that is sent packed."""
    return Sent(gzip.compress(text.encode()), headers={"content-encoding": "gzip"})
