"""HTTP requests with limits of time and size, through the proxy that the environment names."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import ssl
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from kgot_lab.errors import BadInput
from kgot_lab.io.processes import watchdog

MAX_BODY_BYTES = 16_000_000  # of a body after decompression; a long reply has a few hundred thousand
MAX_CONTAINERS = 100_000  # objects and lists in a body, which cost far more than their bytes
STREAM_SIZE_FACTOR = 4  # times as many bytes may come piece by piece, since each word has a wrapping of its own and none is kept
_REDIRECTS = 5
# or one without an end, which would be looked at from each quote in it
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)
# headers that describe the transport of a body
_TRANSPORT_HEADERS = {"content-encoding", "content-length", "transfer-encoding"}


_RETRYABLE_STATUSES = {408, 409, 425, 429}  # below 500: time-out, conflict, too early, rate limit


def is_retryable_status(status: int) -> bool:
    """Return whether a request that was answered with an HTTP status may succeed if it is sent again."""
    return status in _RETRYABLE_STATUSES or status >= 500


class UnusableBody(Exception):
    """The body of a response is too long, or compressed in a way that cannot be decompressed."""


def client_library() -> Any:
    """Import the HTTP library of `openai`: httpx, or its replacement.

    A bounded client raises the errors of this library.
    """
    import openai

    return import_module(openai.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])


def bounded_client(
    seconds: float, max_bytes: int = MAX_BODY_BYTES, *, redirects: int = _REDIRECTS, **client_options: Any
) -> Any:
    """Create an HTTP client for `openai` that limits the total time and size of every exchange.

    An exchange takes at most `seconds` and returns at most `max_bytes` bytes. A request with a shorter timeout of
    its own keeps it. `client_options` is the result of `proxy_options` for its address. With no `redirects`, a redirect is
    returned like any other response. One to another server is refused, since that would get the request and key.
    Raises what its library raises, its ReadTimeout when the time is over,
    and UnusableBody if a body is too large. A streamed response raises them where it is read. Its time
    includes that of its reader, and it may be `STREAM_SIZE_FACTOR` times as long.
    """
    import openai

    library = client_library()

    class BoundedClient(openai.DefaultHttpxClient):  # type: ignore[misc, unused-ignore]
        """Reads responses itself, to limit their time and size.

        Each exchange has its own connection, which can be closed without affecting others.
        """

        def __init__(self) -> None:
            super().__init__(limits=library.Limits(max_keepalive_connections=0), **client_options)

        def send(self, request: Any, *, stream: bool = False, **options: Any) -> Any:
            sockets: list[socket.socket] = []
            request.headers["accept-encoding"] = "gzip, deflate"
            request_timeout = (request.extensions.get("timeout") or {}).get("read") or seconds
            with ExitStack() as exchange:
                timed_out = exchange.enter_context(_socket_watchdog(sockets, min(seconds, request_timeout)))
                with _enforce_deadline(timed_out, request):
                    response = self._follow_redirects(
                        request,
                        lambda name, info: _record_connection(name, info, sockets, timed_out),
                        options,
                    )
                    exchange.callback(response.close)
                    items = response.headers.multi_items()
                    passed_on = [header for header in items if header[0] not in _TRANSPORT_HEADERS]
                    about = {"headers": passed_on, "request": response.request}
                    limit = max_bytes * STREAM_SIZE_FACTOR if stream else max_bytes
                    pieces = unpacked_body(response, limit)
                    if not stream:
                        data = b"".join(pieces)
                        require_few_containers(data)
                        return library.Response(response.status_code, content=data, **about)
                body = StreamedBody(pieces, timed_out, request, exchange.pop_all())
            return library.Response(response.status_code, stream=body, **about)

        def _follow_redirects(
            self, request: Any, note: Callable[[str, Mapping[str, Any]], None], options: dict[str, Any]
        ) -> Any:
            for _ in range(redirects + 1):
                request.extensions = {**request.extensions, "trace": note}
                response = super().send(request, stream=True, **{**options, "follow_redirects": False})
                if response.next_request is None or not redirects:
                    return response
                response.close()
                other, here = response.next_request.url, request.url
                if other.host != here.host or (other.port != here.port and other.scheme == here.scheme):
                    place = f"{other.scheme}://{other.host[:200]}"
                    raise UnusableBody(f"it redirects to {place}, which gets neither the request nor the key")
                request = response.next_request
            raise UnusableBody(f"the server redirects more than {redirects} times")

    class StreamedBody(library.SyncByteStream):  # type: ignore[misc, name-defined, unused-ignore]
        """The body of a response as it arrives.

        Closing it ends the exchange and its connection.
        """

        def __init__(
            self, pieces: Iterator[bytes], timed_out: threading.Event, request: Any, exchange: ExitStack
        ) -> None:
            self._pieces, self._late, self._request, self._exchange = pieces, timed_out, request, exchange

        def __iter__(self) -> Iterator[bytes]:
            with _enforce_deadline(self._late, self._request):
                yield from self._pieces

        def close(self) -> None:
            self._exchange.close()

    return BoundedClient()


def unpacked_body(response: Any, max_bytes: int) -> Iterator[bytes]:
    """Yield the bytes of a response as they arrive, unpacked if it is gzip or deflate.

    Raises UnusableBody as soon as there are more than `max_bytes`.
    """
    packing = response.headers.get("content-encoding", "").strip().lower()
    if packing not in ("", "identity", "gzip", "deflate"):
        raise UnusableBody(f"the answer is packed as {packing[:40]!r}, which was not asked for")
    size = 0
    try:
        for piece in response.iter_bytes():
            size += len(piece)
            if size > max_bytes:
                raise UnusableBody(f"the answer is larger than {max_bytes / 1e6:,.0f} MB")
            yield piece
    except client_library().DecodingError as error:
        raise UnusableBody(f"the answer cannot be unpacked ({error})") from None


def body_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a body as they arrive, without line ends, and the text after the last line end.

    Raises UnusableBody if a line is too long or contains too many objects.
    """
    buffer = bytearray()
    for piece in pieces:
        seen = len(buffer)
        buffer += piece
        if b"\n" in piece:
            end = buffer.rfind(b"\n", seen) + 1
            # of bytes, only ends of lines are separators
            yield from map(_checked_line, buffer[:end].splitlines())
            del buffer[:end]
        if len(buffer) > MAX_BODY_BYTES:
            raise UnusableBody(f"a line of the answer is longer than {MAX_BODY_BYTES / 1e6:,.0f} MB")
    if buffer:
        yield _checked_line(buffer)


