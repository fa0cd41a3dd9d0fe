"""Asking a service for JSON, with a key that no error and no repr shows."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import quote, quote_plus

from kgot_lab.errors import BadInput, NotInstalled, ToolFailed
from kgot_lab.io.http_client import through_proxy, way_to
from kgot_lab.tools.web.fetching import USER_AGENT, bounded_body
from kgot_lab.types import Json

_MOST_BYTES = 20_000_000


@dataclass(frozen=True)
class JsonApi:
    """A service at an address, named for messages; `seconds` is for one request, and what goes out with each
    stays out of the repr.
    """

    name: str
    address: str
    key: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    seconds: float = 30.0

    def get(self, parameters: Mapping[str, str | int]) -> dict[str, Json]:
        """The answer to a GET; raises ToolFailed with the service's own words, `again` for rate limits,
        time-outs and its own faults.
        """
        return self._asked("GET", params=dict(parameters))

    def post(self, body: Mapping[str, Json]) -> dict[str, Json]:
        """The answer to a POST of JSON; raises as `get` does."""
        return self._asked("POST", json=dict(body))

    def _asked(self, method: str, **what: Json) -> dict[str, Json]:
        try:
            import httpx
        except ImportError:
            raise NotInstalled("web", "httpx") from None
        try:
            way = way_to(self.address)
        except BadInput as error:
            raise ToolFailed(f"{self.name} cannot be asked: {error}") from None
        headers = {"user-agent": USER_AGENT, "accept": "application/json", **self.headers}
        deadline = time.monotonic() + self.seconds
        try:  # the client's errors hold the request, and the request the key
            with (
                httpx.Client(headers=headers, timeout=self.seconds, follow_redirects=False, **way) as client,
                client.stream(method, self.address, **what) as answer,
            ):
                content, cut = bounded_body(answer, _MOST_BYTES, deadline)
        except httpx.TimeoutException:
            raise ToolFailed(f"{self.name} did not answer within {self.seconds:g} s", again=True) from None
        except httpx.HTTPError as error:
            told = f"{self.name} cannot be reached{through_proxy(self.address)} ({type(error).__name__}: {error})"
            raise ToolFailed(self._keyless(told), again=True) from None
        if cut:
            raise ToolFailed(
                f"{self.name} answered with more than {_MOST_BYTES // 1_000_000} MB, the most that is read"
            )
        return self._value(answer.status_code, content)

    def _value(self, status: int, content: bytes) -> dict[str, Json]:
        import json

        try:
            value = json.loads(content)
        except (ValueError, RecursionError):
            value = content[:300].decode("utf-8", "replace")
        if status != 200:
            again = status in (408, 425, 429) or status >= 500
            raise ToolFailed(
                self._keyless(f"{self.name} answered HTTP {status}: {_told(value)}"), again=again
            )
        if not isinstance(value, dict):
            raise ToolFailed(
                self._keyless(f"{self.name} did not answer with a JSON object: {str(value)[:200]!r}")
            )
        return value

    def _keyless(self, text: str) -> str:
        """A text without the key, spelt as it is or as in an address; services repeat it in their messages."""
        if len(self.key) > 3:
            for spelling in {self.key, quote(self.key), quote(self.key, safe=""), quote_plus(self.key)}:
                text = text.replace(spelling, "…")
        return re.sub(r"\s+", " ", text)[:500]


def _told(value: Json) -> str:
    """What a service says went wrong: services put it in `error`, `detail` or `message`, at any depth."""
    if isinstance(value, dict):
        for name in ("error", "detail", "message", "info"):
            if value.get(name):
                return _told(value[name])
    return str(value)
