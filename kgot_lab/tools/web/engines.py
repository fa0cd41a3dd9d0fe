"""Search engines behind one method: three with a key, and one without."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from html import unescape
from typing import Any, Protocol

from kgot_lab.errors import BadInput, ToolFailed, needs_extra, require_known
from kgot_lab.io.http_client import describe_proxy, is_retryable_status, proxy_options
from kgot_lab.llm.keys import remove_key
from kgot_lab.tools.web.fetching import USER_AGENT, bounded_body
from kgot_lab.types import Json

# JSON APIs with a key that no error and no repr shows.

_MAX_BYTES = 20_000_000


@dataclass(frozen=True)
class JsonApi:
    """A JSON API at an address, with a name for messages.

    `seconds` is the timeout of one request. What is sent with each request is not in the repr.
    """

    name: str
    address: str
    key: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    seconds: float = 30.0

    def get(self, parameters: Mapping[str, str | int]) -> dict[str, Json]:
        """Send a GET request and return the answer.

        Raises ToolFailed with the service's message, with `again` for rate limits, time-outs and server
        errors.
        """
        return self._request("GET", params=dict(parameters))

    def post(self, body: Mapping[str, Json]) -> dict[str, Json]:
        """Send a POST request with JSON and return the answer.

        Raises as `get` does.
        """
        return self._request("POST", json=dict(body))

    def _request(self, method: str, **content_options: Json) -> dict[str, Json]:
        with needs_extra("web", "httpx"):
            import httpx
        try:
            client_options = proxy_options(self.address)
        except BadInput as error:
            raise ToolFailed(f"{self.name} cannot be asked: {error}") from None
        headers = {"user-agent": USER_AGENT, "accept": "application/json", **self.headers}
        deadline = time.monotonic() + self.seconds
        try:  # the client's errors contain the request, and so the key
            with (
                httpx.Client(
                    headers=headers, timeout=self.seconds, follow_redirects=False, **client_options
                ) as client,
                client.stream(method, self.address, **content_options) as answer,
            ):
                content, cut = bounded_body(answer, _MAX_BYTES, deadline)
        except httpx.TimeoutException:
            raise ToolFailed(f"{self.name} did not answer within {self.seconds:g} s", again=True) from None
        except httpx.HTTPError as error:
            message = f"{self.name} cannot be reached{describe_proxy(self.address)} ({type(error).__name__}: {error})"
            raise ToolFailed(self._without_key(message), again=True) from None
        if cut:
            raise ToolFailed(
                f"{self.name} answered with more than {_MAX_BYTES // 1_000_000} MB, the most that is read"
            )
        return self._checked_value(answer.status_code, content)

    def _checked_value(self, status: int, content: bytes) -> dict[str, Json]:
        import json

        try:
            value = json.loads(content)
        except (ValueError, RecursionError):
            value = content[:300].decode("utf-8", "replace")
        if status != 200:
            again = is_retryable_status(status)
            raise ToolFailed(
                self._without_key(f"{self.name} answered HTTP {status}: {_service_message(value)}"),
                again=again,
            )
        if not isinstance(value, dict):
            raise ToolFailed(
                self._without_key(f"{self.name} did not answer with a JSON object: {str(value)[:200]!r}")
            )
        return value

    def _without_key(self, text: str) -> str:
        """Remove the key from a text, since services repeat it in their messages."""
        return re.sub(r"\s+", " ", remove_key(text, self.key))[:500]


def _service_message(value: Json) -> str:
    """Return the error message of a service.

    Services put it in `error`, `detail` or `message`, at any depth.
    """
    if isinstance(value, dict):
        for name in ("error", "detail", "message", "info"):
            if value.get(name):
                return _service_message(value[name])
    return str(value)


MAX_RESULTS = 10


@dataclass(frozen=True)
class WebHit:
    """A search result: address, title, excerpt, and the date if the engine knows it."""

    address: str
    title: str
    words: str
    date: str = ""

    def __str__(self) -> str:
        dated = f" ({self.date})" if self.date else ""
        return f"{self.title or self.address}{dated}\n  {self.address}\n  {self.words}"


class SearchEngine(Protocol):
    """A web search engine."""

    @property
    def name(self) -> str: ...

    def hits(
        self, query: str, year: int | None = None
    ) -> tuple[WebHit, ...]: ...  # best first; raises ToolFailed


class _Engine:
    name = ""

    def __repr__(self) -> str:
        return f"<engine {self.name}>"


class SerpApi(_Engine):
    """Google results from serpapi.com."""

    name = "SerpAPI"

    def __init__(self, key: str, *, address: str = "https://serpapi.com/search.json"):
        self._api, self._key = JsonApi(self.name, address, key), key

    def hits(self, query: str, year: int | None = None) -> tuple[WebHit, ...]:
        """Return the best results, optionally of one year.

        Raises ToolFailed if the service fails.
        """
        span = {"tbs": f"cdr:1,cd_min:1/1/{year},cd_max:12/31/{year}"} if year else {}
        answer = self._api.get({"engine": "google", "q": query, "api_key": self._key, **span})
        found = _parse_hits(answer.get("organic_results"), address="link", excerpt="snippet", date="date")
        if not found and answer.get("error") and "hasn't returned any results" not in str(answer["error"]):
            raise ToolFailed(f"{self.name}: {str(answer['error']).replace(self._key, '…')}", again=True)
        return found


class Tavily(_Engine):
    """Results from tavily.com."""

    name = "Tavily"

    def __init__(self, key: str, *, address: str = "https://api.tavily.com/search"):
        self._api = JsonApi(self.name, address, key, {"authorization": f"Bearer {key}"})

    def hits(self, query: str, year: int | None = None) -> tuple[WebHit, ...]:
        """Return the best results, optionally of one year.

        Raises ToolFailed if the service fails.
        """
        span = {"start_date": f"{year}-01-01", "end_date": f"{year}-12-31"} if year else {}
        answer = self._api.post({"query": query, "max_results": MAX_RESULTS, **span})
        return _parse_hits(answer.get("results"), address="url", excerpt="content", date="published_date")


class Brave(_Engine):
    """Results from Brave Search."""

    name = "Brave"

    def __init__(self, key: str, *, address: str = "https://api.search.brave.com/res/v1/web/search"):
        self._api = JsonApi(self.name, address, key, {"x-subscription-token": key})

    def hits(self, query: str, year: int | None = None) -> tuple[WebHit, ...]:
        """Return the best results, optionally of one year.

        Raises ToolFailed if the service fails.
        """
        span = {"freshness": f"{year}-01-01to{year}-12-31"} if year else {}
        # the API refuses longer queries
        answer = self._api.get({"q": " ".join(query.split()[:50])[:400], "count": MAX_RESULTS, **span})
        web = answer.get("web")
        found = web.get("results") if isinstance(web, Mapping) else None
        return _parse_hits(found, address="url", excerpt="description", date="page_age")


class Ddgs(_Engine):
    """Results from the package ddgs, which queries several public engines without a key.

    `ask` takes the query, `max_results` and `timelimit` and returns what ddgs does, which is the default.
    Raises NotInstalled without ddgs.
    """

    name = "ddgs"

    def __init__(self, *, ask: Callable[..., list[dict[str, Any]]] | None = None):
        with needs_extra("web", "ddgs"):
            import ddgs
        self._ask = ask or (lambda query, **options: ddgs.DDGS().text(query, **options))

    def hits(self, query: str, year: int | None = None) -> tuple[WebHit, ...]:
        """Return the best results.

        A year is added to the query, since not every engine behind it can filter by year. Raises ToolFailed
        if no engine answers.
        """
        from ddgs.exceptions import DDGSException

        try:
            found = self._ask(f"{query} {year}" if year else query, max_results=MAX_RESULTS)
        except DDGSException as error:
            if "No results" in str(error):
                return ()
            raise ToolFailed(
                f"{self.name} got no answer from any engine ({str(error)[:200]})", again=True
            ) from None
        return _parse_hits(found, address="href", excerpt="body", date="date")


# those with a key, which is in the environment as NAME_API_KEY
_ENGINES: Mapping[str, Callable[[str], SearchEngine]] = {"serpapi": SerpApi, "tavily": Tavily, "brave": Brave}


def check_engine_name(name: str) -> None:
    """Raise UnknownName for an unknown search engine. "" stands for any."""
    require_known("search engine", [*_ENGINES, "ddgs"], *filter(None, [name]))


def web_engine(environment: Mapping[str, str], name: str = "") -> SearchEngine:
    """Create a search engine by its name ("serpapi", "tavily", "brave", "ddgs").

    By default the first whose key is in the environment, or else ddgs. Raises UnknownName for an unknown
    name, BadInput if its key is missing, and NotInstalled without ddgs.
    """
    check_engine_name(name)
    if name == "ddgs":
        return Ddgs()
    for engine in [name] if name else _ENGINES:
        if key := environment.get(f"{engine.upper()}_API_KEY", "").strip():
            return _ENGINES[engine](key)
    if name:
        variable = f"{name.upper()}_API_KEY"
        raise BadInput(f"the search engine {name} needs a key: set the environment variable {variable}")
    return Ddgs()


def _parse_hits(results: Json, *, address: str, excerpt: str, date: str) -> tuple[WebHit, ...]:
    """Return the usable results of a service.

    No structure is assumed, since services send odd results.
    """
    listed: Iterable[Json] = results if isinstance(results, list) else ()
    entries = [entry for entry in listed if isinstance(entry, Mapping)]
    usable = [entry for entry in entries if str(entry.get(address)).startswith(("http://", "https://"))]
    return tuple(
        WebHit(str(entry[address]), *(_plain(entry.get(name)) for name in ("title", excerpt, date)))
        for entry in usable[:MAX_RESULTS]
    )


def _plain(text: Json) -> str:
    """Return a text of a result on one line, without highlighting markup."""
    return " ".join(unescape(re.sub(r"</?(?:strong|b|em)>", "", str(text or ""))).split())[:1000]
