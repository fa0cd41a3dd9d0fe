"""The commands `serve` and `mcp --http` as processes of their own: their first answer, slow and vanished clients,
abandoned sessions, the limit of file descriptors, and their end.
"""

from __future__ import annotations

import json
import resource
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import httpx
import pytest
from support.loopback import free_port
from support.openai_server import delta, ending, openai_server, says_on, tells
from support.waiting import AMPLE, processes_below, until

from kgot_lab.experts.http.auth import AuthMiddleware, GuardLimits, GuardRules
from kgot_lab.experts.http.connections import ConnectionLimits, LimitedServer, listening_socket
from kgot_lab.graph import PropertyGraph
from kgot_lab.kgos.query.mcp_server import graph_server, http_app
from kgot_lab.types import Node

pytestmark = pytest.mark.extended

CHAT = "/api/experts/expert_cookbook/chat"
BRIEF = 0.5  # seconds
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "x", "version": "1"},
    },
}
ACCEPT = {"accept": "application/json, text/event-stream"}


class Served:
    """A process of `kgot-lab serve` and a client of it."""

    def __init__(self, store: Path, model: str, *more: str, descriptors: int = 1024):
        self.port = free_port()
        words = ["serve", *more, "--store", str(store), "--model", model, "--port", str(self.port)]
        self.process = subprocess.Popen(
            [sys.executable, "-m", "kgot_lab", *words],
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (descriptors, descriptors)),
        )
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", timeout=AMPLE, trust_env=False)

    def health(self) -> dict:
        """What /health answers; nothing while nobody listens."""
        with suppress(httpx.HTTPError):
            return self.client.get("/health").json()
        assert self.process.poll() is None, self.process.communicate()[1]
        return {}

    def until_loaded(self) -> None:
        """Wait for the experts and the curated graph, not for the graph of its own code."""
        missing = {"experts", "cookbook"}
        until(lambda: missing.isdisjoint(self.health().get("loading", missing)), "the graph is read")


@contextmanager
def serve(tmp_path: Path, model: str = "http://127.0.0.1:9/v1#m", *more: str, **options) -> Iterator[Served]:
    served = Served(tmp_path / "experts.db", model, *more, **options)
    try:
        yield served
    finally:
        served.client.close()
        served.process.kill()
        served.process.communicate()


def test_health_says_from_the_start_what_is_loading_and_requests_wait_for_it(tmp_path):
    with serve(tmp_path) as served:
        first = until(served.health, "the server answers")
        assert first == {"up": True, "chats": 0, "loading": ["experts"]}
        asked = served.client.get("/api/experts")  # begun while they are loaded
        assert {each["id"] for each in asked.json()} == {"expert_code", "expert_cookbook"}
        assert "kgot_lab" in served.health()["loading"]  # its own code
        until(lambda: served.health()["loading"] == [], "all graphs are read")


def test_what_cannot_be_loaded_ends_the_server_with_the_reason(tmp_path):
    (tmp_path / "experts.db").write_text("no database")
    with serve(tmp_path) as served:
        told = served.process.communicate(timeout=AMPLE)[1]
        assert served.process.returncode == 1 and "not an SQLite file" in told and "Traceback" not in told


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGKILL])
def test_a_server_that_ends_while_it_reads_code_leaves_no_process_behind(tmp_path, sent):
    with serve(tmp_path) as served:
        reading = until(lambda: processes_below(served.process.pid), "its code is read in a process")
        served.process.send_signal(sent)
        served.process.wait(AMPLE)
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in reading), "nobody reads any more")


def test_a_request_in_flight_is_answered_after_the_signal_to_end_and_no_new_one_is(tmp_path):
    may_end = threading.Event()

    def words() -> Iterator[str]:
        yield delta("Wait ")
        assert may_end.wait(AMPLE)
        yield delta("for it.")
        yield from ending()

    with openai_server(lambda body: tells(words())) as model, serve(tmp_path, f"{model.url}#m") as served:
        served.until_loaded()
        with served.client.stream("POST", CHAT, json={"query": "What is caching?"}) as answer:
            lines = answer.iter_lines()
            until(lambda: "Wait" in next(lines), "the answer begins")
            served.process.send_signal(signal.SIGTERM)

            def is_refused() -> bool:
                try:
                    socket.create_connection(("127.0.0.1", served.port)).close()
                except OSError:
                    return True
                return False

            until(is_refused, "nobody is accepted any more")
            may_end.set()
            rest = "".join(lines)
        assert "for it." in rest and '"done"' in rest
        assert served.process.wait(AMPLE) == 128 + signal.SIGTERM


@pytest.mark.parametrize("sent", [signal.SIGTERM, signal.SIGINT])
def test_a_model_that_hangs_does_not_keep_a_server_from_its_end(tmp_path, sent):
    over = threading.Event()

    def nothing() -> Iterator[str]:
        over.wait(AMPLE)
        yield ""

    with openai_server(lambda body: tells(nothing())) as model, serve(tmp_path, f"{model.url}#m") as served:
        served.until_loaded()
        with served.client.stream("POST", CHAT, json={"query": "What is caching?"}) as answer:
            until(lambda: served.health()["chats"] == 1, "the model is asked")
            begun = time.monotonic()
            served.process.send_signal(sent)
            assert served.process.wait(AMPLE) == 128 + sent
            assert time.monotonic() - begun < AMPLE / 2  # 5 s for the answer, 3 s for what hangs
            with pytest.raises(httpx.RemoteProtocolError):
                answer.read()
        over.set()


