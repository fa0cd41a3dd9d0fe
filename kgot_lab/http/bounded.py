"""The client that asks servers: an exchange has an end and an answer a size, whatever a server does."""

from __future__ import annotations

import re
import socket
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any

from kgot_lab.timing import ended_after

MOST_BYTES = 16_000_000  # of an answer, unpacked; a long reply has a few hundred thousand
MOST_HOLDERS = 100_000  # objects and lists in an answer, which cost far more than their bytes
_REDIRECTS = 5
_CHUNK = 1 << 16
_STRING = re.compile(rb'"(?:[^"\\]|\\.)*+(?:"|\\?\Z)', re.DOTALL)  # or one without an end, which would be looked at from each quote in it
_OF_THE_WAY = {"content-encoding", "content-length", "transfer-encoding"}  # headers that say how a body travelled


class UnusableBody(Exception):
    """The body of an answer is too long, or is packed in a way that cannot be unpacked."""


def client_library() -> Any:
    """The library whose client `openai` uses, and which raises what a bounded client raises: httpx, or what took its place."""
    import openai

    return import_module(openai.DefaultHttpxClient.__mro__[1].__module__.partition(".")[0])


def bounded_client(seconds: float, most: int = MOST_BYTES, *, redirects: int = _REDIRECTS, **way: Any) -> Any:
    """A client for `openai` whose every exchange takes so many seconds at most, from first to last, and brings so many bytes.

    A request that is given less time of its own has that; `way` is what `proxies.way_to` says of its address. Where no `redirects` are
    followed, one is an answer like others. Raises what its library raises, its ReadTimeout at the end of that time, and UnusableBody.
    """
    import openai

    library = client_library()

    class BoundedClient(openai.DefaultHttpxClient):  # type: ignore[misc, unused-ignore]
        """Reads answers itself, so that they end; each exchange has a connection of its own, which can be broken and is nobody else's."""

        def __init__(self) -> None:
            super().__init__(limits=library.Limits(max_keepalive_connections=0), **way)

        def send(self, request: Any, *, stream: bool = False, **more: Any) -> Any:
            own: list[socket.socket] = []
            request.headers["accept-encoding"] = "gzip, deflate"
            own_time = (request.extensions.get("timeout") or {}).get("read") or seconds
            with _ended(own, min(seconds, own_time)) as late:
                found, trouble = None, None
                try:
                    found = self._followed(request, lambda name, info: _note(name, info, own, late), more)
                except (library.RequestError, UnusableBody) as error:
                    trouble = error
            if late.is_set() and isinstance(trouble, library.ConnectError | library.ConnectTimeout):  # nothing was sent, or may be charged
                raise library.ConnectTimeout("there was no connection in time", request=request) from trouble
            if late.is_set():  # also where the end of the connection was taken for that of the answer
                raise library.ReadTimeout("the answer was not complete in time", request=request) from trouble
            if trouble is not None:
                raise trouble
            return found

        def _followed(self, request: Any, note: Callable[[str, Mapping[str, Any]], None], more: dict[str, Any]) -> Any:
            for _ in range(redirects + 1):
                request.extensions = {**request.extensions, "trace": note}
                with _closed(super().send(request, stream=True, **{**more, "follow_redirects": False})) as response:
                    data = unpacked_body(response.iter_raw(_CHUNK), response.headers.get("content-encoding", ""), most)
                    headers = [(name, value) for name, value in response.headers.multi_items() if name not in _OF_THE_WAY]
                    asked = response.next_request
                    if asked is None or not redirects:
                        return library.Response(response.status_code, headers=headers, content=data, request=request)
                    request = asked
            raise UnusableBody(f"the server redirects more than {redirects} times")

    return BoundedClient()


def unpacked_body(chunks: Iterator[bytes], packed: str, most: int = MOST_BYTES) -> bytes:
    """The bytes of a body that came as gzip, as deflate or as it is; raises UnusableBody for more than so many bytes."""
    packed = packed.strip().lower()
    if packed not in ("", "identity", "gzip", "x-gzip", "deflate"):
        raise UnusableBody(f"the answer is packed as {packed[:40]!r}, which was not asked for")
    unpack: Any = None
    data = bytearray()
    try:
        for chunk in chunks:
            if packed in ("", "identity"):
                data += chunk
            else:
                unpack = unpack or _unpacker(chunk)
                data += unpack.decompress(chunk, most + 1 - len(data))
            if len(data) > most:
                raise UnusableBody(f"the answer is larger than {most / 1e6:,.0f} MB")
            if unpack is not None and unpack.eof:
                break
    except zlib.error as error:
        raise UnusableBody(f"the answer cannot be unpacked ({error})") from None
    if unpack is not None and not unpack.eof:
        raise UnusableBody("the answer ends before its end")
    if _holders(data) > MOST_HOLDERS and _holders(_STRING.sub(b"", data)) > MOST_HOLDERS:
        raise UnusableBody(f"the answer holds more than {MOST_HOLDERS:,} objects and lists")
    return bytes(data)


def _holders(data: bytes | bytearray) -> int:
    return data.count(b"{") + data.count(b"[")


def _unpacker(beginning: bytes) -> Any:
    """What unpacks a body that begins so: gzip, or deflate, whose head some servers leave out."""
    headed = beginning[:1] == b"\x1f" or beginning[0] & 15 == 8
    return zlib.decompressobj(wbits=zlib.MAX_WBITS | 32 if headed else -zlib.MAX_WBITS)


@contextmanager
def _closed(response: Any) -> Iterator[Any]:
    try:
        yield response
    finally:
        response.close()


def _note(name: str, info: Mapping[str, Any], own: list[socket.socket], late: threading.Event) -> None:
    """Remember a connection that is made for an exchange, by a socket that stays one when TLS takes the first over."""
    if name.endswith(".connect_tcp.complete"):
        own.append(info["return_value"].get_extra_info("socket").dup())
        if late.is_set():  # what had to be broken then was not there yet
            _break(own)


def _break(connections: Iterable[socket.socket]) -> None:
    for connection in connections:
        with suppress(OSError):  # it may be gone
            connection.shutdown(socket.SHUT_RDWR)


@contextmanager
def _ended(own: list[socket.socket], seconds: float) -> Iterator[threading.Event]:
    """Break the connections of an exchange that takes longer, which are let go of in any case; the event says that this happened."""

    try:
        with ended_after(seconds, lambda: _break(list(own))) as late:
            yield late
    finally:
        for connection in own:
            connection.close()
