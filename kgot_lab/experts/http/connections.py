"""The HTTP server of all protocols: limits on its connections, its start and end, and its listening socket.

Limits are the number of connections, in all and per client, and the time to send a request head, to read an
answer, and to end.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import resource
import socket
import threading
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import uvicorn
from starlette.responses import JSONResponse, Response
from uvicorn.protocols.http.h11_impl import H11Protocol

from kgot_lab.arguments import CheckedRecord, bounded
from kgot_lab.errors import BadInput

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType

    from starlette.applications import Starlette
    from starlette.types import ASGIApp, Receive, Scope, Send

_END_SECONDS = 3.0  # after the drain, for threads that cannot be interrupted
_BACKLOG = 64  # connections the system queues, and the most that are accepted at once
_UNREAD_BYTES = 128_000  # of answers that the system holds for a client; else up to 4 MB
_OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 5\r\nconnection: close\r\n\r\n"
)
_log = logging.getLogger("kgot_lab.experts")


@dataclass(frozen=True)
class ConnectionLimits(CheckedRecord):
    """How many connections may be open, and how long a client, or the end of the server, may take."""

    connections: int = bounded(512, 1)
    per_client: int = bounded(256, 1)  # of one address; a proxy counts as one client
    head_seconds: float = 10.0  # until a request head is complete
    unread_seconds: float = 30.0  # in which a client reads nothing of its answer
    drain_seconds: float = 5.0  # after the signal to end, for requests in flight


def fitting_limits() -> ConnectionLimits:
    """Lower the usual limits to half of the file descriptors this process may open."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    usual = ConnectionLimits()
    most = usual.connections if allowed == resource.RLIM_INFINITY else min(usual.connections, allowed // 2)
    return replace(usual, connections=most, per_client=most // 2)


class LimitedServer(uvicorn.Server):
    """Run an application on listening sockets, within the limits of connections.

    A signal ends it: requests in flight are answered for `drain_seconds`, and 3 s later the process is over,
    whatever its threads wait for.
    """

    _next_line = 0.0  # when the next lack of file descriptors is logged

    def __init__(self, app: ASGIApp, limits: ConnectionLimits | None = None):
        self._limits = limits or fitting_limits()
        # uvicorn expects a class
        protocol = type("LimitedConnection", (_LimitedConnection,), {"limits": self._limits})
        # warnings would be a line for each malformed request
        settings: dict[str, Any] = {"log_config": None, "log_level": "error", "access_log": False}
        settings |= {"backlog": _BACKLOG, "timeout_graceful_shutdown": self._limits.drain_seconds}
        # longer than the 5 s for which HTTPX keeps a connection, which it would else use while it is closed
        settings |= {"timeout_keep_alive": self._limits.head_seconds}
        super().__init__(uvicorn.Config(app, http=protocol, ws="none", server_header=False, **settings))

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End after the drain, and at the latest when the time for threads is over."""
        if not self.should_exit:
            end = threading.Timer(self._limits.drain_seconds + _END_SECONDS, os._exit, (128 + sig,))
            end.daemon = True
            end.start()
        super().handle_exit(sig, frame)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and keep listening if file descriptors run out, since asyncio retries each second."""
        for listening in sockets or ():  # connections inherit the options
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _UNREAD_BYTES)
            if hasattr(socket, "TCP_USER_TIMEOUT"):
                milliseconds = round(self._limits.unread_seconds * 1000)
                listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, milliseconds)
        asyncio.get_running_loop().set_exception_handler(self._log_error)
        await super().startup(sockets)

    def _log_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Log an error of the event loop, with one line and no traceback if file descriptors run out."""
        error = context.get("exception")
        if not (isinstance(error, OSError) and error.errno in _OUT_OF_RESOURCES):
            loop.default_exception_handler(context)
        elif loop.time() >= self._next_line:  # asyncio reports each of many attempts
            self._next_line = loop.time() + 60
            _log.warning("new connections wait: %s; raise the limit (ulimit -n)", error.strerror)


def run_while_loading(load: Callable[[], Starlette], listening: socket.socket) -> None:
    """Serve an application that is loaded in a thread. Until it is, /health says so and other requests wait.

    Raises what `load` raises, once the server has ended.
    """
    loading = _LoadingApp(load)
    loading.server = LimitedServer(loading)
    loading.server.run([listening])
    if loading.error is not None:
        raise loading.error


class _LoadingApp:
    server: LimitedServer
    error: Exception | None = None
    _app: ASGIApp = Response(status_code=503)  # if loading fails

    def __init__(self, load: Callable[[], Starlette]):
        self._load, self._loaded = load, asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self._live(receive, send)
        elif scope["path"] == "/health" and not self._loaded.is_set():
            await JSONResponse({"up": True, "chats": 0, "loading": ["experts"]})(scope, receive, send)
        else:
            await self._loaded.wait()
            await self._app(scope, receive, send)

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        await send({"type": "lifespan.startup.complete"})
        try:
            app = await asyncio.to_thread(self._load)
            async with app.router.lifespan_context(app):
                self._app = app
                self._loaded.set()
                await receive()
        except Exception as error:
            self.error, self.server.should_exit = error, True
            self._loaded.set()
        await send({"type": "lifespan.shutdown.complete"})


class _LimitedConnection(H11Protocol):
    """A connection: refused over the limits, and closed if a request head is not complete in time."""

    limits = ConnectionLimits()
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        connections = [connection for connection in self.connections if isinstance(connection, H11Protocol)]
        addresses = [connection.client[0] for connection in connections if connection.client]
        same_client = addresses.count(self.client[0]) if self.client else 0
        if len(addresses) > self.limits.connections or same_client > self.limits.per_client:
            transport.write(_REFUSAL)
            transport.close()
        self._time_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._time_head()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._time_head()

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_timer()

    def send_400_response(self, msg: str) -> None:
        super().send_400_response(msg)
        if self.cycle is not None:  # nothing is sent to a request whose body broke off
            self.cycle.disconnected = True

    def _time_head(self) -> None:
        """Run the timer exactly while no request is being answered."""
        if self.cycle is not None and not self.cycle.response_complete:
            self._stop_timer()
        elif self._head_timer is None:
            self._head_timer = self.loop.call_later(self.limits.head_seconds, self.transport.close)

    def _stop_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None


# The socket a server listens on: its own port, or one shared by several processes of this computer.


def listening_socket(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """Bind a socket to listen on.

    With `shared`, other processes that also pass it can listen on the same port, and the system distributes
    connections among them. Raises BadInput if the port is taken.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if shared:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    try:
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        problem = f"cannot listen on {host}, port {port}: {error.strerror}"
        raise BadInput(f"{problem}; choose another --port") from None
    listener.set_inheritable(True)
    return listener
