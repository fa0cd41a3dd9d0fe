"""Limits on the connections of a server, and its listening socket.

Limits are the number of connections, in all and per client, and the time for a request head.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import uvicorn
from uvicorn.protocols.http.h11_impl import H11Protocol

from kgot_lab.errors import BadInput

if TYPE_CHECKING:
    from starlette.types import ASGIApp

_SHUTDOWN_SECONDS = 5  # for incomplete answers at shutdown
_BACKLOG = 64  # connections the system queues, and the most that are accepted at once
_OUT_OF_RESOURCES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\nretry-after: 5\r\nconnection: close\r\n\r\n"
)
_log = logging.getLogger("kgot_lab.experts")


@dataclass(frozen=True)
class ConnectionLimits:
    """How many connections may be open, and the seconds in which a request head must be complete."""

    connections: int = 512
    per_client: int = 256  # of one address; a proxy counts as one client
    head_seconds: float = 10.0


def fitting_limits() -> ConnectionLimits:
    """Lower the usual limits to half of the file descriptors this process may open."""
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return ConnectionLimits()
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    usual = ConnectionLimits()
    if allowed == resource.RLIM_INFINITY or allowed // 2 >= usual.connections:
        return usual
    return ConnectionLimits(allowed // 2, allowed // 4)


class LimitedServer(uvicorn.Server):
    """Run an application on listening sockets, within the limits of connections."""

    def __init__(self, app: ASGIApp, limits: ConnectionLimits | None = None):
        # uvicorn expects a class
        protocol = type("LimitedConnection", (_LimitedConnection,), {"limits": limits or fitting_limits()})
        settings: dict[str, Any] = {"log_config": None, "log_level": "warning", "access_log": False}
        settings |= {"backlog": _BACKLOG, "timeout_graceful_shutdown": _SHUTDOWN_SECONDS}
        super().__init__(uvicorn.Config(app, http=protocol, ws="none", server_header=False, **settings))

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and keep listening if file descriptors run out, since asyncio retries each second."""
        asyncio.get_running_loop().set_exception_handler(_ExceptionHandler())
        await super().startup(sockets)


class _ExceptionHandler:
    """Logs errors of the event loop, with one line and no traceback if file descriptors run out."""

    def __init__(self) -> None:
        self._next_line = 0.0

    def __call__(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not (isinstance(error, OSError) and error.errno in _OUT_OF_RESOURCES):
            loop.default_exception_handler(context)
        elif loop.time() >= self._next_line:  # asyncio reports each of many attempts
            self._next_line = loop.time() + 60
            _log.warning("new connections wait: %s; raise the limit (ulimit -n)", error.strerror)


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
    connections among them. Raises BadInput if the port is taken or the system cannot share one.
    """
    if shared and not hasattr(socket, "SO_REUSEPORT"):
        raise BadInput("this system cannot share a port: let a proxy stand before several servers")
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
