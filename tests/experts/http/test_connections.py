"""A server within its limits of connections: clients that never finish a request head, too many of them, and
no file descriptor left. Slow bodies, long streams and connections that are kept stay as they are.
"""

from __future__ import annotations

import http.client
import re
import resource
import select
import socket
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress

import httpx
import pytest
from support.expert_server import COOK_ID, HeldModel, expert_office, served
from support.waiting import AMPLE, until

from kgot_lab.experts.http.connections import ConnectionLimits, fitting_limits

HALF_A_HEAD = b"GET /health HTTP/1.1\r\nHost: x\r\nX: "
BRIEF = 0.5  # seconds for a head
NEVER = 3600.0
SERVER = """
import resource, sys
descriptors, head_seconds = int(sys.argv[1]), float(sys.argv[2])
from kgot_lab.experts.http.connections import ConnectionLimits, LimitedServer
from kgot_lab.experts.http.connections import listening_socket
from starlette.applications import Starlette
from starlette.responses import PlainTextResponse
from starlette.routing import Route

async def health(request):
    return PlainTextResponse("up")

listening = listening_socket("127.0.0.1", 0)
print(listening.getsockname()[1], flush=True)
resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors))
LimitedServer(Starlette(routes=[Route("/health", health)]), ConnectionLimits(10_000, 10_000, head_seconds)).run([listening])
"""


def address_of(url: str) -> tuple[str, int]:
    parts = httpx.URL(url)
    return parts.host, parts.port or 80


def open_half(address: tuple[str, int], client: str = "127.0.0.1") -> socket.socket:
    """Connect, and send a part of a request head."""
    opened = socket.create_connection(address, timeout=AMPLE, source_address=(client, 0))
    with suppress(OSError):  # refused already
        opened.sendall(HALF_A_HEAD)
    return opened


def answers(address: tuple[str, int], client: str = "127.0.0.1", seconds: float = AMPLE) -> bool:
    """Ask for /health on a new connection."""
    connection = http.client.HTTPConnection(*address, timeout=seconds, source_address=(client, 0))
    try:
        connection.request("GET", "/health")
        return connection.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def is_closed(held: socket.socket) -> bool:
    """Whether the server closed a connection; reads what it sent before."""
    try:
        while select.select([held], [], [], 0)[0]:
            if held.recv(1000) == b"":
                return True
    except OSError:
        return True
    return False


def test_heads_that_are_never_finished_are_closed_and_the_server_answers_again():
    limits = ConnectionLimits(connections=20, per_client=20, head_seconds=BRIEF)
    with ExitStack() as stack, served(expert_office(), limits=limits) as server:
        address = address_of(server.url)
        held = [stack.enter_context(open_half(address)) for _ in range(60)]
        until(lambda: answers(address), "the server answers beside clients that hold their connections")
        until(lambda: all(map(is_closed, held)), "every half request is closed")


def test_a_head_that_comes_byte_by_byte_is_closed():
    with (
        served(expert_office(), limits=ConnectionLimits(head_seconds=BRIEF)) as server,
        open_half(address_of(server.url)) as held,
    ):

        def send_byte() -> bool:
            with suppress(OSError):
                held.sendall(b"x")
            return is_closed(held)

        until(send_byte, "the connection is closed")


def test_a_second_head_on_a_connection_is_timed_as_the_first_is():
    with served(expert_office(), limits=ConnectionLimits(head_seconds=BRIEF)) as server:
        host, port = address_of(server.url)
        connection = http.client.HTTPConnection(host, port, timeout=AMPLE)
        connection.request("GET", "/health")
        connection.getresponse().read()
        connection.request("GET", "/health")  # the same connection
        assert connection.getresponse().read() == b'{"up":true,"chats":0,"loading":[]}'
        held = connection.sock
        held.sendall(HALF_A_HEAD)

        def send_byte() -> bool:
            with suppress(OSError):
                held.sendall(b"x")
            return is_closed(held)

        until(send_byte, "the connection is closed")
        held.close()


def test_one_client_cannot_take_all_connections():
    limits = ConnectionLimits(connections=20, per_client=4, head_seconds=NEVER)
    with ExitStack() as stack, served(expert_office(), limits=limits) as server:
        address = address_of(server.url)
        for _ in range(4):
            stack.enter_context(open_half(address))
        with httpx.Client(trust_env=False, timeout=AMPLE) as client:
            refused = client.get(f"{server.url}/health")
        assert refused.status_code == 503 and refused.headers["retry-after"] == "5"
        if sys.platform == "linux":  # where all of 127.0.0.0/8 is this computer
            assert answers(address, client="127.0.0.2")


def test_a_slow_body_is_read_and_a_long_stream_is_written_beyond_the_time_for_a_head():
    model = HeldModel()
    with served(expert_office(model), limits=ConnectionLimits(head_seconds=BRIEF)) as server:

        def slow_body():
            for byte in b'{"query": "What is caching?"}':
                time.sleep(2 * BRIEF / 29)  # slower than a head may be; nothing waits for this to be over
                yield bytes([byte])

        body = {"content": slow_body(), "headers": {"content-type": "application/json"}}
        with server.client.stream("POST", f"/api/experts/{COOK_ID}/chat", **body) as answer:
            assert answer.status_code == 200
            threading.Timer(2 * BRIEF, model.finish).start()
            assert '"done"' in answer.read().decode()


@pytest.fixture
def starved():
    """A server of few file descriptors whose limits are far above them, so that it runs out."""
    words = [sys.executable, "-c", SERVER, "40", str(NEVER)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        address = "127.0.0.1", int(process.stdout.readline())
        until(lambda: answers(address), "the server answers")
        yield address, process
    finally:
        process.kill()
        process.communicate()


def test_a_server_without_file_descriptors_says_so_once_and_goes_on_when_they_are_free(starved):
    address, process = starved
    with ExitStack() as stack:
        for _ in range(60):  # those that are not accepted wait in the system's queue
            stack.enter_context(open_half(address))
        assert "Too many open files" in process.stderr.readline()
        assert not answers(address, seconds=0.5)
    until(lambda: answers(address), "the server answers again")
    process.kill()
    rest = process.communicate()[1]
    assert not re.search("Traceback|Too many", rest), rest


def test_the_limits_fit_the_file_descriptors_of_the_process(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda which: (100, 4096))
    assert fitting_limits() == ConnectionLimits(50, 25)
    monkeypatch.setattr(resource, "getrlimit", lambda which: (resource.RLIM_INFINITY,) * 2)
    assert fitting_limits() == ConnectionLimits()