def _checked_line(line: bytearray) -> bytes:
    require_few_containers(line)
    return bytes(line)


def require_few_containers(data: bytes | bytearray) -> None:
    """Raise UnusableBody for JSON that contains too many objects and lists."""
    if (
        _count_containers(data) > MAX_CONTAINERS
        and _count_containers(_STRING.sub(b"", data)) > MAX_CONTAINERS
    ):
        raise UnusableBody(f"the answer holds more than {MAX_CONTAINERS:,} objects and lists")


def _count_containers(data: bytes | bytearray) -> int:
    return data.count(b"{") + data.count(b"[")


@contextmanager
def _enforce_deadline(timed_out: threading.Event, request: Any) -> Iterator[None]:
    """Raise a timeout error if the exchange ran out of time, whether it failed or seems complete."""
    library, failure = client_library(), None
    try:
        yield
    except (library.RequestError, UnusableBody) as error:
        failure = error
    # nothing was sent, or may be charged
    if timed_out.is_set() and isinstance(failure, library.ConnectError | library.ConnectTimeout):
        raise library.ConnectTimeout("there was no connection in time", request=request) from failure
    if timed_out.is_set():  # also if the end of the connection was taken for that of the body
        raise library.ReadTimeout("the answer was not complete in time", request=request) from failure
    if failure is not None:
        raise failure