def test_a_server_at_its_limit_of_file_descriptors_answers_those_who_come_when_others_go(tmp_path):
    with (
        openai_server(says_on("Use it.")) as model,
        serve(tmp_path, f"{model.url}#m", descriptors=64) as served,
    ):
        served.until_loaded()
        with ExitStack() as stack:
            for _ in range(100):
                held = stack.enter_context(socket.create_connection(("127.0.0.1", served.port)))
                with suppress(OSError):
                    held.sendall(b"GET / HTTP/1.1\r\nX: ")
            with httpx.Client(trust_env=False, timeout=AMPLE) as other:
                assert other.get(f"http://127.0.0.1:{served.port}/health").status_code == 503
        until(lambda: served.health().get("up"), "the server answers again")
        answer = served.client.post(CHAT, json={"query": "What is caching?"})
        assert answer.status_code == 200 and "Use it." in answer.text


# --- `mcp --http`, with short limits ---


@contextmanager
def graph_on_http(**limits: float) -> Iterator[tuple[LimitedServer, int]]:
    """The server of a graph as the command runs it, with shorter limits, and its port."""
    graph = PropertyGraph.of([Node(f"n{n}", ("t",), {"name": "A node " * 200}) for n in range(100)])
    rules = GuardRules(limits=GuardLimits(send_seconds=BRIEF, requests_a_minute=10**6))
    app = AuthMiddleware(http_app(graph_server(graph)), rules)
    listening = listening_socket("127.0.0.1", 0)
    server = LimitedServer(app, ConnectionLimits(**limits))
    thread = threading.Thread(target=server.run, args=([listening],), daemon=True)
    thread.start()
    try:
        until(lambda: server.started, "the server listens")
        yield server, listening.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(AMPLE)


def request(port: int, body: bytes, more: str = "") -> bytes:
    head = f"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n{more}"
    return f"{head}Accept: {ACCEPT['accept']}\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


def test_a_body_that_does_not_come_is_not_waited_for_and_a_client_that_leaves_is_no_error(caplog):
    with graph_on_http() as (_, port), socket.create_connection(("127.0.0.1", port), AMPLE) as slow:
        whole = request(port, b" " * 100)
        for _ in range(5):
            with socket.create_connection(("127.0.0.1", port)) as gone:
                gone.sendall(whole[:-50])
        slow.sendall(whole[:-50])
        with socket.create_connection(("127.0.0.1", port), AMPLE) as broken:
            chunked = request(port, b"", "Transfer-Encoding: chunked\r\n").replace(
                b"Host: 127.0.0.1", b"Host: evil"
            )
            broken.sendall(chunked.replace(b"Content-Length: 0\r\n", b"") + b"ZZ\r\nabc\r\n")
            assert broken.recv(1000).startswith(b"HTTP/1.1 400")
        assert slow.recv(1000).startswith(b"HTTP/1.1 408")
    assert not caplog.records


def test_sessions_that_are_left_are_not_kept_and_no_empty_stream_is_opened():
    with graph_on_http() as (_, port), httpx.Client(trust_env=False, timeout=AMPLE) as client:
        url = f"http://127.0.0.1:{port}/mcp"
        for _ in range(20):
            answer = client.post(url, json=INITIALIZE, headers=ACCEPT)
            assert answer.json()["result"]["serverInfo"] and "mcp-session-id" not in answer.headers
        assert client.get(url, headers=ACCEPT).status_code == client.delete(url).status_code == 405
        for body in ([], 5, {"jsonrpc": "2.0", "id": 1}, {"jsonrpc": "2.0", "id": 1, "method": 5}):
            answer = client.post(url, json=body, headers=ACCEPT)
            said = answer.json()["error"]["message"]
            assert answer.status_code == 400 and said.startswith("this is no JSON-RPC message: give jsonrpc")
        asked = {"jsonrpc": "2.0", "id": {"a": 1}, "method": "tools/list"}
        assert (
            "has no id that is a text"
            in client.post(url, json=asked, headers=ACCEPT).json()["error"]["message"]
        )
        foreign = {"host": "evil.example"}
        assert client.post(url, json=INITIALIZE, headers=ACCEPT | foreign).status_code == 421


def test_a_client_that_reads_nothing_of_its_answers_is_dropped():
    listing = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    with graph_on_http(unread_seconds=BRIEF) as (server, port), socket.socket() as deaf:
        deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.connect(("127.0.0.1", port))
        deaf.setblocking(False)

        def is_dropped() -> bool:
            try:
                deaf.send(request(port, listing))
            except BlockingIOError:
                return False
            except OSError:
                return True
            return False

        until(is_dropped, "the client is dropped")
        until(lambda: not server.server_state.connections, "no connection is left")
