"""HTTP requests with limits of time and size, through the proxy that the environment names."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
import ssl
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies_environment, proxy_bypass

from kgot_lab.errors import BadInput
from kgot_lab.io.processes import ended_after

MOST_BYTES = 16_000_000  # of a body after decompression; a long reply has a few hundred thousand
MOST_HOLDERS = 100_000  # objects and lists in a body, which cost far more than their bytes
WRAPPINGS = 4  # times as many bytes may come piece by piece, since each word has a wrapping of its own and none is kept
_REDIRECTS = 5
_CHUNK = 1 << 16
# or one without an end, which would be looked at from each quote in it
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)
# headers that describe the transport of a body
_OF_THE_WAY = {"content-encoding", "content-length", "transfer-encoding"}


class UnusableBody(Exception):
    """The body of a response is too long, or compressed in a way that cannot be decompressed."""


def client_library() -> Any:
    """Import the HTTP library of `openai`: httpx, or its replacement.

    A bounded client raises the errors of this library.
    """
    import openai

    return import_module(openai.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])


def bounded_client(seconds: float, most: int = MOST_BYTES, *, redirects: int = _REDIRECTS, **way: Any) -> Any:
    """Create an HTTP client for `openai` that limits the total time and size of every exchange.

    An exchange takes at most `seconds` and returns at most `most` bytes. A request with a shorter timeout of
    its own keeps it. `way` is the result of `way_to` for its address. With no `redirects`, a redirect is
    returned like any other response. Raises what its library raises, its ReadTimeout when the time is over,
    and UnusableBody if a body is too large. A streamed response raises them where it is read. Its time
    includes that of its reader, and it may be `WRAPPINGS` times as long.
    """
    import openai

    library = client_library()

    class BoundedClient(openai.DefaultHttpxClient):  # type: ignore[misc, unused-ignore]
        """Reads responses itself, to limit their time and size.

        Each exchange has its own connection, which can be closed without affecting others.
        """

        def __init__(self) -> None:
            super().__init__(limits=library.Limits(max_keepalive_connections=0), **way)

        def send(self, request: Any, *, stream: bool = False, **more: Any) -> Any:
            own: list[socket.socket] = []
            request.headers["accept-encoding"] = "gzip, deflate"
            own_time = (request.extensions.get("timeout") or {}).get("read") or seconds
            with ExitStack() as exchange:
                late = exchange.enter_context(_ended(own, min(seconds, own_time)))
                with _in_time(late, request):
                    found = self._followed(request, lambda name, info: _note(name, info, own, late), more)
                    exchange.callback(found.close)
                    told = {
                        "headers": [
                            (name, value)
                            for name, value in found.headers.multi_items()
                            if name not in _OF_THE_WAY
                        ]
                    }
                    packed = found.headers.get("content-encoding", "")
                    if not stream:
                        data = unpacked_body(found.iter_raw(_CHUNK), packed, most)
                        return library.Response(
                            found.status_code, **told, content=data, request=found.request
                        )
                    pieces = unpacked_pieces(found.iter_raw(), packed, most * WRAPPINGS)
                body = PassedOn(pieces, late, request, exchange.pop_all())
            return library.Response(found.status_code, **told, stream=body, request=found.request)

        def _followed(
            self, request: Any, note: Callable[[str, Mapping[str, Any]], None], more: dict[str, Any]
        ) -> Any:
            for _ in range(redirects + 1):
                request.extensions = {**request.extensions, "trace": note}
                response = super().send(request, stream=True, **{**more, "follow_redirects": False})
                if response.next_request is None or not redirects:
                    return response
                response.close()
                request = response.next_request
            raise UnusableBody(f"the server redirects more than {redirects} times")

    class PassedOn(library.SyncByteStream):  # type: ignore[misc, name-defined, unused-ignore]
        """The body of a response as it arrives.

        Closing it ends the exchange and its connection.
        """

        def __init__(
            self, pieces: Iterator[bytes], late: threading.Event, request: Any, exchange: ExitStack
        ) -> None:
            self._pieces, self._late, self._request, self._exchange = pieces, late, request, exchange

        def __iter__(self) -> Iterator[bytes]:
            with _in_time(self._late, self._request):
                yield from self._pieces

        def close(self) -> None:
            self._exchange.close()

    return BoundedClient()


def unpacked_body(chunks: Iterator[bytes], packed: str, most: int = MOST_BYTES) -> bytes:
    """Unpack a body that is gzip, deflate or not compressed.

    Raises UnusableBody if it has more than `most` bytes.
    """
    data = b"".join(unpacked_pieces(chunks, packed, most))
    check_holders(data)
    return data


def unpacked_pieces(chunks: Iterator[bytes], packed: str, most: int) -> Iterator[bytes]:
    """Yield the decompressed bytes of a body as they arrive.

    Raises UnusableBody as soon as there are more than `most`.
    """
    packed = packed.strip().lower()
    if packed not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise UnusableBody(f"the answer is packed as {packed[:40]!r}, which was not asked for")
    unpack: Any = None
    size = 0
    try:
        for chunk in chunks:
            if packed in ("", "identity"):
                piece = chunk
            else:
                unpack = unpack or _unpacker(chunk)
                piece = unpack.decompress(chunk, most + 1 - size)
            size += len(piece)
            if size > most:
                raise UnusableBody(f"the answer is larger than {most / 1e6:,.0f} MB")
            yield piece
            if unpack is not None and unpack.eof:
                break
    except zlib.error as error:
        raise UnusableBody(f"the answer cannot be unpacked ({error})") from None
    if unpack is not None and not unpack.eof:
        raise UnusableBody("the answer ends before its end")


def body_lines(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Yield the lines of a body as they arrive, without line ends, and the text after the last line end.

    Raises UnusableBody if a line is too long or contains too many objects.
    """
    held = bytearray()
    for piece in pieces:
        seen = len(held)
        held += piece
        if b"\n" in piece:
            end = held.rfind(b"\n", seen) + 1
            # of bytes, only ends of lines are separators
            yield from map(_checked_line, held[:end].splitlines())
            del held[:end]
        if len(held) > MOST_BYTES:
            raise UnusableBody(f"a line of the answer is longer than {MOST_BYTES / 1e6:,.0f} MB")
    if held:
        yield _checked_line(held)


