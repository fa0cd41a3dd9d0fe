"""Polite fetching: robots.txt is respected, and redirects, bytes and seconds are limited."""

from __future__ import annotations

import ipaddress
import random
import re
import socket
import time
import weakref
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import TYPE_CHECKING, Any

from kgot_lab import __version__
from kgot_lab.arguments import POSITIVE, CheckedRecord, bounded
from kgot_lab.errors import NotInstalled, ToolFailed, needs_extra, short_repr
from kgot_lab.io.http_client import is_retryable_status
from kgot_lab.llm.capabilities import requested_wait

if TYPE_CHECKING:
    import httpx

# Permitted addresses: the public web by http and https, and private ones only if listed.

_PORTS = {"http": 80, "https": 443}
# IPv6 addresses with an IPv4 address in their last 32 bits
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


@dataclass(frozen=True)
class Destination:
    """A permitted address, and the IP address to connect to, resolved once so that it cannot change later."""

    url: httpx.URL
    ip: str


def destination(address: str, private_hosts: Collection[str] = ()) -> Destination:
    """Resolve an address.

    `private_hosts` are the "host:port" that may be reached although they are private. Raises ToolFailed for
    an address that is not http or https, contains a password, has an unknown host, or leads to a private,
    loopback or link-local computer. Raises NotInstalled without httpx.
    """
    with needs_extra("web", "httpx"):
        import httpx
    try:
        url = httpx.URL(address.strip())
    except (httpx.InvalidURL, ValueError) as error:
        raise ToolFailed(f"{short_repr(address)} is not an address: {error}") from None
    if url.scheme not in _PORTS or not url.host:
        raise ToolFailed(f"only http and https addresses can be visited, not {short_repr(address)}")
    if url.userinfo:
        raise ToolFailed("an address with a user name or password in it is not visited")
    port = url.port or _PORTS[url.scheme]
    addresses = _resolve(url.host, port)
    if f"{url.host}:{port}" not in private_hosts and not all(map(is_public, addresses)):
        problem = f"{url.host}:{port} is a private address, which is not visited"
        raise ToolFailed(f"{problem}; only the public web is")
    return Destination(url, addresses[0])


def is_public(number: str) -> bool:
    """Return whether an IP address is public, including any IPv4 address inside an IPv6 address."""
    try:
        ip = ipaddress.ip_address(number.partition("%")[0])
    except ValueError:
        return False
    if isinstance(ip, ipaddress.IPv6Address):
        embedded_addresses = [ip.ipv4_mapped, ip.sixtofour, *(ip.teredo or ())]
        embedded_addresses += [ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)] if ip in _NAT64 else []
        if not all(embedded.is_global for embedded in embedded_addresses if embedded is not None):
            return False
    return ip.is_global and not ip.is_multicast


def _resolve(host: str, port: int) -> list[str]:
    try:
        entries = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        is_temporary = isinstance(error, socket.gaierror) and error.errno == socket.EAI_AGAIN
        raise ToolFailed(
            f"there is no computer called {short_repr(host)}, or its name cannot be looked up now",
            again=is_temporary,
        ) from None
    return list(dict.fromkeys(str(entry[4][0]) for entry in entries))


USER_AGENT = f"kgot_lab/{__version__}"
_ROBOTS_BYTES = 512_000  # RFC 9309 requires at least 500 KiB
_REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(frozen=True)
class FetchSettings(CheckedRecord):
    """Settings of requests. `user_agent` should contain a contact if many pages are fetched."""

    user_agent: str = USER_AGENT
    seconds: float = bounded(20.0, POSITIVE)  # for one page, including redirects
    most_bytes: int = bounded(5_000_000, 1)
    redirects: int = 5
    attempts: int = bounded(3, 1)
    longest_wait: float = 5.0  # seconds between attempts; if a server requests more, the fetch fails
    # "host:port" that are allowed although private, such as a local mirror
    private_hosts: Collection[str] = frozenset()


@dataclass(frozen=True)
class Fetched:
    """A server's response: final address, content type, charset, bytes, and whether it was truncated."""

    address: str
    kind: str
    charset: str
    data: bytes
    cut: bool = False


@dataclass(frozen=True)
class _Answer:
    """A raw response of a server."""

    status: int
    headers: Mapping[str, str]
    data: bytes
    cut: bool


