"""A real SPARQL server for tests: `oxigraph serve`, which can be killed and started again on the same port
and folder.
"""

from __future__ import annotations

import subprocess
import sysconfig
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.loopback import free_port, started

PATIENCE = 300.0  # seconds until the server must answer


def program() -> Path:
    """The program in the package oxigraph; raises ImportError."""
    found = Path(sysconfig.get_path("scripts")) / "oxigraph"
    if not found.is_file():
        raise ImportError("the package oxigraph, which brings the server, is not installed")
    return found


class OxigraphServer:
    """A server on 127.0.0.1 that keeps its data in a folder, and goes on with a query that nobody waits for
    until it is killed.

    Its own limit of time would keep a thread for each query until that time is over: after some 30,000 it
    answers none any more.
    """

    def __init__(self, folder: Path):
        self.folder, self.port = folder, free_port()
        self.start()

    @property
    def query_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/query"

    @property
    def update_url(self) -> str:
        return f"http://127.0.0.1:{self.port}/update"

    def start(self) -> None:
        """Start it and wait until it answers; raises RuntimeError with what it said."""
        address = f"127.0.0.1:{self.port}"
        command = [str(program()), "serve", "--location", str(self.folder / "data"), "--bind", address]
        self.log = (self.folder / "server.log").open("ab")
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log)
        import httpx  # where no server is asked for it need not be there

        deadline = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < deadline:
            try:
                httpx.get(self.query_url, params={"query": "ASK {}"}, timeout=60)
                return
            except httpx.TransportError:
                time.sleep(0.02)
        self.kill()
        raise RuntimeError(
            f"no SPARQL server: {(self.folder / 'server.log').read_text(errors='replace')[-2000:]}"
        )

    def kill(self) -> None:
        """End it at once, as a power cut would."""
        self.process.kill()
        self._wait()

    def stop(self) -> None:
        """Let it end in order."""
        self.process.terminate()
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self._wait()

    def _wait(self) -> None:
        self.process.wait()
        self.log.close()

    def update(self, text: str) -> None:
        """Change what the server holds, as somebody else would."""
        import httpx

        headers = {"Content-Type": "application/sparql-update"}
        httpx.post(self.update_url, content=text.encode(), headers=headers).raise_for_status()

    def ask(self, text: str) -> bool:
        """What the server says to an ASK over all its graphs."""
        import httpx

        headers = {"Accept": "application/sparql-results+json"}
        reply = httpx.get(self.query_url, params={"query": text}, headers=headers)
        return bool(reply.raise_for_status().json()["boolean"])


@pytest.fixture(scope="session")
def oxigraph_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OxigraphServer]:
    """A SPARQL server for the whole run; each test takes a named graph of its own."""
    server = started("a SPARQL server", lambda: OxigraphServer(tmp_path_factory.mktemp("oxigraph")))
    yield server
    server.stop()
