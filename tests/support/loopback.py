"""What real servers on loopback share in tests: a free port, and a clear reason where one cannot start."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import TypeVar

import pytest

from kgot_lab.errors import LabError

Server = TypeVar("Server")


def free_port() -> int:
    """A port of 127.0.0.1 that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def started(what: str, start: Callable[[], Server]) -> Server:
    """What `start` gives; where it cannot, the test is skipped with the reason, or fails if the environment variable CI is set."""
    try:
        return start()
    except (ImportError, OSError, RuntimeError, LabError) as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"{what} cannot be started here: {error}")