def _checked_line(line: bytearray) -> bytes:
    check_holders(line)
    return bytes(line)


def check_holders(data: bytes | bytearray) -> None:
    """Raise UnusableBody for JSON that contains too many objects and lists."""
    if _holders(data) > MOST_HOLDERS and _holders(_STRING.sub(b"", data)) > MOST_HOLDERS:
        raise UnusableBody(f"the answer holds more than {MOST_HOLDERS:,} objects and lists")


def _holders(data: bytes | bytearray) -> int:
    return data.count(b"{") + data.count(b"[")


def _unpacker(beginning: bytes) -> Any:
    """Return the decompressor for a body with this beginning: gzip, or deflate.

    Some servers leave out the header of deflate.
    """
    headed = beginning[:1] == b"\x1f" or beginning[0] & 15 == 8
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 32 if headed else -zlib.MAX_WBITS)


@contextmanager
def _in_time(late: threading.Event, request: Any) -> Iterator[None]:
    """Raise a timeout error if the exchange ran out of time, whether it failed or seems complete."""
    library, trouble = client_library(), None
    try:
        yield
    except (library.RequestError, UnusableBody) as error:
        trouble = error
    # nothing was sent, or may be charged
    if late.is_set() and isinstance(trouble, library.ConnectError | library.ConnectTimeout):
        raise library.ConnectTimeout("there was no connection in time", request=request) from trouble
    if late.is_set():  # also if the end of the connection was taken for that of the body
        raise library.ReadTimeout("the answer was not complete in time", request=request) from trouble
    if trouble is not None:
        raise trouble


def _note(name: str, info: Mapping[str, Any], own: list[socket.socket], late: threading.Event) -> None:
    """Record the connection of an exchange.

    It is a duplicate of the socket, which stays valid when TLS takes over the first.
    """
    if name.endswith(".connect_tcp.complete"):
        own.append(info["return_value"].get_extra_info("socket").dup())
        if late.is_set():  # the deadline passed before there was a connection to break
            _break(own)


def _break(connections: Iterable[socket.socket]) -> None:
    for connection in connections:
        with suppress(OSError):  # it may be gone
            connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def _ended(own: list[socket.socket], seconds: float) -> Iterator[threading.Event]:
    """Break the connections of an exchange that takes longer than `seconds`, and close them in any case.

    The event is set if they were broken.
    """

    try:
        with ended_after(seconds, lambda: _break(list(own))) as late:
            yield late
    finally:
        for connection in own:
            connection.close()


# Proxies: direct connections to this machine's own addresses, elsewhere the proxy of the environment.

_SCHEMES = ("http", "https", "socks5", "socks5h")


def is_loopback(address: str) -> bool:
    """Return whether an address is on this machine, such as localhost or 127.0.0.1."""
    host = (urlsplit(address).hostname or "").rstrip(".").lower()
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def way_to(address: str) -> Mapping[str, Any]:
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
            raise BadInput(
                f"the environment variable {_variable(scheme)} names a proxy of the kind {kind}://: use {', '.join(_SCHEMES)}"
            )
        if kind.startswith("socks") and find_spec("socksio") is None:
            raise BadInput(
                f"the environment variable {_variable(scheme)} names a SOCKS proxy: pip install 'httpx[socks]', or unset it"
            )
    return {}


def proxy_variable(address: str) -> str:
    """Return the environment variable that names the proxy for an address, or "" if it is reached without
    one.
    """
    parts = urlsplit(address)
    proxies = _proxies()
    if is_loopback(address) or proxy_bypass(parts.netloc.rpartition("@")[2]):
        return ""
    return next((_variable(scheme) for scheme in (parts.scheme, "all") if scheme in proxies), "")


def through_proxy(address: str) -> str:
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


def _variable(scheme: str) -> str:
    """Return the name of a proxy's variable as it is spelled in this environment."""
    small = f"{scheme}_proxy"
    return (
        small
        if os.environ.get(small)
        else next((name for name in os.environ if name.lower() == small), small.upper())
    )
