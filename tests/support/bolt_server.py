"""A real Bolt server for tests: ArcadeDB in a process of its own, which can be killed and started again on
the same port and folder.
"""

from __future__ import annotations

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.loopback import free_port, started

USER, PASSWORD = "root", "a test's password"
JAVA = "-Xmx1g -XX:+UseSerialGC -XX:TieredStopAtLevel=1"  # a quick start and little memory
PATIENCE = 300.0  # seconds until the server must be ready


class BoltServer:
    """A server on 127.0.0.1; it ends when its standard input does, that is with this process at the latest."""

    def __init__(self, folder: Path, *, longest: float | None = None):
        """`longest` is how many seconds the server lets a statement go on; it heeds no limit that comes with
        a statement.
        """
        self.folder, self.user, self.password = folder, USER, PASSWORD
        self.java = JAVA + (f" -Darcadedb.command.timeout={longest * 1000:.0f}" if longest else "")
        self.port = 0
        self.start()

    @property
    def uri(self) -> str:
        return f"bolt://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it, on the port it had before if any; raises RuntimeError with the end of its log."""
        command = [sys.executable, __file__, str(self.folder), str(self.port)]
        self.log = (self.folder / "server.log").open("ab")
        own = str(Path(__file__).parents[1])  # as a program it finds its sisters in support/
        environment = {
            **os.environ,
            "PYTHONPATH": own,
            "ARCADEDB_JVM_ERROR_FILE": str(self.folder / "jvm-errors.log"),
            "ARCADEDB_JVM_ARGS": self.java,
        }
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.log,
            cwd=self.folder,
            env=environment,
        )
        assert self.process.stdout
        deadline = time.monotonic() + PATIENCE
        while (
            time.monotonic() < deadline
            and select.select([self.process.stdout], [], [], deadline - time.monotonic())[0]
        ):
            line = self.process.stdout.readline()
            if line.startswith(b'{"bolt"'):
                self.port = json.loads(line)["bolt"]
                return
            if not line:
                break
        self.kill()
        raise RuntimeError(
            f"no Bolt server: {(self.folder / 'server.log').read_text(errors='replace')[-2000:]}"
        )

    def database(self, name: str) -> str:
        """Make a database of that name, unless there is one; returns the name."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(json.dumps(name).encode() + b"\n")
        self.process.stdin.flush()
        made = self.process.stdout.readline()
        while made and json.loads(made) != name:
            made = self.process.stdout.readline()
        assert made, "the Bolt server went away"
        return name

    def kill(self) -> None:
        """End it at once, as a power cut would."""
        self.process.send_signal(signal.SIGKILL)
        self._wait()

    def stop(self) -> None:
        """Let it end in order."""
        assert self.process.stdin
        self.process.stdin.close()
        try:
            self.process.wait(120)
        except subprocess.TimeoutExpired:
            self.process.kill()
        self._wait()

    def _wait(self) -> None:
        self.process.wait()
        for pipe in (self.process.stdin, self.process.stdout, self.log):
            if pipe:
                pipe.close()


@pytest.fixture(scope="session")
def bolt_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BoltServer]:
    """A Bolt server for the whole run; each test takes a database of its own."""

    def start() -> BoltServer:
        import arcadedb_embedded  # noqa: F401  (only asks whether it is there)
        import neo4j  # noqa: F401

        return BoltServer(tmp_path_factory.mktemp("bolt"))

    server = started("a Bolt server", start)
    yield server
    server.stop()


def serve(folder: str, port: int) -> None:
    """Serve Bolt until standard input ends; each line on it names, in JSON, a database to make."""
    from arcadedb_embedded import create_server

    config = {
        "host": "127.0.0.1",
        "http_port": free_port(),
        "server_plugins": "Bolt:com.arcadedb.bolt.BoltProtocolPlugin",
        "bolt_port": port or free_port(),
    }
    server = create_server(str(Path(folder) / "data"), root_password=PASSWORD, config=config)
    server.start()
    print(json.dumps({"bolt": config["bolt_port"], "http": config["http_port"]}), flush=True)
    for line in sys.stdin:
        name = json.loads(line)
        server.create_database(name)
        print(json.dumps(name), flush=True)
    impatient = threading.Timer(20.0, os._exit, (1,))  # a statement that never ends would keep it
    impatient.start()
    server.stop()


if __name__ == "__main__":
    try:
        serve(sys.argv[1], int(sys.argv[2]))
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)  # threads of the Java machine would keep this process, and what waits for its output