def _record_connection(
    name: str, info: Mapping[str, Any], sockets: list[socket.socket], timed_out: threading.Event
) -> None:
    """Record the connection of an exchange.

    It is a duplicate of the socket, which stays valid when TLS takes over the first.
    """
    if name.endswith(".connect_tcp.complete"):
        sockets.append(info["return_value"].get_extra_info("socket").dup())
        if timed_out.is_set():  # the deadline passed before there was a connection to break
            _shut_down(sockets)


def _shut_down(sockets: Iterable[socket.socket]) -> None:
    for open_socket in sockets:
        with suppress(OSError):  # it may be gone
            open_socket.shutdown(socket.SHUT_RDWR)


@contextmanager
def _socket_watchdog(sockets: list[socket.socket], seconds: float) -> Iterator[threading.Event]:
    """Break the connections of an exchange that takes longer than `seconds`, and close them in any case.

    The event is set if they were broken.
    """

    try:
        with watchdog(seconds, lambda: _shut_down(list(sockets))) as timed_out:
            yield timed_out
    finally:
        for open_socket in sockets:
            open_socket.close()


# Proxies: direct connections to this machine's own addresses, elsewhere the proxy of the environment.

_SCHEMES = ("http", "https", "socks5", "socks5h")


def is_loopback(address: str) -> bool:
    """Return whether an address is on this machine, such as localhost or 127.0.0.1."""
    host = (urlsplit(address).hostname or "").rstrip(".").lower()
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def proxy_options(address: str) -> Mapping[str, Any]:
    """Return the options of an httpx client for an address.

    An address on this machine gets no proxy, and others get no options. Raises BadInput, naming the
    environment variable, if a proxy cannot be used. Clients would fail on it even for addresses that it does
    not serve.
    """
    if is_loopback(address):
        # SSL_CERT_FILE is read nevertheless
        tls = {"verify": ssl.create_default_context()} if address.startswith("https:") else {}
        return {"trust_env": False, **tls}
    for scheme, proxy in _proxies().items():
        kind = urlsplit(proxy).scheme.lower() if "://" in proxy else "http"
        if kind not in _SCHEMES:
            problem = f"the environment variable {_variable_name(scheme)} names a proxy of the kind {kind}://"
            raise BadInput(f"{problem}: use {', '.join(_SCHEMES)}")
        if kind.startswith("socks") and find_spec("socksio") is None:
            problem = f"the environment variable {_variable_name(scheme)} names a SOCKS proxy"
            raise BadInput(f"{problem}: pip install 'httpx[socks]', or unset it")
    return {}


def proxy_variable(address: str) -> str:
    """Return the environment variable that names the proxy for an address, or "" if it is reached without
    one.
    """
    parts = urlsplit(address)
    proxies = _proxies()
    if is_loopback(address) or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return ""
    return next((_variable_name(scheme) for scheme in (parts.scheme, "all") if scheme in proxies), "")


def describe_proxy(address: str) -> str:
    """Format the proxy for an error message about an address that was not reached.

    For example " through the proxy that HTTP_PROXY names", or "" if it is reached without one.
    """
    variable = proxy_variable(address)
    return variable and f" through the proxy that {variable} names"


def _proxies() -> dict[str, str]:
    """Return the proxies of the environment that clients read, by http, https and all.

    Empty if NO_PROXY names every server.
    """
    found = getproxies_environment()
    if "*" in map(str.strip, found.get("no", "").split(",")):
        return {}
    return {scheme: found[scheme] for scheme in ("http", "https", "all") if found.get(scheme)}


def _variable_name(scheme: str) -> str:
    """Return the name of a proxy's variable as it is spelled in this environment."""
    lower_name = f"{scheme}_proxy"
    others = (name for name in os.environ if name.lower() == lower_name)
    return lower_name if os.environ.get(lower_name) else next(others, lower_name.upper())
