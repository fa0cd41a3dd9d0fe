"""What real servers on loopback share in tests: a free port, threads that answer, and a clear reason where
one cannot start.
"""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TypeVar

import pytest

from kgot_lab.errors import LabError

Server = TypeVar("Server")


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class QuietHandler(BaseHTTPRequestHandler):
    """A handler that logs nothing."""

    def log_message(self, *_: object) -> None:
        pass

    def respond(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
        """Send a status, headers (without those that are empty) and a body."""
        self.send_response(status)
        for name, value in headers.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serving(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Answer requests to a free port with a handler, until the block ends; gives the address, without a path."""
    http = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    http.handle_error = lambda *_: None  # type: ignore[method-assign]  # a client that gave up, or was killed, is what some tests want
    thread = threading.Thread(target=http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{http.server_address[1]}"
    finally:
        http.shutdown()
        thread.join()
        http.server_close()


def started(what: str, start: Callable[[], Server]) -> Server:
    """What `start` gives; where it cannot, the test is skipped with the reason, or fails if the environment
    variable CI is set.
    """
    try:
        return start()
    except (ImportError, OSError, RuntimeError, LabError) as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"{what} cannot be started here: {error}")