class WebFetcher:
    """Fetches pages that robots.txt allows. `sleep` waits between attempts.

    Raises NotInstalled without httpx or Protego.
    """

    def __init__(
        self, manners: FetchSettings = FetchSettings(), *, sleep: Callable[[float], None] = time.sleep
    ):
        try:
            import httpx
            import protego  # noqa: F401
        except ImportError as error:
            raise NotInstalled("web", str(error.name)) from None
        self.manners = manners
        self._sleep = sleep
        self._robots: dict[str, Any] = {}  # origin -> rules of its robots.txt
        # no proxies from the environment: a proxy would resolve names again, and could reach private
        # addresses
        # connections are not reused, since two host names may share an IP address
        no_reuse = httpx.Limits(max_keepalive_connections=0)
        # no cookies: they would be stored by IP address, and so be sent to another host
        no_cookies = CookieJar(DefaultCookiePolicy(allowed_domains=[]))
        self._client = httpx.Client(
            trust_env=False, verify=httpx.create_ssl_context(), limits=no_reuse, cookies=no_cookies
        )
        self._closing = weakref.finalize(self, self._client.close)

    def fetch(self, address: str) -> Fetched:
        """Fetch an address.

        Raises ToolFailed with the reason if it fails, with `again` if a retry may work.
        """
        for attempt in range(1, self.manners.attempts + 1):
            try:
                return self._follow_redirects(address, obey=True, max_bytes=self.manners.most_bytes)
            except _TransientFailure as error:
                usual = 0.5 * 2 ** (attempt - 1) * random.uniform(0.5, 1.0)
                wait = usual if error.wait is None else error.wait
                if attempt == self.manners.attempts or wait > self.manners.longest_wait:
                    raise ToolFailed(str(error), again=True) from None
                self._sleep(wait)
        raise AssertionError("unreachable")

    def close(self) -> None:
        """Close the connections. They are also closed with the last reference to this object."""
        self._closing()

    def _follow_redirects(self, address: str, *, obey: bool, max_bytes: int) -> Fetched:
        deadline = time.monotonic() + self.manners.seconds
        for _ in range(self.manners.redirects + 1):
            target = destination(address, self.manners.private_hosts)  # again at each redirect
            if obey and not self._is_allowed(target.url):
                problem = f"the robots.txt of {target.url.host} asks programs not to visit {target.url.path}"
                raise ToolFailed(f"{problem}; look elsewhere")
            answer = self._request(target, max_bytes, deadline)
            if answer.status not in _REDIRECTS or "location" not in answer.headers:
                return _checked_answer(str(target.url), answer)
            address = str(target.url.join(answer.headers["location"]))
        raise ToolFailed(f"{target.url.host} redirects more than {self.manners.redirects} times")

    def _is_allowed(self, url: httpx.URL) -> bool:
        """Return whether robots.txt allows an address.

        Without one everything is allowed. If the server fails, nothing is (RFC 9309).
        """
        from protego import Protego

        origin = f"{url.scheme}://{url.netloc.decode()}"
        if origin not in self._robots:
            try:
                file = self._follow_redirects(f"{origin}/robots.txt", obey=False, max_bytes=_ROBOTS_BYTES)
                rules = file.data.decode("utf-8", "replace")
            except _TransientFailure:
                raise  # it is retried, and nothing is cached
            except ToolFailed:
                rules = ""
            self._robots[origin] = Protego.parse(rules)
        return bool(self._robots[origin].can_fetch(str(url), self.manners.user_agent))

    def _request(self, target: Destination, max_bytes: int, deadline: float) -> _Answer:
        """Send one request to the resolved IP address, with the original host name."""
        import httpx

        headers = {
            "host": target.url.netloc.decode(),
            "user-agent": self.manners.user_agent,
            "accept": "text/html,application/xhtml+xml,application/pdf,text/*;q=0.9,*/*;q=0.5",
            "accept-encoding": "gzip, deflate",
        }
        tls_options = {"sni_hostname": target.url.host}
        seconds_left = max(0.01, deadline - time.monotonic())
        try:
            url = target.url.copy_with(host=target.ip)
            with self._client.stream(
                "GET",
                url,
                headers=headers,
                extensions=tls_options,
                timeout=seconds_left,
                follow_redirects=False,
            ) as response:
                length = response.headers.get("content-length", "")
                declared_size = int(length) if length.isdigit() else 0
                if declared_size > max_bytes and not _is_text(response.headers.get("content-type", "")):
                    problem = f"{target.url.host} has a file of {declared_size / 1e6:,.0f} MB there"
                    raise ToolFailed(f"{problem}; the most is {max_bytes / 1e6:,.1f} MB")
                return _Answer(
                    response.status_code, response.headers, *bounded_body(response, max_bytes, deadline)
                )
        except httpx.TimeoutException:
            raise _TransientFailure(
                f"{target.url.host} did not answer within {self.manners.seconds:g} s"
            ) from None
        except httpx.HTTPError as error:
            problem = f"the connection to {target.url.host} broke ({type(error).__name__}"
            raise _TransientFailure(f"{problem}: {str(error)[:200]})") from None

    def __repr__(self) -> str:
        return f"<web as {self.manners.user_agent}>"


class _TransientFailure(ToolFailed):
    """A transient failure. `wait` is the delay that the server requested, in seconds."""

    def __init__(self, message: str, wait: float | None = None):
        super().__init__(message, again=True)
        self.wait = wait


def bounded_body(response: httpx.Response, max_bytes: int, deadline: float) -> tuple[bytes, bool]:
    """Read a body up to `most` bytes, and return it with whether there was more.

    Raises httpx.ReadTimeout if it is still arriving at the deadline.
    """
    import httpx

    data = bytearray()
    for chunk in response.iter_bytes(65_536):
        data += chunk
        if len(data) > max_bytes:
            return bytes(data[:max_bytes]), True
        if time.monotonic() > deadline:
            raise httpx.ReadTimeout("the page trickles in too slowly")
    return bytes(data), False


def _checked_answer(address: str, answer: _Answer) -> Fetched:
    if is_retryable_status(answer.status):
        raise _TransientFailure(f"HTTP {answer.status} from {address}", requested_wait(answer.headers))
    if answer.status in (404, 410):
        raise ToolFailed(f"HTTP {answer.status}: there is no page at {address}")
    if answer.status != 200:
        raise ToolFailed(f"HTTP {answer.status} from {address}: the page cannot be had")
    kind, _, options = answer.headers.get("content-type", "").partition(";")
    charset = re.search(r"charset\s*=\s*\"?([\w.:-]+)", options, re.IGNORECASE)
    if answer.cut and not _is_text(kind):
        raise ToolFailed(
            f"the file at {address} is larger than {len(answer.data) / 1e6:,.1f} MB, the most that is read"
        )
    return Fetched(address, kind.strip().lower(), charset[1] if charset else "", answer.data, answer.cut)


def _is_text(kind: str) -> bool:
    """Return whether a truncated body of this kind can be read."""
    return (
        kind.strip().lower().startswith(("text/", "application/xhtml", "application/json", "application/xml"))
    )
